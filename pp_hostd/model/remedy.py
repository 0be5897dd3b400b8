"""What the leader does about a node: the steps, each of them one write or one exchange, and what becomes of them."""

from __future__ import annotations

import enum
from typing import Union

from pp_hostd.frozen import frozen
from pp_hostd.model.backup import Backup
from pp_hostd.model.bare_metal_host import BareMetalHost, PowerRequest
from pp_hostd.model.budget import Beginning, Budget
from pp_hostd.model.externally_remediated import Remediated
from pp_hostd.model.machine import Machine
from pp_hostd.model.machine_host import Claim
from pp_hostd.model.observed import NodeSeen
from pp_hostd.model.record import Unreadable
from pp_hostd.model.remediation import Phase, Remediation
from pp_hostd.model.roster import Member, Roster
from pp_hostd.model.written import Written


class Freeing(enum.Enum):
    """Whose hands free the workloads."""

    ALL = "all pods"
    """The Node is gone: nobody else takes care of any of its pods."""
    SPARING = "all but daemon and static pods"
    """The Node stays, and with it what belongs to it."""
    AWAIT = "none"
    """The cluster itself frees them (out-of-service); it is only looked after."""


@frozen
class SpendBudget:
    """Count a remediation, before it begins: the last beginning of this budget. In place of the stored one of that
    version; None creates it."""

    budget: Budget
    resource_version: str | None

    @property
    def beginning(self) -> Beginning:
        return self.budget.beginnings[-1]


@frozen
class Cordon:
    """Keep workloads off the Node: unschedulable, and the taint that a rebooted kubelet honours (rule 9)."""

    node: str
    uid: str
    resource_version: str
    id: int


@frozen
class Condemn:
    """The one write of rule 9: time, id, label."""

    subject: str
    uid: str
    resource_version: str
    id: int


@frozen
class Inspect:
    """Linearizable reads of the machine, its Node, the kubelet's Lease and, if one is named, the BareMetalHost."""

    subject: str
    node: str
    host: str = ""


@frozen
class AskPeers:
    """Put the machine's own question to these peers (rule 10)."""

    subject: str
    uid: str
    peers: tuple[Member, ...]


@frozen
class StoreBackup:
    """In place of the stored one of that version; None creates it."""

    backup: Backup
    resource_version: str | None


@frozen
class DeleteNode:
    """The write that frees: it carries what was checked last (rule 12)."""

    node: str
    uid: str
    resource_version: str


@frozen
class MarkFreeing:
    """Where the Node is kept: the marker that the gate honours, before anything is freed (rule 12)."""

    node: str
    uid: str
    resource_version: str
    id: int
    out_of_service: bool


@frozen
class FreeWorkloads:
    """Delete the node's pods and VolumeAttachments at once."""

    node: str
    freeing: Freeing


@frozen
class Recreate:
    """Create the Node that the backup tells of."""

    backup: Backup


@frozen
class Complete:
    """Give a Node that came back by itself what it lacks of the backup; nothing that it has is overwritten."""

    backup: Backup
    uid: str


@frozen
class SetUnknown:
    """Give a Node that has no Ready condition a fresh Ready=Unknown, so that health checks don't call it healthy."""

    node: str
    uid: str
    resource_version: str


@frozen
class Clear:
    """Lift the condemnation, and keep its id."""

    subject: str
    uid: str
    resource_version: str
    last_id: int


@frozen
class NoteRequest:
    """Note on the Node that remediation is requested again, before its host is back."""

    node: str
    uid: str
    resource_version: str


@frozen
class Uncordon:
    """Take all our marks off the Node."""

    node: str
    uid: str


@frozen
class DropBackup:
    """The Node is back, or was never deleted: that very one must be there when it is dropped. None: it will not come
    back, and must not be there."""

    node: str
    uid: str | None
    resource_version: str


@frozen
class SwitchOff:
    """Have that version of a BareMetalHost, which reads on, switched off and kept off."""

    host: str
    uid: str
    resource_version: str
    request: PowerRequest


@frozen
class SwitchOn:
    """Take our power-off request back. `falls_back`: the host has to reset itself instead."""

    host: str
    uid: str
    resource_version: str
    falls_back: bool = False


@frozen
class DeleteMachine:
    """Its host does not come back: whoever owns the Machine makes another one."""

    subject: str
    uid: str
    resource_version: str


@frozen
class AskFor:
    """Ask for a machine's remedy on behalf of a remediation object."""

    subject: str
    uid: str
    resource_version: str
    claim: Claim


@frozen
class DropClaim:
    """The remediation object is done with the machine."""

    subject: str
    uid: str
    resource_version: str


@frozen
class HandToOwner:
    """Tell the machine's owner that it can't be helped, in both lists of conditions that there may be."""

    subject: str
    uid: str
    sentence: str


@frozen
class SetRemediated:
    """Has the condition ExternallyRemediated of a Machine say so, in every list that has it."""

    subject: str
    uid: str
    word: Remediated
    sentence: str


@frozen
class SetPhase:
    """How far a remediation object has come, in its status."""

    remediation: Remediation
    phase: Phase
    retry_count: int
    reason: str
    sentence: str


@frozen
class SetFinalizer:
    """Keep a remediation object from going before it is cleaned up after; or let it go."""

    remediation: Remediation
    present: bool


@frozen
class HandOver:
    """Give the Lease up: another leader must do this (rule 14)."""


@frozen
class WriteRoster:
    """In place of the one of that version; None creates it."""

    roster: Roster
    resource_version: str | None


Remedy = Union[
    SpendBudget,
    Cordon,
    Condemn,
    Inspect,
    AskPeers,
    StoreBackup,
    DeleteNode,
    MarkFreeing,
    FreeWorkloads,
    Recreate,
    Complete,
    SetUnknown,
    Clear,
    NoteRequest,
    Uncordon,
    DropBackup,
    SwitchOff,
    SwitchOn,
    DeleteMachine,
    AskFor,
    DropClaim,
    HandToOwner,
    SetRemediated,
    SetPhase,
    SetFinalizer,
    HandOver,
]


@frozen
class Inspection:
    """What linearizable reads found that began at `began_at`. None: the object does not exist. `backup` is what would
    be restored of that Node. `kubelet_renewed` is compared, never read as a time."""

    began_at: float
    ended_at: float
    machine: Machine | None = None
    node: NodeSeen | None = None
    backup: Backup | Unreadable | None = None
    kubelet_renewed: str = ""
    host: BareMetalHost | None = None


@frozen
class Inspected:
    """The outcome of Inspect."""

    node: str
    inspection: Inspection


@frozen
class Acknowledged:
    """A peer answered "unhealthy" under this id (rule 10), when asked at `asked_at`."""

    node: str
    peer: str
    id: int
    token: str
    asked_at: float


@frozen
class NotAcknowledged:
    """A peer answered otherwise, or not at all; `answered` tells the two apart."""

    node: str
    peer: str
    asked_at: float
    answered: bool
    sentence: str


@frozen
class Freed:
    """The outcome of FreeWorkloads: how many are left that nobody has begun to delete, or that must still go."""

    node: str
    left: int
    at: float


@frozen
class RemedyEnded:
    """The step is over. It comes last, after what it has found, and a write's effect has been observed by then."""

    node: str
    remedy: Remedy
    written: Written
    at: float
    sentence: str = ""


RemedyNews = Union[Inspected, Acknowledged, NotAcknowledged, Freed, RemedyEnded]
