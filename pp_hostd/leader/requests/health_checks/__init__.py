"""Requests by health checks, which the leader itself carries out where a cluster has no other controller for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from pp_hostd.kube.resources import NODE_HEALTH_CHECKS, POISON_PILL_REMEDIATIONS, Resource, template_of
from pp_hostd.leader.caches import AGAIN_SECONDS, Watch
from pp_hostd.leader.facts.nodes import NodeFactsCache
from pp_hostd.leader.interfaces import READ, Reading, Remedy, Requester, rule, sub_rule
from pp_hostd.leader.node_memory import NextAction, NodeMemory, Term
from pp_hostd.leader.requests.health_checks.check import HEALTH_CHECK, HealthChecksCache, HealthSeen
from pp_hostd.leader.requests.health_checks.definitions import definitions
from pp_hostd.leader.requests.health_checks.plan import Removed, health_checks
from pp_hostd.leader.requests.health_checks.report import sentences
from pp_hostd.leader.requests.health_checks.steps import RemediationGone
from pp_hostd.leader.steps.api import Json
from pp_hostd.leader.steps.port import StepNews
from pp_hostd.model.leader_status import LeaderStatus
from pp_hostd.model.machine_details import Claim
from pp_hostd.model.observed import Observed
from pp_hostd.model.settings import Settings


class HealthChecks(Requester):
    """Where a cluster has no NodeHealthCheck, the leader need have no right to read any."""

    name = "health-check"
    needs_machines = False

    def reading(self, settings: Settings) -> Reading:
        checks, nodes = HealthChecksCache(), NodeFactsCache()
        watch = Watch((NODE_HEALTH_CHECKS,), (checks,), unused=True, again_seconds=AGAIN_SECONDS)
        return Reading(
            HEALTH_CHECK,
            (watch,),
            lambda: HealthSeen(checks.seen, nodes.seen, checks.changes + nodes.changes, watch.listed),
            of_nodes=(nodes,),
        )

    def rights(self, machines: Resource) -> list[Json]:
        """Others' templates and objects need rights that a person grants."""
        return [
            rule(NODE_HEALTH_CHECKS, READ),
            sub_rule(NODE_HEALTH_CHECKS),
            rule(template_of(POISON_PILL_REMEDIATIONS), "get"),
            rule(POISON_PILL_REMEDIATIONS, "get create delete"),
        ]

    def definitions(self, machines: Resource) -> list[Json]:
        return definitions()

    def after_news(self, settings: Settings, memory: NodeMemory, news: list[StepNews]) -> NodeMemory:
        gone = any(isinstance(each, RemediationGone) for each in news)
        return memory.with_part(Removed(True)) if gone else memory

    def next_actions(
        self,
        settings: Settings,
        observed: Observed,
        term: Term,
        next_actions: Sequence[NextAction],
        remedies: Sequence[Remedy],
        now: float,
    ) -> Iterator[tuple[NextAction | None, NodeMemory]]:
        return health_checks(settings, observed, term, now)

    def has_made(self, claim: Claim) -> bool:
        return claim.is_of_check

    def explained(self, observed: Observed, node: str, at: datetime, leader: LeaderStatus | None) -> list[str]:
        return sentences(observed, node, at)


HEALTH_CHECKS = HealthChecks()
