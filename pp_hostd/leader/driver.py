"""Observe, plan, apply: the one order of things, with clock, senses and hands as arguments. A simulator runs it too.

Hands start things and never wait; what becomes of them comes back as news.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Callable, Protocol

from pp_hostd.leader.plan.allowance import Allowance
from pp_hostd.leader.plan.flows import plan
from pp_hostd.leader.plan.roster import next_roster
from pp_hostd.model.case import Course, Term
from pp_hostd.model.condemnation import Draw
from pp_hostd.model.observed import Observed
from pp_hostd.model.remedy import Remedy, RemedyEnded, RemedyNews, WriteRoster
from pp_hostd.model.settings import Settings

IDLE_SECONDS = 10.0
"""A plan is due after this long even if nothing has happened."""


class Senses(Protocol):
    """What has become known. Nothing here waits."""

    def observed(self) -> Observed: ...

    def take(self) -> list[RemedyNews]:
        """Everything since the last call, in order."""

    def nodes_changed(self) -> bool:
        """Whether anything has changed since the last call that the roster tells of."""


class Hands(Protocol):
    """What can be done. Nothing here waits; outcomes come back through the senses."""

    def start(self, node: str, remedy: Remedy) -> None: ...
    def write_roster(self, order: WriteRoster) -> None: ...

    def show(self, courses: tuple[Course, ...]) -> None:
        """Tell people what is done about each node."""


class Driver:
    """One leader in one term, without its shell. `turn` is called whenever there is news, and when it is due."""

    def __init__(
        self,
        settings: Settings,
        senses: Senses,
        hands: Hands,
        *,
        own_node: str,
        clock: Callable[[], float],
        draw: Callable[[], Draw],
    ) -> None:
        self.settings = settings
        self.term = Term(own_node, clock())
        self.courses: tuple[Course, ...] = ()
        self.allowance: Allowance | None = None
        self._senses, self._hands, self._clock, self._draw = senses, hands, clock, draw
        self._under_way: set[str] = set()

    def turn(self) -> float:
        """One plan, and all that follows from it. When the next one is due."""
        news = self._senses.take()
        self._under_way -= {each.node for each in news if isinstance(each, RemedyEnded)}
        now, observed = self._clock(), self._senses.observed()
        planned = plan(self.settings, observed, replace(self.term, draw=self._draw()), news, now)
        self.term, self.courses = planned.term, planned.courses
        self.allowance = planned.allowance
        for course in planned.courses:
            if course.step is not None and course.key not in self._under_way:  # one step at a time
                self._under_way.add(course.key)
                self._hands.start(course.key, course.step)
        roster = next_roster(observed) if self._senses.nodes_changed() else None
        if roster is not None:
            self._hands.write_roster(roster)
        self._hands.show(planned.courses)
        due = (course.due_at for course in planned.courses if course.due_at is not None)
        return min((now + IDLE_SECONDS, *due))
