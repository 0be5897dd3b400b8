"""Requests by remediation objects, which health checks make of a template: of each kind that the settings name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pp_hostd.kube.resources import (
    NODES,
    POISON_PILL_REMEDIATIONS,
    PROPOSED_REMEDIATIONS,
    REMEDIATIONS,
    Resource,
    template_of,
)
from pp_hostd.leader.caches import Watch
from pp_hostd.leader.interfaces import RBAC_GROUP, READ, Reading, Remedy, Requester, rule, sub_rule
from pp_hostd.leader.node_memory import NextAction, NodeMemory, Term
from pp_hostd.leader.requests.remediation_objects.definitions import definitions
from pp_hostd.leader.requests.remediation_objects.plan import remediations
from pp_hostd.leader.requests.remediation_objects.remediation import (
    KINDS,
    POISON_PILL,
    PROPOSED,
    REMEDIATION,
    Remediation,
    RemediationCache,
    RemediationsSeen,
    is_carried_out,
)
from pp_hostd.leader.steps.api import Json
from pp_hostd.model.observed import Observed
from pp_hostd.model.settings import Settings

HEALTH_CHECKS = "pp-hostd:health-checks"
_GATHERED_BY = (
    "cluster.x-k8s.io/aggregate-to-manager",  # Cluster API
    "rbac.ext-remediation/aggregate-to-ext-remediation",  # OpenShift, medik8s
)


class RemediationObjects(Requester):
    """The leader requests a machine's remediation on behalf of each object, and tells the object how that goes."""

    name = "external-remediation"
    needs_machines = False

    def reading(self, settings: Settings) -> Reading:
        seen: dict[str, Remediation] = {}
        watches = tuple(
            Watch(
                REMEDIATIONS[kind.name],
                (RemediationCache(kind, seen),),
                unused=not is_carried_out(kind, settings),
            )
            for kind in KINDS
        )
        return Reading(REMEDIATION, watches, lambda: RemediationsSeen(seen))

    def rights(self, machines: Resource) -> list[Json]:
        """Of whichever kind the cluster serves; and the conditions of a Machine that is left to its owner."""
        if machines is NODES:
            return [rule(POISON_PILL_REMEDIATIONS, f"{READ} patch"), sub_rule(POISON_PILL_REMEDIATIONS)]
        kinds = [versions[0] for versions in REMEDIATIONS.values()]
        objects = [rule(kind, f"{READ} patch") for kind in kinds]
        return [rule(machines, "delete"), *objects, *(sub_rule(kind) for kind in (*kinds, machines))]

    def objections(self, kind: Resource, api_object: Json) -> Iterator[str]:
        metadata = api_object["metadata"]
        if not {POISON_PILL.finalizer, PROPOSED.finalizer}.isdisjoint(metadata.get("finalizers") or ()):
            what = kind.describe(metadata["namespace"], metadata["name"])
            yield f"{what} is being carried out: let pp-leader finish, or delete it while pp-leader runs"

    def definitions(self, machines: Resource) -> list[Json]:
        return definitions(_defined(machines))

    def roles(self, machines: Resource, granted: bool) -> list[Json]:
        """Returns the ClusterRole that health checks need to make our objects of our templates. Their own ClusterRoles
        aggregate it by these labels. It has no rules if it is not `granted`."""
        kinds = _defined(machines) if granted else ()
        rules = [
            each for kind in kinds for each in (rule(template_of(kind), READ), rule(kind, f"{READ} create delete"))
        ]
        metadata = {"name": HEALTH_CHECKS, "labels": dict.fromkeys(_GATHERED_BY, "true")}
        return [{"apiVersion": f"{RBAC_GROUP}/v1", "kind": "ClusterRole", "metadata": metadata, "rules": rules or None}]

    def next_actions(
        self,
        settings: Settings,
        observed: Observed,
        term: Term,
        next_actions: Sequence[NextAction],
        remedies: Sequence[Remedy],
        now: float,
    ) -> Iterator[tuple[NextAction | None, NodeMemory]]:
        return remediations(settings, observed, term, next_actions, remedies, now)

    def about(self, observed: Observed, next_action: NextAction) -> Iterator[tuple[Resource, str, str, str]]:
        found = observed.part(RemediationsSeen).seen.get(next_action.of)
        if found is not None:
            yield REMEDIATIONS[found.kind.name][0], found.namespace, found.name, found.uid


def _defined(machines: Resource) -> tuple[Resource, ...]:
    """The kinds that we define. Objects by power are for Machines alone."""
    return (POISON_PILL_REMEDIATIONS, *(() if machines is NODES else (PROPOSED_REMEDIATIONS,)))


REMEDIATION_OBJECTS = RemediationObjects()
