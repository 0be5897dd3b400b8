"""Conditions that the leader keeps on Nodes, for people and for health checks. They request nothing by themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pp_hostd.leader.interfaces import Reading, Remedy, Requester
from pp_hostd.leader.node_memory import NextAction, NodeMemory, Term
from pp_hostd.leader.requests.node_conditions.plan import conditions
from pp_hostd.leader.requests.node_conditions.stored import CONDITION, OwnConditions
from pp_hostd.model.observed import Observed
from pp_hostd.model.settings import Settings


class NodeConditions(Requester):
    """It needs no rights of its own: every leader may write the status of Nodes."""

    needs_machines = False

    def reading(self, settings: Settings) -> Reading:
        cache = OwnConditions()
        return Reading(CONDITION, (), lambda: cache.conditions, of_nodes=(cache,))

    def next_actions(
        self,
        settings: Settings,
        observed: Observed,
        term: Term,
        next_actions: Sequence[NextAction],
        remedies: Sequence[Remedy],
        now: float,
    ) -> Iterator[tuple[NextAction | None, NodeMemory]]:
        return conditions(settings, observed, term, next_actions, now)


NODE_CONDITIONS = NodeConditions()
