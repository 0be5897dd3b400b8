"""The facts of Machines and Clusters that health checks judge by, and all that the leader sees for these."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

from pp_hostd.frozen import frozen
from pp_hostd.leader.facts.nodes import FactsCache, NodeCondition, NodeFacts, wallclock_of
from pp_hostd.leader.requests.machine_health_checks.check import MachineHealthCheck
from pp_hostd.leader.requests.machine_health_checks.conditions import ConditionList, Spelling, read_lists
from pp_hostd.model.keys import EXTERNAL_REMEDIATION, PAUSED_MACHINE, SKIP_REMEDIATION
from pp_hostd.model.machine_details import LISTS
from pp_hostd.model.record import NAME, OPAQUE, Fields, Unreadable, read

REMEDIATE = "cluster.x-k8s.io/remediate-machine"
FAILED = "Failed"
_ROLE, _CONTROL_PLANE = "machine.openshift.io/cluster-api-machine-role", "cluster.x-k8s.io/control-plane"
_INFRASTRUCTURE, _INITIALIZED = "InfrastructureReady", "ControlPlaneInitialized"
NEVER = float("-inf")


@frozen
class MachineFacts:
    """`node` is the Node that nodeRef names, empty while it names none. `skipped`: the annotation by which its owner
    wants nobody to remedy it. `annotated`: it bears the annotation of external remediation. `owned`: a controller owns
    it, and makes another one if it is deleted. `updated_wallclock` is status.lastUpdated, infinite if there is none;
    `infrastructure_wallclock` is when its infrastructure was ready."""

    namespace: str
    name: str
    uid: str
    created_wallclock: float
    labels: Mapping[str, str]
    node: str
    conditions: tuple[NodeCondition, ...]
    lists: tuple[ConditionList, ...]
    skipped: str = ""
    annotated: bool = False
    remediate: bool = False
    deleting: bool = False
    owned: bool = False
    control_plane: bool = False
    phase: str = ""
    updated_wallclock: float = float("inf")
    infrastructure_wallclock: float = NEVER

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    def condition(self, of_type: str) -> NodeCondition | None:
        return next((each for each in self.conditions if each.type == of_type), None)


@frozen
class ClusterFacts:
    """A Cluster of Cluster API, and since when its infrastructure was ready and its control plane initialized."""

    api_version: str
    name: str
    uid: str
    infrastructure: bool
    initialized: bool
    infrastructure_wallclock: float = NEVER
    initialized_wallclock: float = NEVER


@frozen
class MachineHealthSeen:
    """Health checks, Machines and Clusters by namespace/name, Nodes by name. `node_names` are also those of Nodes that
    can't be read: these are not missing. `changes` grows with every change."""

    checks: Mapping[str, MachineHealthCheck] = field(default_factory=dict)
    machines: Mapping[str, MachineFacts] = field(default_factory=dict)
    nodes: Mapping[str, NodeFacts] = field(default_factory=dict)
    node_names: Mapping[str, str] = field(default_factory=dict)
    clusters: Mapping[str, ClusterFacts] = field(default_factory=dict)
    changes: int = 0


class MachineFactsCache(FactsCache[MachineFacts]):
    """All Machines, by namespace/name."""

    def _name(self, metadata: Fields) -> str:
        return f"{metadata.text('namespace', NAME)}/{super()._name(metadata)}"

    def _find(self, api_object: object) -> MachineFacts | Unreadable:
        return parse_machine_facts(api_object)


class ClusterFactsCache(FactsCache[ClusterFacts]):
    """All Clusters, by namespace/name."""

    def _name(self, metadata: Fields) -> str:
        return f"{metadata.text('namespace', NAME)}/{super()._name(metadata)}"

    def _find(self, api_object: object) -> ClusterFacts | Unreadable:
        return read("the Cluster", lambda source: _cluster(Fields(source)), api_object)


def parse_machine_facts(api_object: object) -> MachineFacts | Unreadable:
    return read("the Machine", lambda source: _machine(Fields(source)), api_object)


def _machine(machine: Fields) -> MachineFacts:
    metadata, status = machine.section("metadata"), machine.section("status")
    annotations, labels = metadata.section("annotations"), metadata.texts("labels")
    owners = (Fields(owner, "an owner") for owner in metadata.elements("ownerReferences"))
    reference, conditions = status.section("nodeRef"), tuple(_conditions(status))
    spelling = next((each for each in Spelling if machine.anything("apiVersion") == each.value), Spelling.OPENSHIFT)
    return MachineFacts(
        namespace=metadata.text("namespace", NAME),
        name=metadata.text("name", NAME),
        uid=metadata.text("uid", OPAQUE),
        created_wallclock=wallclock_of(metadata.anything("creationTimestamp")),
        labels=labels,
        node=reference.text("name", NAME) if "name" in reference else "",
        conditions=conditions,
        lists=read_lists(spelling, status),
        skipped=next((key for key in (PAUSED_MACHINE, SKIP_REMEDIATION) if key in annotations), ""),
        annotated=EXTERNAL_REMEDIATION in annotations,
        remediate=REMEDIATE in annotations,
        deleting=metadata.anything("deletionTimestamp") is not None,
        owned=any(owner.anything("controller") is True for owner in owners),
        control_plane=labels.get(_ROLE) in ("master", "control-plane") or _CONTROL_PLANE in labels,
        phase=str(status.anything("phase") or ""),
        updated_wallclock=wallclock_of(status.anything("lastUpdated")),
        infrastructure_wallclock=_since(conditions, _INFRASTRUCTURE),
    )


def _conditions(status: Fields) -> Iterable[NodeCondition]:
    """One of each type. Of several lists the newer one counts."""
    found: dict[str, NodeCondition] = {}
    for *sections, key in (LISTS[1], LISTS[0], LISTS[2]):
        within = status
        for section in sections:
            within = within.section(section)
        for each in within.elements(key):
            if isinstance(each, dict) and isinstance(each.get("type"), str) and isinstance(each.get("status"), str):
                since = wallclock_of(each.get("lastTransitionTime"))
                reason = str(each.get("reason") or "")
                found.setdefault(each["type"], NodeCondition(each["type"], each["status"], since, reason))
    return sorted(found.values())


def _since(conditions: Iterable[NodeCondition], of_type: str) -> float:
    """When this became true; never, if it is not."""
    found = (each.since_wallclock for each in conditions if (each.type, each.status) == (of_type, "True"))
    return next(found, NEVER)


def _cluster(cluster: Fields) -> ClusterFacts:
    """Its status says it by a field, or by a condition, as old as it is."""
    metadata, status = cluster.section("metadata"), cluster.section("status")
    conditions, initialization = tuple(_conditions(status)), status.section("initialization")
    true = {each.type for each in conditions if each.status == "True"}
    provisioned = initialization.anything("infrastructureProvisioned"), status.anything("infrastructureReady")
    return ClusterFacts(
        api_version=str(cluster.anything("apiVersion") or ""),
        name=metadata.text("name", NAME),
        uid=metadata.text("uid", OPAQUE),
        infrastructure=True in provisioned or _INFRASTRUCTURE in true,
        initialized=initialization.anything("controlPlaneInitialized") is True or _INITIALIZED in true,
        infrastructure_wallclock=_since(conditions, _INFRASTRUCTURE),
        initialized_wallclock=_since(conditions, _INITIALIZED),
    )
