"""Fast detection: agents suspect hosts that fall silent, and the leader finds out. Health checks may request then."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from pp_hostd.leader.interfaces import Reading, Remedy, Requester
from pp_hostd.leader.node_memory import NextAction, NodeMemory, Term
from pp_hostd.leader.requests.unreachable.plan import ReachMemory, unreachable
from pp_hostd.leader.requests.unreachable.seen import SuspicionsCache, SuspicionsSeen
from pp_hostd.leader.requests.unreachable.steps import Tried
from pp_hostd.leader.steps.port import Kind, StepNews
from pp_hostd.model.observed import Observed
from pp_hostd.model.settings import Settings


class Unreachable(Requester):
    """It requests nothing by itself: it keeps the Node condition pp-hostd.io/Unreachable."""

    needs_machines = False

    def reading(self, settings: Settings) -> Reading:
        suspicions = SuspicionsCache()
        return Reading(Kind("suspicion"), (), lambda: suspicions.seen, of_nodes=(suspicions,))

    def after_news(self, settings: Settings, memory: NodeMemory, news: list[StepNews]) -> NodeMemory:
        for each in news:
            if isinstance(each, Tried):
                renewed = memory.part(ReachMemory).lease not in (None, each.lease)
                silent, reached = each.silent and not renewed, each.reached or renewed
                memory = memory.with_part(ReachMemory(each.at, silent, reached, each.lease, each.heard))
        return memory

    def unreachable(self, observed: Observed) -> Collection[str]:
        return {name for name, said in observed.part(SuspicionsSeen).unreachable.items() if said == "True"}

    def next_actions(
        self,
        settings: Settings,
        observed: Observed,
        term: Term,
        next_actions: Sequence[NextAction],
        remedies: Sequence[Remedy],
        now: float,
    ) -> Iterator[tuple[NextAction | None, NodeMemory]]:
        return unreachable(settings, observed, term, now)


UNREACHABLE = Unreachable()
