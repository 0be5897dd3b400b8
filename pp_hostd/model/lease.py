"""The leaders' Lease, when a candidate may take it, and until when it may act once it has (rules 13 and 14).

Two never act at once. A term ends `term_seconds` after its last renewal was sent. That renewal gave the Lease a new
resourceVersion, which others can only have seen later, and they take the Lease no sooner than a whole duration after
that. Whatever is written is conditional on the version that was seen.
"""

from __future__ import annotations

import enum
import math
import re
from datetime import datetime
from typing import Any

from pp_hostd.frozen import frozen, replace
from pp_hostd.model.record import OPAQUE, PROSE, Fields, Unreadable, read

LEASE = "pp-leader"
GIVEN_UP_SECONDS = 1
"""The duration in a Lease that was given up, as Kubernetes' own leaders leave it too."""
LONGEST_SECONDS = 120
"""No leader's term is longer (it is the most that leader.lease_seconds allows), whatever a Lease says."""
_PROCESS = re.compile("_[0-9a-f]{16}$")
_LARGEST_INT32 = 2**31 - 1


@frozen
class Lease:
    """One version of it; `holder` is empty when nobody holds it."""

    resource_version: str
    holder: str
    duration_seconds: int
    transitions: int

    @property
    def given_up(self) -> bool:
        """Its holder itself has stopped. One that a person took out leaves the duration behind, and may still act."""
        return not self.holder and self.duration_seconds == GIVEN_UP_SECONDS


def host_of_holder(holder: str) -> str:
    """The holder without what tells one process of its host from the next."""
    return _PROCESS.sub("", holder)


def parse_lease(api_object: object) -> Lease | Unreadable:
    """The Lease in an object of the API; a garbage holder is somebody, a garbage duration the longest."""
    return read("the Lease", _lease, api_object)


def _lease(api_object: object) -> Lease:
    fields = Fields(api_object)
    spec = fields.section("spec")
    return Lease(
        resource_version=fields.section("metadata").text("resourceVersion", OPAQUE),
        holder=_holder(spec.anything("holderIdentity")),
        duration_seconds=_whole(spec.anything("leaseDurationSeconds"), 1, LONGEST_SECONDS, LONGEST_SECONDS),
        transitions=_whole(spec.anything("leaseTransitions"), 0, _LARGEST_INT32 - 1, 0),
    )


def _holder(value: object) -> str:
    if value is None or value == "":
        return ""
    return value if isinstance(value, str) and PROSE.pattern.fullmatch(value) else "(unreadable)"


def _whole(value: object, least: int, most: int, otherwise: int) -> int:
    return value if type(value) is int and least <= value <= most else otherwise


def unheld_spec(duration_seconds: float) -> dict[str, Any]:
    """A new Lease. It is not given up: whoever held one that was deleted may still act."""
    return {"holderIdentity": "", "leaseDurationSeconds": math.ceil(duration_seconds), "leaseTransitions": 0}


def taken_spec(lease: Lease, identity: str, duration_seconds: float, wallclock: datetime) -> dict[str, Any]:
    """Returns the changes to the spec that make this candidate the holder."""
    renewed = renewed_spec(identity, duration_seconds, wallclock)
    transitions = lease.transitions + (lease.holder != identity)
    return {**renewed, "acquireTime": renewed["renewTime"], "leaseTransitions": transitions}


def renewed_spec(identity: str, duration_seconds: float, wallclock: datetime) -> dict[str, Any]:
    return {
        "holderIdentity": identity,
        "leaseDurationSeconds": math.ceil(duration_seconds),
        "renewTime": wallclock.isoformat(timespec="microseconds"),  # the API takes no other number of digits
    }


def given_up_spec(wallclock: datetime) -> dict[str, Any]:
    return renewed_spec("", GIVEN_UP_SECONDS, wallclock)


TERM_PART = 0.9
"""Of the duration. Clocks that drift apart by 1000 ppm each need 0.2 % of it; the rest is for a write on its way."""
PERIOD_PART = 0.2
"""Of the duration: how often the Lease is renewed or looked at, and how long that may take."""
RETRY_PART = 0.05
NEVER = -math.inf


class LeaseExchange(enum.Enum):
    """One exchange of a candidate with the API about the Lease."""

    LOOK = "look"
    CREATE = "create"
    TAKE = "take"
    RENEW = "renew"
    GIVE_UP = "give up"


