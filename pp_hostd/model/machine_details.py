"""The facts of a machine beside its condemnation: its BareMetalHost, its flow, who has it remedied, who owns it."""

from __future__ import annotations

import enum

from pp_hostd.frozen import frozen, replace
from pp_hostd.model.keys import CLUSTER_NAME, FLOW, HOST, PAUSED_MACHINE, REQUESTED_BY, SKIP_REMEDIATION
from pp_hostd.model.record import (
    HOST_NAME,
    MAX_RECORD_CHARACTERS,
    NAME,
    OPAQUE,
    PROSE,
    Fields,
    Refused,
    Unreadable,
    document,
    matching,
    read,
    render,
)

CHECKS_CLAIM = "NodeHealthCheck "
"""Begins the `of` of a claim that a NodeHealthCheck has made."""
EXTERNALLY_REMEDIATED = "ExternallyRemediated"
LISTS = (("conditions",), ("v1beta2", "conditions"), ("deprecated", "v1beta1", "conditions"))
"""Where in the status of a Machine conditions are, by the version of its API."""


class Remediated(enum.Enum):
    """Status and reason of the condition; WITHDRAWN: there is none."""

    AWAITED = "False/WaitingForRemediation"
    SUCCEEDED = "True/Succeeded"
    FAILED = "False/RemediationFailed"
    WITHDRAWN = ""

    def replaces(self, said: str) -> bool:
        """Whether it is to stand in place of this. Of several objects for one Machine the one that helped counts."""
        if self is Remediated.SUCCEEDED:
            return said != Remediated.SUCCEEDED.value
        if self is Remediated.AWAITED:
            return said.startswith("True/")
        return said == Remediated.AWAITED.value


def said_by(condition: object) -> str | None:
    """Returns status/reason of a condition ExternallyRemediated; None if the condition is another one."""
    if not isinstance(condition, dict) or condition.get("type") != EXTERNALLY_REMEDIATED:
        return None
    return f"{condition.get('status')}/{condition.get('reason')}"


_OPENSHIFT, _METAL3 = "baremetalhost:///", "metal3://"
OWNER_REMEDIATED = "OwnerRemediated"
_ROLE, _CONTROL_PLANE = "machine.openshift.io/cluster-api-machine-role", "cluster.x-k8s.io/control-plane"

_ACTUATORS_MARKS = (
    "remediation.metal3.io/powered-off-for-remediation",
    "remediation.metal3.io/node-annotations-backup",
    "remediation.metal3.io/node-labels-backup",
    "remediation.metal3.io/power-on-will-timeout-at",
)


@frozen
class HostReference:
    """The host's namespace/name and its uid; one of the two may be empty."""

    machine_key: str
    uid: str

    def __str__(self) -> str:
        return self.machine_key or f"of uid {self.uid}"


@frozen
class Claim:
    """Of a remediation object or a health check, by its kind and name and by its uid. `flow` is the remedy that it
    wants; empty if it leaves that to the machine."""

    of: str
    uid: str
    flow: str = ""

    @property
    def is_of_check(self) -> bool:
        """Whether a NodeHealthCheck has made it, and no remediation object."""
        return self.of.startswith(CHECKS_CLAIM)

    def render(self) -> str:
        return render({"of": self.of, "uid": self.uid, "flow": self.flow or None})


@frozen
class MachineDetails:
    """`host` is None for a machine that stands on none. `flow` is the remedy that its annotation names; `claim` is of
    the remediation object that has it remedied. `kept` says why nobody may delete the Machine; empty if anybody may.
    `escalated`: its owner was told that it can't be helped. `actuator` is the mark that OpenShift's own bare-metal
    actuator has left on it, empty if none."""

    host: HostReference | Unreadable | None = None
    flow: str | Unreadable | None = None
    claim: Claim | Unreadable | None = None
    kept: str = ""
    paused: str = ""
    """The annotation by which its owner wants nobody to remedy it; empty if there is none."""
    cluster: str = ""
    """The namespace/name of the Cluster that its label names; empty if it names none."""
    deleting: bool = False
    escalated: bool = False
    external: tuple[str, ...] = ()
    """The status/reason of each of its conditions ExternallyRemediated; empty if there is none."""
    actuator: str = ""
    control_plane: bool = False
    """Whether its own labels say that it runs the control plane, whatever those of its Node say."""


NO_HOST = MachineDetails()
NODE = MachineDetails(kept="it is a Node, which stands for itself")


def parse_machine_details(api_object: object) -> MachineDetails | Unreadable:
    """Returns the details of a Machine of the API, or of a Node that stands for itself."""
    return read("the machine", lambda source: _details(Fields(source)), api_object)


def _details(machine: Fields) -> MachineDetails:
    metadata = machine.section("metadata")
    return _of_machine(machine, metadata) if "namespace" in metadata else _of_node(metadata.section("annotations"))


def _of_node(annotations: Fields) -> MachineDetails:
    """A Node does not say on which host it stands, and no owner replaces it."""
    if FLOW not in annotations and REQUESTED_BY not in annotations:  # so are thousands
        return NODE
    return replace(NODE, flow=_flow(annotations), claim=_claimed(annotations))


