"""Observe, plan, apply: the one order of things, with clock, senses and hands as arguments. A simulator runs it too.

Hands start things and never wait; their outcome comes back as news.
"""

from __future__ import annotations

import math
from typing import Callable, Protocol

from pp_hostd.frozen import replace
from pp_hostd.leader.node_memory import NextAction, Term
from pp_hostd.leader.plan.plan import plan
from pp_hostd.leader.plan.roster import next_roster
from pp_hostd.leader.plan.valves import Valves
from pp_hostd.leader.registry import REGISTRY, Registry
from pp_hostd.leader.steps.own_objects import WriteRoster
from pp_hostd.leader.steps.port import LeaderStep, StepEnded, StepNews
from pp_hostd.model.condemnation import Draw
from pp_hostd.model.observed import Observed
from pp_hostd.model.settings import Settings

IDLE_SECONDS = 10.0
"""A plan is due after this long even if nothing has happened."""
ROSTER_REST_SECONDS = 2.0
"""Between two looks at the roster, or a write and a look. Each look goes through all nodes, and each new version makes
all nodes promise again."""


class Senses(Protocol):
    """The driver's view of the cluster, and the news of its steps. Nothing here waits."""

    def observed(self) -> Observed: ...

    def take(self) -> list[StepNews]:
        """Everything since the last call, in order."""

    def nodes_revision(self) -> int:
        """Another number whenever something has changed that the roster shows."""


class Actuators(Protocol):
    """The driver's actions. Nothing here waits; outcomes come back through the senses."""

    def start(self, node: str, remedy: LeaderStep) -> None: ...

    def write_roster(self, order: WriteRoster) -> None:
        """When it has ended, the driver is told by `roster_ended`."""

    def show(self, next_actions: tuple[NextAction, ...]) -> None:
        """Tell people what is done about each node."""


class Driver:
    """One leader in one term, without its shell. `turn` is called whenever there is news, and when it is due."""

    def __init__(
        self,
        settings: Settings,
        senses: Senses,
        actuators: Actuators,
        *,
        own_node: str,
        resigned_at: float,
        clock: Callable[[], float],
        draw: Callable[[], Draw],
        registry: Registry = REGISTRY,
    ) -> None:
        """`resigned_at` is when this leader last gave its Lease up."""
        self.settings = settings
        self.term = Term(own_node, clock(), resigned_at=resigned_at)
        self.next_actions: tuple[NextAction, ...] = ()
        self.valves: Valves | None = None
        self._senses, self._actuators, self._clock, self._draw = senses, actuators, clock, draw
        self._registry = registry
        self._under_way: set[str] = set()
        self.roster_revision = -1
        """The revision that the driver last compared with the roster; -1: it compares again in any case."""
        self._roster_rests_until_at = -math.inf
        self._writes_roster = False

    def turn(self) -> float:
        """One plan, and all that follows from it. When the next one is due."""
        news = self._senses.take()
        self._under_way -= {each.node for each in news if isinstance(each, StepEnded)}
        now, observed = self._clock(), self._senses.observed()
        planned = plan(self.settings, observed, replace(self.term, draw=self._draw()), news, now, self._registry)
        self.term, self.next_actions = planned.term, planned.next_actions
        self.valves = planned.valves
        for next_action in planned.next_actions:
            if next_action.step is not None and next_action.key not in self._under_way:  # one step at a time
                self._under_way.add(next_action.key)
                self._actuators.start(next_action.key, next_action.step)
        look_at = self._look_at_roster(observed, now)
        self._actuators.show(planned.next_actions)
        due = (next_action.due_at for next_action in planned.next_actions if next_action.due_at is not None)
        return min((now + IDLE_SECONDS, look_at, *due))

    def roster_ended(self) -> None:
        """The write of the roster has ended, well or not: it is looked at again after a rest."""
        self._writes_roster, self.roster_revision = False, -1
        self._roster_rests_until_at = self._clock() + ROSTER_REST_SECONDS

    def _look_at_roster(self, observed: Observed, now: float) -> float:
        """One look at a time, and one write. Returns when the next look is due."""
        revision = self._senses.nodes_revision()
        if revision == self.roster_revision or self._writes_roster:
            return math.inf
        if now < self._roster_rests_until_at:
            return self._roster_rests_until_at
        self.roster_revision, self._roster_rests_until_at = revision, now + ROSTER_REST_SECONDS
        order = next_roster(observed)
        if order is not None:
            self._writes_roster = True
            self._actuators.write_roster(order)
        return math.inf
