"""The poison pill: a host is condemned, and dead once it has had the time to reset itself that it promised."""

from __future__ import annotations

from collections.abc import Collection

from pp_hostd.leader.interfaces import Remedy
from pp_hostd.leader.node_memory import NextAction, NodeMemory
from pp_hostd.leader.plan.valves import Valves, begun
from pp_hostd.leader.plan.view import View
from pp_hostd.leader.remedies.poison_pill.memory import (
    PillMemory,
    after_news,
    counted,
    sighted,
    unbroken,
    wait_seconds,
)
from pp_hostd.leader.remedies.poison_pill.plan import awaited_return, poisoned
from pp_hostd.leader.steps.port import StepNews
from pp_hostd.model.observed import Observed
from pp_hostd.model.promise import promise_in
from pp_hostd.model.record import Unreadable
from pp_hostd.model.settings import Settings


class PoisonPill(Remedy):
    """For hosts on which an agent runs."""

    name = "poison-pill"
    needs_machines = False

    def within_reach(self, settings: Settings, observed: Observed) -> Collection[str]:
        return observed.enrolled

    def has_begun(self, view: View) -> bool:
        """Also where a person has said that it is dead, which needs no power; and where it can't be switched off."""
        confirmed = view.seen is not None and view.seen.confirmed is not None
        stands = view.condemned is not None or begun(view.seen) or view.backup_seen is not None
        return stands or confirmed or view.memory.fell_back

    def suits(self, view: View) -> bool:
        return True

    def next_action(self, view: View, valves: Valves) -> NextAction | None:
        return poisoned(view, valves)

    def has_marked(self, view: View) -> bool:
        return view.condemned is not None

    def has_freed(self, view: View) -> bool:
        marked = view.seen is not None and view.seen.node.freeing is not None
        return marked or (view.licence is not None and view.seen is None)

    def after_view(self, view: View) -> NodeMemory:
        memory = sighted(view.memory, view.machine_seen)
        pill = unbroken(memory.part(PillMemory), view.seen)
        electorate = None if pill.promise is None else view.electorates.of(pill.promise)
        pill = counted(pill, None if isinstance(electorate, Unreadable) else electorate, view.now)
        return memory if pill == memory.part(PillMemory) else memory.with_part(pill)

    def after_news(self, settings: Settings, memory: NodeMemory, news: list[StepNews]) -> NodeMemory:
        return after_news(settings, memory, news)

    def awaited(self, view: View) -> str:
        if view.condemned is None:
            return awaited_return(view)
        return "at least half of the nodes know" if view.memory.part(PillMemory).t0_at is None else ""

    def prospect(self, view: View) -> str:
        promise = None if view.seen is None else promise_in(view.seen.node.agent)
        wait = "without a wait"
        if promise is not None:
            wait = f"{wait_seconds(view.settings, promise):g} s after that (T + 2W and a margin), or sooner on evidence"
        return (
            f"cordons Node {view.name}, condemns its machine, has at least half of the nodes acknowledge that, and "
            f"frees its workloads {wait}. Then the leader recreates the Node"
        )


POISON_PILL = PoisonPill()
