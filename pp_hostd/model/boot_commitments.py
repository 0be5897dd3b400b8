"""How far this boot of the host is bound: its watchdog, its gate, and what may stand about it on its Node (rules 5, 6).

Lives in /run, so that a restarted daemon is bound to the same.
"""

from __future__ import annotations

import enum
from functools import cached_property
from typing import Union

from pp_hostd.frozen import frozen
from pp_hostd.model.memory import Decision
from pp_hostd.model.node import Node
from pp_hostd.model.promise import AgentRecord, Armed, Committed, WatchdogKind, promise_in
from pp_hostd.model.step import Written


class Gate(enum.Enum):
    """Whether workloads can start in this boot."""

    ABSENT = "absent"
    """Nothing holds the kubelet in this boot: the gate was not in its way when it started."""
    CLOSED = "closed"
    OPEN = "open"


@frozen
class Look:
    """One finished linearizable read of one's own Node; `backup` tells, for a Node that is missing, whether a leader
    holds a backup of it."""

    began_at: float
    ended_at: float
    node: Node | None = None
    missing: bool = False
    backup: bool = False
    failure: str = ""


@frozen
class StoreEnded:
    """One finished write of a record, conditional on `resource_version`; `node` is what it made of the Node."""

    record: AgentRecord
    resource_version: str
    written: Written
    at: float
    node: Node | None = None
    sentence: str = ""


@frozen
class WatchdogArmed:
    """The watchdog runs; the timeout is what the device really grants. `troubles`: why no better one was taken."""

    kind: WatchdogKind
    timeout_seconds: float
    troubles: tuple[str, ...] = ()


@frozen
class WatchdogDisarmed:
    """The watchdog no longer runs."""


@frozen
class StepFailed:
    """A step could not be taken, and why: the watchdog not armed or disarmed, the gate not opened."""

    sentence: str
    at: float


@frozen
class GateHeld:
    """The kubelet, which has not run in this boot, is held from now on."""


@frozen
class GateOpened:
    """The kubelet may start."""


BondEvent = Union[Look, StoreEnded, WatchdogArmed, WatchdogDisarmed, StepFailed, GateHeld, GateOpened]


@frozen
class Pending:
    """A write under way, or of unknown outcome. It can land while the Node has the version it is conditional on."""

    record: AgentRecord
    resource_version: str


@frozen
class BootCommitments:
    """`stored` is our record of this boot on the Node, as last known. `look` is the Node as a write may rely on it;
    None after a write that did not go through. `looked` says that the Node was read in this boot; if not, and yet the
    watchdog runs, a promise may stand that was forgotten. `promised_uid` is the machine of a promise that vanished from
    the Node without being withdrawn. `node_uid` is the Node on which a record of this boot was last known to stand.
    `not_before_at` paces what failed, for the reason in `trouble`."""

    boot: str
    gate: Gate
    watchdog: WatchdogArmed | None = None
    stored: AgentRecord | None = None
    pending: tuple[Pending, ...] = ()
    look: Look | None = None
    looked: bool = False
    promised_uid: str = ""
    node_uid: str = ""
    not_before_at: float = 0.0
    trouble: str = ""

    @property
    def may_stand(self) -> tuple[AgentRecord, ...]:
        """Every record of this boot that the leader may read on the Node, now or later."""
        known = () if self.stored is None else (self.stored,)
        return known + tuple(each.record for each in self.pending)

    @cached_property
    def promises(self) -> tuple[Armed, ...]:
        """Every promise that may stand: all of them are kept (rule 5)."""
        return tuple(promise for promise in map(promise_in, self.may_stand) if promise is not None)

    def committed(self, decision: Decision) -> Committed | None:
        """The record that tells the leader of a reset that a condemnation caused (rule 7); None if nobody waits."""
        if not self.promises or decision.id is None:
            return None
        return Committed(self.promises[0], decision.id)

    @property
    def binds(self) -> bool:
        """Whether this boot is armed, or may have promised something."""
        return self.watchdog is not None or bool(self.promises)

    @cached_property
    def bound_uid(self) -> str:
        """The machine that is promised, may be, or was until its Node vanished; empty if there is none."""
        return next((promise.machine_uid for promise in self.promises), self.promised_uid)
