"""What runs out: certificates, and tokens that say when."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from pp_hostd.agent.doctor.facts import AccessFacts, Expiring, Facts, NotKnown
from pp_hostd.agent.doctor.line import Line, failure, not_checked, ok, warning

SOON, SOON_WHERE_RENEWED = timedelta(days=30), timedelta(minutes=10)


def expiries(facts: Facts) -> Iterator[Line]:
    if isinstance(facts.access, AccessFacts):
        for expiring in facts.access.expiring:
            yield _line(expiring, facts.now_wallclock)


def _line(expiring: Expiring, now: datetime) -> Line:
    ends, what = expiring.ends_wallclock, expiring.what
    if isinstance(ends, NotKnown):
        return not_checked(expiring.check, f"{what}: {ends.why}", ends.advice or "See: openssl x509 -noout -enddate")
    left, at = ends - now, f"{ends:%Y-%m-%d %H:%M}Z"
    if left <= timedelta(0):
        return failure(expiring.check, f"{what} has expired, at {at}", "Renew it, or set this host's clock.")
    if left < (SOON_WHERE_RENEWED if expiring.renewed else SOON):
        return warning(expiring.check, f"{what} expires in {_span(left)}, at {at}", "Renew it before that.")
    return ok(expiring.check, f"{what} expires in {_span(left)}, at {at}")


def _span(left: timedelta) -> str:
    return f"{left.days} days" if left.days > 1 else f"{left.total_seconds() / 3600:.1f} hours"