@frozen
class Candidacy:
    """The knowledge of one candidate. `identity` is that of one process, so that process wrote any Lease in its name.

    `lease` is None when there is none. It was first seen at `seen_at`, dated by the end of that exchange; `certain`
    says whether the last exchange succeeded. The last renewal of the present term was sent at `renewed_at`.
    """

    identity: str
    duration_seconds: float
    lease: Lease | None = None
    seen_at: float = NEVER
    certain: bool = False
    exchanged_at: float = NEVER
    renewed_at: float = NEVER
    resigned_at: float = NEVER
    """When it last did so, whether or not it led."""
    term: int = 0

    @property
    def acting_until_at(self) -> float:
        return self.renewed_at + TERM_PART * self.duration_seconds

    @property
    def rest_until_at(self) -> float:
        return self.resigned_at + self.duration_seconds

    @property
    def period_seconds(self) -> float:
        return PERIOD_PART * self.duration_seconds

    @property
    def in_our_name(self) -> bool:
        return self.lease is not None and self.lease.holder == self.identity

    def acting(self, now: float) -> bool:
        return now < self.acting_until_at

    def exchange_seconds(self, now: float) -> float:
        """How long an exchange may take that begins now; none outlives the term."""
        left_seconds = self.acting_until_at - now
        return min(self.period_seconds, left_seconds) if self.acting(now) else self.period_seconds

    def next_exchange(self, now: float) -> tuple[LeaseExchange, float]:
        """Returns the next exchange about the Lease, and when it is due. By then another one may be due instead."""
        if not self.certain:
            return LeaseExchange.LOOK, self.exchanged_at + RETRY_PART * self.duration_seconds
        if self.in_our_name and now < self.rest_until_at:
            return LeaseExchange.GIVE_UP, now
        if self.acting(now):
            return LeaseExchange.RENEW, self.renewed_at + self.period_seconds
        look_at = self.exchanged_at + self.period_seconds
        campaign_at = max(self._free_at(), self.rest_until_at)
        if campaign_at > look_at:
            return LeaseExchange.LOOK, look_at
        return LeaseExchange.CREATE if self.lease is None else LeaseExchange.TAKE, campaign_at

    def _free_at(self) -> float:
        """When a missing Lease may be created (which begins no term), or the one that was seen taken."""
        if self.lease is None or self.lease.given_up:
            return self.seen_at
        return self.seen_at + max(self.duration_seconds, self.lease.duration_seconds)

    def saw(self, lease: Lease | None, now: float) -> Candidacy:
        """After an exchange that showed the Lease, or that there is none."""
        version = self.lease and self.lease.resource_version
        unchanged = lease is not None and lease.resource_version == version
        seen = replace(self, lease=lease, seen_at=self.seen_at if unchanged else now, certain=True, exchanged_at=now)
        return seen if seen.in_our_name else seen._ended()

    def held(self, exchange: LeaseExchange, lease: Lease, sent_at: float, now: float) -> Candidacy:
        """After a TAKE or a RENEW that the API carried out. One that is resting, or was too late, does not act."""
        seen = self.saw(lease, now)
        too_late = exchange is LeaseExchange.RENEW and not self.acting(now)
        if too_late or now < self.rest_until_at or not seen.in_our_name:
            return seen._ended()
        return replace(seen, renewed_at=sent_at, term=self.term + (exchange is LeaseExchange.TAKE))

    def failed(self, exchange: LeaseExchange, now: float, *, overtaken: bool) -> Candidacy:
        """After an exchange that did not succeed; `overtaken` says that the Lease is not the one that was seen."""
        unsure = replace(self, certain=False, exchanged_at=now)
        return unsure._ended() if overtaken and exchange is LeaseExchange.RENEW else unsure

    def body(self, exchange: LeaseExchange, wallclock: datetime) -> dict[str, Any]:
        """Returns the body of any exchange but LOOK: the new Lease, or a merge patch of the version that was seen. The
        patch leaves what others put there, and unlike PUT it never creates a Lease that is gone."""
        if self.lease is None:
            return {"metadata": {"name": LEASE}, "spec": unheld_spec(self.duration_seconds)}
        if exchange is LeaseExchange.TAKE:
            spec = taken_spec(self.lease, self.identity, self.duration_seconds, wallclock)
        elif exchange is LeaseExchange.RENEW:
            spec = renewed_spec(self.identity, self.duration_seconds, wallclock)
        else:
            spec = given_up_spec(wallclock)
        return {"metadata": {"resourceVersion": self.lease.resource_version}, "spec": spec}

    def after_reply(self, exchange: LeaseExchange, lease: Lease, sent_at: float, now: float) -> Candidacy:
        if exchange in (LeaseExchange.TAKE, LeaseExchange.RENEW):
            return self.held(exchange, lease, sent_at, now)
        return self.saw(lease, now)

    def after_failure(self, exchange: LeaseExchange, now: float, *, missing: bool, conflict: bool) -> Candidacy:
        """`missing`: the API itself says that there is no such Lease. A renewal is overtaken then, too."""
        if exchange is LeaseExchange.LOOK and missing:
            return self.saw(None, now)
        return self.failed(exchange, now, overtaken=missing or conflict)

    def resigned(self, now: float) -> Candidacy:
        """It acts no more, and campaigns only after a duration, so that another one can take the Lease."""
        return replace(self._ended(), resigned_at=now)

    def _ended(self) -> Candidacy:
        return self if self.renewed_at == NEVER else replace(self, renewed_at=NEVER)
