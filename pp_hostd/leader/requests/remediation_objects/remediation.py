"""Remediation objects, which health checks make of a template: one, and all that the leader sees."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import field
from typing import Callable

from pp_hostd.frozen import frozen
from pp_hostd.leader.caches import Cache
from pp_hostd.leader.steps.port import Kind
from pp_hostd.model.observed import Observed
from pp_hostd.model.record import NAME, OPAQUE, Fields, Refused, Unreadable, read
from pp_hostd.model.settings import Settings

CONDITION, SUCCEEDED = "Remediated", "Succeeded"
"""The type of a remediation's own condition, and its reason once that is true."""
MOST_RETRIES, MOST_SECONDS = 1000, 86400
_DURATION = re.compile(r"(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})(?:\.\d{1,9})?s)?")
_MACHINE, _NODE_HEALTH_CHECK = "Machine", "NodeHealthCheck"
_NODE_NAME = "remediation.medik8s.io/node-name"
"""The annotation by which medik8s says whose Node it is. The object's own name may only begin with the Node's."""
_UNIT_SECONDS = (3600, 60, 1)


class Phase(enum.Enum):
    """How far a remediation has come; each kind has its own words for it."""

    NEW = "new"
    RUNNING = "running"
    WAITING = "waiting"
    DELETING = "deleting"
    FAILED = "failed"


@frozen
class Strategy:
    """The attempts are one more than the retries. `off_seconds` is None where the kind does not tell: then it is what
    the settings say. `deletes`: after the last attempt the Machine is deleted, else it is left to its owner."""

    retry_limit: int
    timeout_seconds: float
    off_seconds: float | None = None
    deletes: bool = False


@frozen
class RemediationKind:
    """`name` tells it from others of the same kind; `remedy` is the one that it wants, `conditions` says
    whether its status has room for them."""

    name: str
    kind: str
    remedy: str
    finalizer: str
    words: Mapping[Phase, str]
    conditions: bool
    strategy: Callable[[Fields], Strategy]


@frozen
class Remediation:
    """`machine` is the Machine it is for, `machine_uid` that one's uid; both are empty where it names a `node`, which
    else is. `stranger`: why nobody knows what its name means, which is then taken for a Machine's.
    `reason` is that of its condition, empty where there is none. `node_uid` is the uid of the Node whose remediation
    this attempt requests, where Nodes stand for themselves; empty before that."""

    kind: RemediationKind
    namespace: str
    name: str
    uid: str
    resource_version: str
    machine: str
    machine_uid: str
    node: str
    stranger: str
    deleting: bool
    finalized: bool
    strategy: Strategy | Unreadable
    phase: Phase | Unreadable
    retry_count: int
    reason: str
    node_uid: str

    @property
    def holds_node(self) -> bool:
        """Whether it has requested the remediation of its Node, and the node is not known to be well since."""
        return bool(self.node_uid) and self.finalized and self.phase in (Phase.RUNNING, Phase.WAITING)

    @property
    def machine_key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def key(self) -> str:
        """How it is called, everywhere."""
        return f"{self.kind.name} {self.machine_key}"


def parse_remediation(api_object: object, kind: RemediationKind) -> Remediation | Unreadable:
    return read(f"the {kind.kind}", lambda source: _remediation(Fields(source), kind), api_object)


def _remediation(fields: Fields, kind: RemediationKind) -> Remediation:
    metadata, spec, status = fields.section("metadata"), fields.section("spec"), fields.section("status")
    namespace, name = metadata.text("namespace", NAME), metadata.text("name", NAME)
    references = (Fields(each, "an owner") for each in metadata.elements("ownerReferences"))
    owners = {str(owner.anything("kind")): owner for owner in references}
    node = _node(metadata, name) if _NODE_HEALTH_CHECK in owners and _MACHINE not in owners else ""
    machine, machine_uid = _machine(owners, name)
    count = status.anything("retryCount")
    return Remediation(
        kind=kind,
        namespace=namespace,
        name=name,
        uid=metadata.text("uid", OPAQUE),
        resource_version=metadata.text("resourceVersion", OPAQUE),
        machine="" if node else f"{namespace}/{machine}",
        machine_uid=machine_uid,
        node=node,
        stranger=_stranger(owners),
        deleting=metadata.anything("deletionTimestamp") is not None,
        finalized=kind.finalizer in metadata.elements("finalizers"),
        strategy=read("its spec", kind.strategy, spec),
        phase=read("its status", lambda source: _phase(source, kind), status),
        retry_count=count if isinstance(count, int) and 0 <= count <= MOST_RETRIES else 0,
        reason=_reason(status),
        node_uid=status.text("nodeUID", OPAQUE) if status.anything("nodeUID") else "",
    )


def _node(metadata: Fields, name: str) -> str:
    annotations = metadata.section("annotations")
    return annotations.text(_NODE_NAME, NAME) if _NODE_NAME in annotations else name


def _machine(owners: Mapping[str, Fields], name: str) -> tuple[str, str]:
    """Its owner that is a Machine; health checks also give it the Machine's own name."""
    if _MACHINE in owners:
        return owners[_MACHINE].text("name", NAME), owners[_MACHINE].text("uid", OPAQUE)
    return name, ""


def _stranger(owners: Mapping[str, Fields]) -> str:
    if not owners:
        return "nobody owns it"
    known = _MACHINE in owners or _NODE_HEALTH_CHECK in owners
    return "" if known else f"it is owned by a {' and a '.join(sorted(owners))[:100]}"


