"""One case at one size: the cluster lives until all is quiet again, and the figures of its hour."""

from __future__ import annotations

import math
from functools import partial
from typing import Callable

from pp_hostd.frozen import frozen
from pp_hostd.model.settings import Settings
from pp_hostd.sim.api import Health
from pp_hostd.sim.scale.cases import BEGIN, Case, ControlPlane
from pp_hostd.sim.scale.crowd import Crowd
from pp_hostd.sim.scale.leader_work import LeaderWork, watched
from pp_hostd.sim.scale.tally import HOUR_SECONDS, QUIET_SECONDS, Kind, Rate

MOST_LIVING = 40
"""Up to so many alike hosts live in full, all of them; of more alike hosts these few do:"""
REPRESENTATIVES = 10
ASKED_AFTER_SECONDS = 60.0
"""A health check asks for a node that has been unreachable for so long."""
WRITTEN_AT_ONCE, WRITE_SECONDS = 100, 0.1
"""So many nodes it asks for, or no longer asks for, before it pauses."""
SETTLED_SECONDS = 20.0


@frozen
class Figures:
    """`recovery_seconds` is from the end of the trouble until every host is well, `freed_seconds` from its beginning
    until the last requested node is freed; None if none was requested."""

    case: str
    nodes: int
    apart: int
    served: Rate
    unserved: Rate
    peer: Rate
    bytes: Rate
    leader: LeaderWork
    resets: int
    needless_resets: int
    freed_seconds: float | None
    recovery_seconds: float


def run(case: Case, nodes: int, seed: int = 1, *, with_jury: bool = False, settings: Settings | None = None) -> Figures:
    crowd = Crowd(settings or Settings(), nodes, seed, with_jury)
    apart = crowd.names[nodes - case.apart(nodes) :]
    inside = crowd.names[: nodes - len(apart)]
    crowd.populate((group, _living(group)) for group in (inside, apart) if group)
    crowd.time.at(BEGIN, partial(_begin, crowd, case, apart))
    crowd.time.at(BEGIN + ASKED_AFTER_SECONDS, partial(_write_about, crowd, apart, crowd.people.request))
    crowd.time.at(case.end, partial(_end, crowd))
    with watched() as work:
        quiet_at = _run(crowd, case, apart)
    crowd.tally.go_on_from(quiet_at)
    served, unserved, peer, total = (crowd.tally.rate(kind) for kind in Kind)
    resets = round(crowd.resets)
    return Figures(
        case=case.name,
        nodes=nodes,
        apart=len(apart),
        served=served,
        unserved=unserved,
        peer=peer,
        bytes=total,
        leader=work,
        resets=resets,
        needless_resets=resets if case.control_plane is ControlPlane.REFUSES else 0,
        freed_seconds=crowd.freed_at - BEGIN if crowd.freed_at else None,
        recovery_seconds=crowd.well_at - case.end,
    )


def _living(alike: list[str]) -> int:
    return len(alike) if len(alike) <= MOST_LIVING else REPRESENTATIVES


def _begin(crowd: Crowd, case: Case, apart: list[str]) -> None:
    crowd.cut(apart)
    if case.control_plane is ControlPlane.REFUSES:
        crowd.ail(Health.DEAD)


def _end(crowd: Crowd) -> None:
    crowd.cut(())
    crowd.ail(Health.WELL)


def _write_about(crowd: Crowd, names: list[str], write: Callable[[str], None]) -> None:
    """Not about all in one moment: a watch takes only so many changes at once."""
    for name in names[:WRITTEN_AT_ONCE]:
        write(name)
    if names[WRITTEN_AT_ONCE:]:
        crowd.time.after(WRITE_SECONDS, partial(_write_about, crowd, names[WRITTEN_AT_ONCE:], write))


def _run(crowd: Crowd, case: Case, apart: list[str]) -> int:
    """Until everybody is well and nothing is requested, then a quiet while at most. Returns the second of its end."""
    crowd.time.run(case.end + SETTLED_SECONDS)
    while crowd.time.now < HOUR_SECONDS - QUIET_SECONDS and not crowd.all_well:
        crowd.time.run(crowd.time.now + SETTLED_SECONDS)
    _write_about(crowd, apart, crowd.people.absolve)  # the health check sees them well again
    quiet_at = math.ceil(crowd.time.now) + 2 * QUIET_SECONDS
    crowd.time.run(quiet_at)
    return quiet_at
