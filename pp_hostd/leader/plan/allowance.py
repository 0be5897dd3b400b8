"""The budget over time: how many remediations may still begin in this hour, and the write that counts one of them.

A fault that rolls through the cluster keeps below every other valve. The beginning is written before anything else is
done about the node, so that the next leader knows of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pp_hostd.frozen import frozen
from pp_hostd.leader.node_memory import NextAction, Stage, Term
from pp_hostd.leader.plan.view import View
from pp_hostd.leader.steps.config_maps import SpendBudget
from pp_hostd.model.budget import MAX_BEGINNINGS, Beginning, Budget
from pp_hostd.model.control import Grant
from pp_hostd.model.keys import BUDGET, NAMESPACE
from pp_hostd.model.observed import BudgetSeen, Observed
from pp_hostd.model.record import Unreadable


@frozen
class Allowance:
    """`most` remediations may begin in an hour. `counted` are those that have, each with the time until which it
    counts. `stored` is the record; None if there is none. `writing`: this plan writes another beginning."""

    most: int
    counted: Mapping[Beginning, float]
    stored: BudgetSeen | None
    wallclock_seconds: int
    writing: bool = False

    @classmethod
    def of(cls, most: int, observed: Observed, term: Term, now: float) -> Allowance:
        """`most` is what the settings allow; a person may have granted more."""
        wallclock_seconds, grant = term.draw.wallclock_seconds, observed.control.grant
        if isinstance(grant, Grant) and grant.counts_at(wallclock_seconds):
            most += grant.more
        stored = observed.budget
        budget = Budget() if stored is None or isinstance(stored.budget, Unreadable) else stored.budget
        counted = {}
        for each in budget.beginnings:
            until_at = now + each.counts_for_seconds(wallclock_seconds)
            until_at = min(until_at, term.beginnings.get(each, until_at))  # whatever the wall clock does meanwhile
            if now < until_at:
                counted[each] = until_at
        return cls(min(most, MAX_BEGINNINGS), counted, stored, wallclock_seconds)

    @property
    def left(self) -> int:
        return max(0, self.most - len(self.counted))

    def held(self, view: View) -> NextAction | None:
        """Why this remediation must not begin yet. None if it may, or is counted already, or costs nothing."""
        if self._is_paid(view):
            return None
        if self.stored is not None and isinstance(self.stored.budget, Unreadable):
            where = f"ConfigMap {NAMESPACE}/{BUDGET}"
            return view.refuses(f"{where}: {self.stored.budget}. Delete it: the count of this hour then begins again")
        if not self.left:
            return view.waits(Stage.OVER_BUDGET, self._told(), min(self.counted.values(), default=None))
        return view.waits(Stage.HELD, "waiting while the leader counts another remediation") if self.writing else None

    def next_write(self, view: View, stage: Stage) -> NextAction | None:
        """The step that counts this remediation. None once it is counted, or if it costs nothing."""
        if self._is_paid(view):
            return None
        stored = self.stored
        budget = Budget() if stored is None or isinstance(stored.budget, Unreadable) else stored.budget
        budget = budget.after(Beginning(view.name or view.subject, self.wallclock_seconds))
        step = SpendBudget(budget, None if stored is None else stored.resource_version)
        return view.does(stage, step, "counting it among the remediations of this hour")

    def after(self, next_action: NextAction) -> Allowance:
        return replace(self, writing=True) if isinstance(next_action.step, SpendBudget) else self

    def _is_paid(self, view: View) -> bool:
        """Whether it is counted, has begun before (as a power cycle), or finds nothing left to reset."""
        return view.memory.counted in self.counted or view.memory.fell_back or _is_away(view)

    def _told(self) -> str:
        begun = f"{len(self.counted)} remediations have begun in the last hour"
        return f"{begun}, and leader.resets_per_hour allows {self.most}. To allow more: pp-leader resume --more NUMBER"


def _is_away(view: View) -> bool:
    """Whether the node was freed and is not back: nothing of it is lost by a reset."""
    seen, stored = view.seen, view.licence
    if seen is not None and seen.ready:
        return False
    if stored is not None:
        return not isinstance(stored.backup, Unreadable) and (seen is None or seen.node.uid != stored.backup.uid)
    freed = seen is not None and seen.freed is not None and seen.node.agent is None
    return freed and view.name in view.observed.enrolled
