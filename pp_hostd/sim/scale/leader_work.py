"""What the leader did, as its own plans tell: how many there were, how long the longest took, what came of them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pp_hostd.leader import driver
from pp_hostd.leader.node_memory import Term
from pp_hostd.leader.plan.plan import Planned, plan
from pp_hostd.leader.registry import Registry
from pp_hostd.leader.remedies.poison_pill.steps import AskPeers
from pp_hostd.leader.steps.inspection import Inspect
from pp_hostd.leader.steps.lease import HandOver
from pp_hostd.leader.steps.port import StepEnded, StepNews
from pp_hostd.model.observed import Observed
from pp_hostd.model.settings import Settings
from pp_hostd.model.written import Written

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
