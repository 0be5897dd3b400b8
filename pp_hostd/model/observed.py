"""The cluster as the leader sees it: what it keeps of each Node and machine, and its own ConfigMaps."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import field
from typing import TypeVar

from pp_hostd.frozen import frozen
from pp_hostd.model.backup import Backup
from pp_hostd.model.budget import Budget
from pp_hostd.model.condemnation import Confirmation, parse_confirmation
from pp_hostd.model.control import Control
from pp_hostd.model.keys import (
    CONFIRMED_DEAD,
    CORDONED,
    FENCED_BOOT,
    FREED,
    OUT_OF_SERVICE,
    PAUSED_NODE,
    REPLACES,
    REQUESTED_AGAIN,
)
from pp_hostd.model.machine import Machine, machine_of_node
from pp_hostd.model.machine_details import NO_HOST, MachineDetails
from pp_hostd.model.node import Node, parse_node
from pp_hostd.model.record import COUNT, Fields, Unreadable, read
from pp_hostd.model.roster import Roster

Part = TypeVar("Part")
CONTROL_PLANE_LABELS = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")


@frozen
class NodeSeen:
    """A Node; `machine_key` names its machine. `freed` and `confirmed` are None where nothing is. `replaces` is
    the uid of the Node that somebody else replaced by it, once it has what that one had; empty if none. `conditioned`:
    it has a Ready condition, whatever that says. `requested_again`: a leader has noted that remediation was requested
    again before the host was back. `fenced_boots` are those that must not get their storage back.
    `unbroken_since` changes whenever the watch has shown that another promise
    binds the host than before, or that its Node got or lost the taint, and when it had to begin again: with the same
    one there was no gap."""

    node: Node
    machine_key: str | Unreadable
    control_plane: bool = False
    freed: int | Unreadable | None = None
    confirmed: Confirmation | Unreadable | None = None
    cordoned_by_us: bool = False
    out_of_service: bool = False
    paused: bool = False
    replaces: str = ""
    finalizers: tuple[str, ...] = ()
    ready: bool = False
    conditioned: bool = True
    requested_again: bool = False
    fenced_boots: tuple[str, ...] = ()
    unbroken_since: int = field(default=0, compare=False)

    @property
    def marked(self) -> bool:
        """Whether it bears what the leader puts on the Node of a condemned machine, and takes away again."""
        node = self.node
        condemned = node.tainted or node.freeing is not None or self.cordoned_by_us
        return condemned or self.confirmed is not None or self.requested_again

    @property
    def away(self) -> bool:
        """Whether the host was freed, and neither its agent nor its kubelet has come back since."""
        return isinstance(self.freed, int) and self.node.agent is None and not self.ready


@frozen
class MachineSeen:
    """A machine as the watch shows it. `unbroken_since` changes whenever it was seen in another condemnation than
    before, and when the watch had to begin again: two looks with the same one saw the same condemnation, without a gap
    (rule 9). `after` is the last version that was seen before it; empty where none was."""

    machine: Machine
    unbroken_since: int
    after: str = ""
    host: MachineDetails = NO_HOST


@frozen
class ClustersSeen:
    """`pauses` holds the pause of each of Cluster API's Clusters, by namespace/name; empty if nothing pauses it. `late`
    says why the Clusters have not been listed yet; empty otherwise."""

    pauses: Mapping[str, str] = field(default_factory=dict)
    late: str = ""


@frozen
class BackupSeen:
    """A stored backup, and the ConfigMap's version."""

    backup: Backup | Unreadable
    resource_version: str


def is_early(stored: BackupSeen) -> bool:
    """Whether it was stored before its Node was touched, and so licenses nothing."""
    return isinstance(stored.backup, Backup) and stored.backup.early


@frozen
class RosterSeen:
    """The stored roster, and the ConfigMap's version."""

    roster: Roster | Unreadable
    resource_version: str


@frozen
class BudgetSeen:
    """The stored budget, and the ConfigMap's version."""

    budget: Budget | Unreadable
    resource_version: str


@frozen
class Observed:
    """`requests` names the machines that need work (their condemnation is anything but NotRequested, or its
    label is left), `marked` the Nodes that bear the leader's marks: so a plan looks at these alone. `not_ready`
    names the Nodes that have a Ready condition which is not True. `enrolled` are names of nodes. `claims` are the
    machines that name a BareMetalHost, by its namespace/name or, where they tell only that, its uid.
    `machines_revision` grows whenever another uid or Node is a machine's. `parts` are what remedies and requesters read
    for themselves, by its type."""

    nodes: Mapping[str, NodeSeen] = field(default_factory=dict)
    machines: Mapping[str, MachineSeen] = field(default_factory=dict)
    requests: tuple[str, ...] = ()
    marked: tuple[str, ...] = ()
    not_ready: Set[str] = frozenset()
    backups: Mapping[str, BackupSeen] = field(default_factory=dict)
    roster: RosterSeen | None = None
    control: Control = field(default_factory=lambda: Control(None, None))
    budget: BudgetSeen | None = None
    enrolled: frozenset[str] = frozenset()
    clusters: ClustersSeen = ClustersSeen()
    claims: Mapping[str, Set[str]] = field(default_factory=dict)
    machines_revision: int = 0
    parts: Mapping[type, object] = field(default_factory=dict)

    def part(self, of: type[Part]) -> Part:
        """The part of this type; an empty one where nothing of it is read."""
        found = self.parts.get(of)
        return found if isinstance(found, of) else of()


def parse_node_seen(api_object: object, machines: str) -> NodeSeen | Unreadable:
    """The Node in an object of the API; `machines` is the setting of that name."""
    node = parse_node(api_object)
    if isinstance(node, Unreadable):
        return node
    return read("the Node", lambda source: _node_seen(node, Fields(source), machines), api_object)


def _node_seen(node: Node, fields: Fields, machines: str) -> NodeSeen:
    metadata = fields.section("metadata")
    annotations, labels = metadata.section("annotations"), metadata.section("labels")
    taints = [Fields(taint, "a taint") for taint in fields.section("spec").elements("taints")]
    conditions = tuple(fields.section("status").elements("conditions"))
    confirmed = annotations.anything(CONFIRMED_DEAD) if CONFIRMED_DEAD in annotations else None
    return NodeSeen(
        node=node,
        machine_key=machine_of_node(fields.without(), machines),
        control_plane=any(label in labels for label in CONTROL_PLANE_LABELS),
        freed=read("the mark of a freed Node", _freed, annotations) if FREED in annotations else None,
        confirmed=None if confirmed is None else parse_confirmation(confirmed),
        cordoned_by_us=CORDONED in annotations,
        out_of_service=any(taint.anything("key") == OUT_OF_SERVICE for taint in taints),
        paused=PAUSED_NODE in annotations,
        replaces=str(annotations.anything(REPLACES) or ""),
        finalizers=tuple(str(each)[:100] for each in metadata.elements("finalizers")),
        ready=any(_is_ready(each) for each in conditions),
        conditioned=any(isinstance(each, dict) and each.get("type") == "Ready" for each in conditions),
        requested_again=REQUESTED_AGAIN in annotations,
        fenced_boots=tuple(str(annotations.anything(FENCED_BOOT) or "").split()),
    )


def _is_ready(condition: object) -> bool:
    return isinstance(condition, dict) and (condition.get("type"), condition.get("status")) == ("Ready", "True")


def _freed(annotations: Fields) -> int:
    return int(annotations.text(FREED, COUNT))