def _phase(status: Fields, kind: RemediationKind) -> Phase:
    word = status.anything("phase")
    if not word:
        return Phase.NEW
    for phase, known in kind.words.items():
        if word == known:
            return phase
    raise Refused(f"phase is {str(word)[:40]!r}, not one of {', '.join(kind.words.values())}")


def _reason(status: Fields) -> str:
    for each in status.elements("conditions"):
        if isinstance(each, dict) and each.get("type") == CONDITION:
            return str(each.get("reason") or "")
    return ""


def _within(fields: Fields, key: str, least: int, most: int, default: int) -> int:
    value = fields.anything(key)
    if value is None:
        return default
    if type(value) is not int or not least <= value <= most:
        raise Refused(f"{key} is {str(value)[:40]}, not a whole number from {least} to {most}")
    return value


def _duration_seconds(value: object) -> float:
    """As Go writes durations: 10m0s, 600s, 1h30m."""
    found = _DURATION.fullmatch(value) if isinstance(value, str) and value else None
    seconds = 0 if found is None else sum(int(part or 0) * unit for part, unit in zip(found.groups(), _UNIT_SECONDS))
    if not 1 <= seconds <= MOST_SECONDS:
        raise Refused(f"timeout is {str(value)[:40]!r}, not a time like 10m0s, of at most a day")
    return float(seconds)


def _reboot(spec: Fields) -> Strategy:
    strategy = spec.section("strategy")
    called = strategy.anything("type")
    if called not in (None, "Reboot"):
        raise Refused(f"strategy.type is {str(called)[:40]!r}, and only Reboot is known")
    retries = _within(strategy, "retryLimit", 0, MOST_RETRIES, 1)
    if "timeout" in strategy:
        return Strategy(retries, _duration_seconds(strategy.anything("timeout")))
    return Strategy(retries, _within(strategy, "timeoutSeconds", 1, MOST_SECONDS, 600))


def _escalate(spec: Fields) -> Strategy:
    called = spec.anything("strategy")
    if called != "escalate":
        raise Refused(f"strategy is {str(called)[:40]!r}, and only escalate is known")
    return Strategy(
        _within(spec, "deleteAfterRetries", 0, MOST_RETRIES, 1),
        _within(spec, "powerOnTimeoutSeconds", 1, MOST_SECONDS, 600),
        _within(spec, "powerOffTimeoutSeconds", 1, MOST_SECONDS, 600),
        deletes=True,
    )


def _self_reset(spec: Fields) -> Strategy:
    retries = _within(spec, "retryLimit", 0, MOST_RETRIES, 1)
    return Strategy(retries, _within(spec, "timeoutSeconds", 1, MOST_SECONDS, 600))


_WORDS = {
    Phase.RUNNING: "Running",
    Phase.WAITING: "Waiting",
    Phase.DELETING: "Deleting machine",
    Phase.FAILED: "Failed",
}
POISON_PILL = RemediationKind(
    name="PoisonPillRemediation",
    kind="PoisonPillRemediation",
    remedy="poison-pill",
    finalizer="pp-hostd.io/remediation",
    words=_WORDS,
    conditions=True,
    strategy=_self_reset,
)
METAL3 = RemediationKind(
    name="Metal3Remediation",
    kind="Metal3Remediation",
    remedy="power-cycle",
    finalizer="metal3remediation.infrastructure.cluster.x-k8s.io",
    words=_WORDS,
    conditions=False,
    strategy=_reboot,
)
PROPOSED = RemediationKind(
    name="Metal3Remediation of remediation.metal3.io",
    kind="Metal3Remediation",
    remedy="power-cycle",
    finalizer="remediation.metal3.io",
    words={
        Phase.RUNNING: "power-off",
        Phase.WAITING: "power-on",
        Phase.DELETING: "deleting-machine",
        Phase.FAILED: "failed",
    },
    conditions=False,
    strategy=_escalate,
)
KINDS = (POISON_PILL, METAL3, PROPOSED)


def is_carried_out(kind: RemediationKind, settings: Settings) -> bool:
    """Whether the leader takes objects of this kind. Those by power need a Machine, which says where its host is."""
    wanted = settings.remediations
    if kind is POISON_PILL:
        return wanted.poison_pill
    return settings.api.machines != "node" and (wanted.metal3 if kind is METAL3 else wanted.metal3_proposed)


REMEDIATION = Kind("remediation")


@frozen
class RemediationsSeen:
    """By what they are called."""

    seen: Mapping[str, Remediation] = field(default_factory=dict)


class RemediationCache(Cache[Remediation]):
    """Objects of one kind, by what they are called; `seen` is shared with those of other kinds."""

    def __init__(self, kind: RemediationKind, seen: dict[str, Remediation]) -> None:
        super().__init__(kind.kind)
        self.seen = seen
        self._kind = kind

    def _name(self, metadata: Fields) -> str:
        return f"{self._kind.name} {metadata.text('namespace', NAME)}/{super()._name(metadata)}"

    def _find(self, api_object: object) -> Remediation | Unreadable:
        return parse_remediation(api_object, self._kind)

    def _take(self, name: str, found: Remediation | None) -> None:
        if found is None:
            self.seen.pop(name, None)
        else:
            self.seen[name] = found


def machine_of(observed: Observed, found: Remediation, machines: str) -> str:
    """The machine that this object is for, or that of the Node that it names; empty if that is missing. `machines` is
    the setting of that name."""
    if not found.node:
        return found.machine
    if machines == "node":
        return found.node
    seen = observed.nodes.get(found.node)
    if seen is not None and isinstance(seen.machine_key, str):
        return seen.machine_key
    of_node = (name for name, each in observed.machines.items() if each.machine.node == found.node)
    return next(of_node, "")
