"""From facts to lines: what was found, whether that is well, and what to do. No I/O."""

from __future__ import annotations

from collections.abc import Iterator

from pp_hostd.agent.doctor.diagnose.cluster import access, expiries, links, peers, roster
from pp_hostd.agent.doctor.diagnose.host import configuration, daemon, kernel, rivals, systemd
from pp_hostd.agent.doctor.diagnose.watchdog import watchdog
from pp_hostd.agent.doctor.facts import Facts, Line


def diagnose(facts: Facts) -> Iterator[Line]:
    """Every line, in the order in which a person would go about it."""
    yield from configuration(facts)
    yield from daemon(facts)
    yield from watchdog(facts)
    yield from rivals(facts)
    yield from kernel(facts)
    yield from systemd(facts)
    yield from access(facts)
    yield from expiries(facts)
    yield from roster(facts)
    yield from links(facts)
    yield from peers(facts)
