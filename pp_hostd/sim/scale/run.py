"""One case at one size: what happens to the cluster in its hour, the leader's work, and the figures."""

from __future__ import annotations

import contextlib
import enum
import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Callable

from pp_hostd.frozen import frozen
from pp_hostd.leader import driver
from pp_hostd.leader.node_memory import Term
from pp_hostd.leader.plan.plan import Planned, plan
from pp_hostd.leader.registry import Registry
from pp_hostd.leader.remedies.poison_pill.steps import AskPeers
from pp_hostd.leader.steps.machines import Inspect
from pp_hostd.leader.steps.own_objects import HandOver
from pp_hostd.leader.steps.port import StepEnded, StepNews
from pp_hostd.model.observed import Observed
from pp_hostd.model.settings import Settings
from pp_hostd.model.step import Written
from pp_hostd.sim.api import ServerHealth
from pp_hostd.sim.scale.crowd import Crowd
from pp_hostd.sim.scale.tally import HOUR_SECONDS, QUIET_SECONDS, Kind, Rate

BEGIN = 60.0
"""By then everybody is well, and somebody leads."""
MINUTE = 60.0


class ControlPlane(enum.Enum):
    """Whether the API works while it lasts."""

    WORKS = "works"
    REFUSES = "refuses connections"


@frozen
class Case:
    """`apart` is how many of so many nodes have a way to each other alone, not to the API and the other nodes."""

    name: str
    about: str
    seconds: float
    apart: Callable[[int], int]
    control_plane: ControlPlane

    @property
    def end(self) -> float:
        return BEGIN + self.seconds


def _rack(nodes: int) -> int:
    return max(1, min(40, nodes * 8 // 100))


RACK = Case("rack", "one rack loses its uplink for 20 minutes", 20 * MINUTE, _rack, ControlPlane.WORKS)
OUTAGE = Case("outage", "the control plane is down for 10 minutes", 10 * MINUTE, lambda _: 0, ControlPlane.REFUSES)
SPLIT = Case("split", "half of the nodes are cut off for 10 minutes", 10 * MINUTE, lambda n: n // 2, ControlPlane.WORKS)
CASES = (RACK, OUTAGE, SPLIT)


_NO_WRITES = (AskPeers, Inspect, HandOver)


@dataclass
class LeaderWork:
    """`questions` are rule 10's. `longest_ms` is of this machine; all else follows from the seed."""

    plans: int = 0
    longest_ms: float = 0.0
    writes: int = 0
    questions: int = 0

    def plan(
        self,
        settings: Settings,
        observed: Observed,
        term: Term,
        news: Iterable[StepNews],
        now: float,
        registry: Registry,
    ) -> Planned:
        """The real plan, watched."""
        news = list(news)
        self._count(news)
        began = time.process_time()
        planned = plan(settings, observed, term, news, now, registry)
        self.plans += 1
        self.longest_ms = max(self.longest_ms, (time.process_time() - began) * 1000)
        return planned

    def _count(self, news: list[StepNews]) -> None:
        for each in news:
            if isinstance(each, StepEnded):
                remedy = each.step
                self.writes += each.written is Written.DONE and not isinstance(remedy, _NO_WRITES)
                self.questions += len(remedy.peers) if isinstance(remedy, AskPeers) else 0


@contextlib.contextmanager
def watched() -> Iterator[LeaderWork]:
    """Every leader of this process plans under these eyes meanwhile."""
    work = LeaderWork()
    vars(driver)["plan"] = work.plan
    try:
        yield work
    finally:
        vars(driver)["plan"] = plan


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
        crowd.ail(ServerHealth.DEAD)


def _end(crowd: Crowd) -> None:
    crowd.cut(())
    crowd.ail(ServerHealth.WELL)


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
