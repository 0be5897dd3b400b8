"""A MachineHealthCheck as the leader reads it: its rules, its status, and who else writes that."""

from __future__ import annotations

from collections.abc import Iterator

from pp_hostd.frozen import frozen
from pp_hostd.kube.resources import MACHINE_HEALTH_CHECKS, Resource
from pp_hostd.leader.caches import Cache
from pp_hostd.leader.facts.nodes import wallclock_of
from pp_hostd.leader.requests.machine_health_checks.conditions import ConditionList, Spelling, read_lists
from pp_hostd.leader.requests.machine_health_checks.rules import Rules, parse_rules
from pp_hostd.leader.steps.port import Kind
from pp_hostd.model.keys import CLUSTER_NAME, PAUSED_MACHINE
from pp_hostd.model.record import NAME, OPAQUE, Fields, Refused, Unreadable, read

MACHINE_HEALTH_CHECK = Kind("MachineHealthCheck")
MANAGER = "pp-hostd"
"""By which the API knows our writes: our client's name."""
MOST_TARGETS = 10_000
"""So many are named in a status at most, as its schema allows."""


@frozen
class Status:
    """Its status. `targets` are names of Machines; OpenShift's has none, and no generation."""

    generation: int = 0
    expected: int = -1
    healthy: int = -1
    allowed: int = -1
    targets: tuple[str, ...] = ()


@frozen
class MachineHealthCheck:
    """`writer` is the other controller that has written its status, empty if there is none. `paused`: by its
    annotation. `label` is the Cluster that its label names, `owners` are the uids of its owners."""

    spelling: Spelling
    namespace: str
    name: str
    uid: str
    resource_version: str
    generation: int
    created_wallclock: float
    rules: Rules | Unreadable
    status: Status
    lists: tuple[ConditionList, ...]
    writer: str = ""
    paused: bool = False
    label: str = ""
    owners: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """By which the API serves it."""
        return f"{self.namespace}/{self.name}"

    @property
    def key(self) -> str:
        """How it is called, everywhere."""
        return f"MachineHealthCheck {self.path}"

    @property
    def cluster(self) -> str:
        """The namespace/name of its Cluster; empty if it has none that can be read."""
        named = isinstance(self.rules, Rules) and self.rules.cluster
        return f"{self.namespace}/{named}" if named else ""

    @property
    def api(self) -> str:
        """Its API as the setting api.machines names it."""
        return "cluster-api" if self.spelling.is_cluster_api else "openshift"

    @property
    def kind(self) -> Resource:
        return next(each for each in MACHINE_HEALTH_CHECKS[self.api] if each.api_version == self.spelling.value)


class MachineHealthChecksCache(Cache[MachineHealthCheck]):
    """By namespace/name. A status that changes nothing else is no change to judge by."""

    def __init__(self) -> None:
        super().__init__(MACHINE_HEALTH_CHECK.called)
        self.seen: dict[str, MachineHealthCheck] = {}
        self.changes = 0

    def _name(self, metadata: Fields) -> str:
        return f"{metadata.text('namespace', NAME)}/{super()._name(metadata)}"

    def _find(self, api_object: object) -> MachineHealthCheck | Unreadable:
        return parse_machine_health_check(api_object)

    def _take(self, name: str, found: MachineHealthCheck | None) -> None:
        before = self.seen.pop(name, None)
        if found is not None:
            self.seen[name] = found
        self.changes += before is None or found is None or _judged_by(before) != _judged_by(found)


def _judged_by(check: MachineHealthCheck) -> object:
    return check.uid, check.rules, check.paused, check.writer


def parse_machine_health_check(api_object: object) -> MachineHealthCheck | Unreadable:
    return read("the MachineHealthCheck", lambda source: _health_check(Fields(source)), api_object)


def _health_check(fields: Fields) -> MachineHealthCheck:
    metadata, status, spelling = fields.section("metadata"), fields.section("status"), _spelling(fields)
    generation = metadata.anything("generation")
    owners = (Fields(each, "an owner") for each in metadata.elements("ownerReferences"))
    return MachineHealthCheck(
        spelling=spelling,
        namespace=metadata.text("namespace", NAME),
        name=metadata.text("name", NAME),
        uid=metadata.text("uid", OPAQUE),
        resource_version=metadata.text("resourceVersion", OPAQUE),
        generation=generation if isinstance(generation, int) else 0,
        created_wallclock=wallclock_of(metadata.anything("creationTimestamp")),
        rules=read("its spec", lambda source: parse_rules(source, spelling), fields),
        status=_status(status),
        lists=read_lists(spelling, status),
        writer=next(_writers(metadata), ""),
        paused=PAUSED_MACHINE in metadata.section("annotations"),
        label=str(metadata.section("labels").anything(CLUSTER_NAME) or ""),
        owners=tuple(str(each.anything("uid") or "") for each in owners),
    )


def _spelling(fields: Fields) -> Spelling:
    named = fields.anything("apiVersion")
    for each in Spelling:
        if named == each.value:
            return each
    raise Refused(f"apiVersion is {str(named)[:60]!r}, not one of {', '.join(each.value for each in Spelling)}")


def _writers(metadata: Fields) -> Iterator[str]:
    """The managers of fields in its status, but for us."""
    for each in metadata.elements("managedFields"):
        if not isinstance(each, dict):
            continue
        manager, written = str(each.get("manager") or "somebody without a name"), each.get("fieldsV1")
        of_status = each.get("subresource") == "status" or (isinstance(written, dict) and "f:status" in written)
        if of_status and manager != MANAGER:
            yield manager[:128]


def _status(status: Fields) -> Status:
    """A status that somebody has garbled counts as none: the leader writes it again."""
    try:
        targets = tuple(map(str, status.elements("targets")))
    except Refused:
        targets = ()
    keys = ("observedGeneration", "expectedMachines", "currentHealthy", "remediationsAllowed")
    generation, *counts = (status.anything(key) for key in keys)
    expected, healthy, allowed = (each if isinstance(each, int) else -1 for each in counts)
    return Status(generation if isinstance(generation, int) else 0, expected, healthy, allowed, targets)
