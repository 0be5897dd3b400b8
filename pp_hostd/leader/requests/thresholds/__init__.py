"""NodeFences by NodeRemedyConfigurations: a Node whose condition has lasted for a threshold's time is fenced."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from pp_hostd.kube.resources import NODE_FENCES, NODE_REMEDY_CONFIGURATIONS, SERVICE_ACCOUNTS, Resource
from pp_hostd.leader.caches import AGAIN_SECONDS, Watch
from pp_hostd.leader.facts.nodes import NodeFactsCache
from pp_hostd.leader.interfaces import READ, Reading, Remedy, Requester, rule, sub_rule
from pp_hostd.leader.node_memory import NextAction, NodeMemory, Term
from pp_hostd.leader.remedies.node_fence.configuration import CONFIGURATION, ConfigurationsCache, ConfigurationsSeen
from pp_hostd.leader.remedies.node_fence.configuration_definition import configuration_definition
from pp_hostd.leader.remedies.node_fence.definitions import fence_definition
from pp_hostd.leader.remedies.node_fence.jobs import SERVICE_ACCOUNT
from pp_hostd.leader.requests.thresholds.plan import thresholds
from pp_hostd.leader.requests.thresholds.report import sentences
from pp_hostd.leader.steps.api import Json
from pp_hostd.model.keys import NAMESPACE
from pp_hostd.model.leader_status import LeaderStatus
from pp_hostd.model.observed import Observed
from pp_hostd.model.settings import Settings


class Thresholds(Requester):
    """Where a cluster has no NodeRemedyConfiguration, the leader need have no right to read any."""

    name = "node-fence"
    needs_machines = False

    def reading(self, settings: Settings) -> Reading:
        configurations, nodes = ConfigurationsCache(), NodeFactsCache()
        watch = Watch((NODE_REMEDY_CONFIGURATIONS,), (configurations,), unused=True, again_seconds=AGAIN_SECONDS)
        return Reading(
            CONFIGURATION,
            (watch,),
            lambda: ConfigurationsSeen(configurations.seen, nodes.seen, configurations.changes + nodes.changes),
            of_nodes=(nodes,),
        )

    def rights(self, machines: Resource) -> list[Json]:
        return [
            rule(NODE_REMEDY_CONFIGURATIONS, READ),
            sub_rule(NODE_REMEDY_CONFIGURATIONS),
            rule(NODE_FENCES, f"{READ} create patch delete"),
        ]

    def roles(self, machines: Resource, granted: bool) -> list[Json]:
        """The account of the Jobs, which has no rights: a person grants those that their remedies need."""
        metadata = {"name": SERVICE_ACCOUNT, "namespace": NAMESPACE}
        kind = SERVICE_ACCOUNTS
        return [{"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}] if granted else []

    def definitions(self, machines: Resource) -> list[Json]:
        return [configuration_definition(), fence_definition()]

    def next_actions(
        self,
        settings: Settings,
        observed: Observed,
        term: Term,
        next_actions: Sequence[NextAction],
        remedies: Sequence[Remedy],
        now: float,
    ) -> Iterator[tuple[NextAction | None, NodeMemory]]:
        return thresholds(settings, observed, term, now)

    def explained(self, observed: Observed, node: str, at: datetime, leader: LeaderStatus | None) -> list[str]:
        return sentences(observed, node, at)


THRESHOLDS = Thresholds()
