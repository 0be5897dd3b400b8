"""Requests by MachineHealthChecks of OpenShift and Cluster API, where no controller of theirs carries them out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from pp_hostd.kube.resources import CAPI_HEALTH_CHECKS, MACHINE_HEALTH_CHECKS, REMEDIATIONS, Resource, template_of
from pp_hostd.leader.caches import Watch
from pp_hostd.leader.facts.nodes import NodeFactsCache
from pp_hostd.leader.interfaces import READ, Reading, Remedy, Requester, rule, sub_rule
from pp_hostd.leader.node_memory import NextAction, NodeMemory, Term
from pp_hostd.leader.requests.machine_health_checks.check import MACHINE_HEALTH_CHECK, MachineHealthChecksCache
from pp_hostd.leader.requests.machine_health_checks.facts import (
    ClusterFactsCache,
    MachineFactsCache,
    MachineHealthSeen,
)
from pp_hostd.leader.requests.machine_health_checks.plan import after_news, machine_health_checks
from pp_hostd.leader.requests.machine_health_checks.report import sentences
from pp_hostd.leader.steps.api import Json
from pp_hostd.leader.steps.port import StepNews
from pp_hostd.model.leader_status import LeaderStatus
from pp_hostd.model.observed import Observed
from pp_hostd.model.settings import Settings


class MachineHealthChecks(Requester):
    """Off unless the settings say otherwise: a cluster with such health checks has a controller for them."""

    name = "machine-health-check"

    def reading(self, settings: Settings) -> Reading | None:
        if not settings.health.machine_health_checks:
            return None
        checks, machines = MachineHealthChecksCache(), MachineFactsCache("Machine")
        nodes, clusters = NodeFactsCache(), ClusterFactsCache("Cluster")
        return Reading(
            MACHINE_HEALTH_CHECK,
            (Watch(MACHINE_HEALTH_CHECKS[settings.api.machines], (checks,)),),
            lambda: MachineHealthSeen(
                checks.seen,
                machines.seen,
                nodes.seen,
                nodes.versions,
                clusters.seen,
                checks.changes + machines.changes + nodes.changes + clusters.changes,
            ),
            of_nodes=(nodes,),
            of_machines=(machines,),
            of_clusters=(clusters,),
        )

    def rights(self, machines: Resource) -> list[Json]:
        """Templates and objects of others' kinds need rights that a person grants."""
        found = (versions[0] for versions in MACHINE_HEALTH_CHECKS.values())
        kind = next((each for each in found if each.group == machines.group), CAPI_HEALTH_CHECKS)
        objects = [versions[0] for versions in REMEDIATIONS.values()]
        return [
            rule(kind, f"{READ} patch"),
            sub_rule(kind),
            rule(machines, "delete"),
            sub_rule(machines),
            *(rule(template_of(each), "get") for each in objects),
            *(rule(each, "get create delete") for each in objects),
        ]

    def next_actions(
        self,
        settings: Settings,
        observed: Observed,
        term: Term,
        next_actions: Sequence[NextAction],
        remedies: Sequence[Remedy],
        now: float,
    ) -> Iterator[tuple[NextAction | None, NodeMemory]]:
        if not settings.health.machine_health_checks:
            return iter(())
        return machine_health_checks(settings, observed, term, next_actions, now)

    def after_news(self, settings: Settings, memory: NodeMemory, news: list[StepNews]) -> NodeMemory:
        return after_news(memory, news)

    def about(self, observed: Observed, next_action: NextAction) -> Iterator[tuple[Resource, str, str, str]]:
        for check in observed.part(MachineHealthSeen).checks.values():
            if check.key == next_action.of:
                yield check.kind, check.namespace, check.name, check.uid

    def explained(self, observed: Observed, node: str, at: datetime, leader: LeaderStatus | None) -> list[str]:
        return list(sentences(observed, node, at, leader))


MACHINE_HEALTH_CHECKS_OF_OTHERS = MachineHealthChecks()