def _of_machine(machine: Fields, metadata: Fields) -> MachineDetails:
    annotations = metadata.section("annotations")
    provider = machine.section("spec").anything("providerID")
    return MachineDetails(
        host=read("the machine's host", lambda source: _reference(source, annotations), provider),
        flow=_flow(annotations),
        claim=_claimed(annotations),
        kept=_kept(metadata),
        control_plane=_is_control_plane(metadata.section("labels")),
        paused=next((key for key in (PAUSED_MACHINE, SKIP_REMEDIATION) if key in annotations), ""),
        cluster=_cluster(metadata),
        deleting=metadata.anything("deletionTimestamp") is not None,
        actuator=next((mark for mark in _ACTUATORS_MARKS if mark in annotations), ""),
        external=_external(machine.section("status")),
        escalated=any(_is_escalation(each) for each in machine.section("status").elements("conditions")),
    )


def _flow(annotations: Fields) -> str | Unreadable | None:
    if FLOW not in annotations:
        return None
    return read("the machine's flow", lambda source: source.text(FLOW, NAME), annotations)


def _claimed(annotations: Fields) -> Claim | Unreadable | None:
    if REQUESTED_BY not in annotations:
        return None
    return read("the machine's claim", _claim, annotations.anything(REQUESTED_BY))


def _external(status: Fields) -> tuple[str, ...]:
    found: list[str] = []
    for *sections, key in LISTS:
        within = status
        for section in sections:
            within = within.section(section)
        found += filter(None, map(said_by, within.elements(key)))
    return tuple(found)


def _cluster(metadata: Fields) -> str:
    name = metadata.section("labels").anything(CLUSTER_NAME)
    return f"{metadata.anything('namespace')}/{name}" if name else ""


def _claim(text: object) -> Claim:
    fields = document(text, MAX_RECORD_CHARACTERS)
    flow = fields.text("flow", NAME) if "flow" in fields else ""
    return Claim(fields.text("of", PROSE), fields.text("uid", OPAQUE), flow)


def _is_escalation(condition: object) -> bool:
    return isinstance(condition, dict) and (condition.get("type"), condition.get("status")) == (
        OWNER_REMEDIATED,
        "False",
    )


def _reference(provider: object, annotations: Fields) -> HostReference | None:
    """The provider's id wins; only where it is empty the annotation counts."""
    if not provider:
        return HostReference(annotations.text(HOST, HOST_NAME), "") if HOST in annotations else None
    if not isinstance(provider, str):
        raise Refused("spec.providerID is not text")
    if provider.startswith(_OPENSHIFT):
        namespace, _, rest = provider[len(_OPENSHIFT) :].partition("/")
        name, _, uid = rest.partition("/")
        return HostReference(_named(namespace, name), matching(uid, OPAQUE, "the uid") if uid else "")
    if provider.startswith(_METAL3):
        parts = provider[len(_METAL3) :].split("/")
        if len(parts) == 1:  # as it was written before names were
            return HostReference("", matching(parts[0], OPAQUE, "the uid in spec.providerID"))
        return HostReference(_named(parts[0], parts[1]), "")
    return None


def _named(namespace: str, name: str) -> str:
    return matching(f"{namespace}/{name}", HOST_NAME, "the host in spec.providerID")


def _is_control_plane(labels: Fields) -> bool:
    return labels.anything(_ROLE) in ("master", "control-plane") or _CONTROL_PLANE in labels


def _kept(metadata: Fields) -> str:
    if _is_control_plane(metadata.section("labels")):
        return "it is a control-plane machine"
    owners = (Fields(owner, "an owner") for owner in metadata.elements("ownerReferences"))
    return "" if any(owner.anything("controller") is True for owner in owners) else "no controller owns it"


def parse_cluster_pause(api_object: object) -> str | Unreadable:
    """Returns the annotation or field that pauses a Cluster of the API; empty if none does."""
    return read("the Cluster", lambda source: _pause(Fields(source)), api_object)


def _pause(cluster: Fields) -> str:
    if PAUSED_MACHINE in cluster.section("metadata").section("annotations"):
        return f"the annotation {PAUSED_MACHINE}"
    return "spec.paused" if cluster.section("spec").anything("paused") else ""


def wish_of_machine(machine_key: str, about: MachineDetails) -> str:
    """Why its own marks hold the remedy back; empty if none."""
    return f"Machine {machine_key} bears {about.paused}. To go on: remove that annotation" if about.paused else ""


def wish_of_cluster(cluster: str, pause: str | Unreadable | None) -> str:
    """Why its Cluster holds the remedy back; empty if it does not. `pause` is None if there is no such Cluster."""
    if pause is None:
        return f"whether Cluster {cluster} is paused is not known: there is none that can be read. Correct that"
    if isinstance(pause, Unreadable):
        return f"whether Cluster {cluster} is paused is not known: {pause}. Correct that"
    return f"Cluster {cluster} is paused ({pause}). To go on: end that pause" if pause else ""
