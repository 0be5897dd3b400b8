"""The agent's memory from judgement to judgement, and over a restart in /run: proof, failures, inquiry, decision."""

from __future__ import annotations

import enum
import math
from typing import NamedTuple

from pp_hostd.frozen import frozen, replace
from pp_hostd.model.evidence import WatchedCondemned
from pp_hostd.model.inquiry import Inquiry


class Source(enum.Enum):
    """The basis of a proof."""

    OWN_READ = "own read"
    PEER = "a peer's read"
    OUTAGE = "control-plane outage"


@frozen
class Proof:
    """This machine was not condemned `at` the moment when the exchange began that shows it (rule 1)."""

    at: float
    source: Source
    detail: str = ""


@frozen
class Outage:
    """The verdict that the control plane is out: when its inquiry began, when it was over, and what peers said."""

    started_at: float
    ended_at: float
    summary: str


@frozen
class Decision:
    """The host resets itself, and nothing can talk it out of that (rule 7). `id` is the condemnation's, if known."""

    at: float
    cause: str
    id: int | None


@frozen
class LastRead:
    """When the last finished read began and ended, and why it was no proof; empty if it was one."""

    began_at: float
    ended_at: float
    failure: str


class Missing(NamedTuple):
    """A read of the host's own machine that began and ended then: the API says that it does not exist, or that another
    one has its name."""

    began_at: float
    ended_at: float


class Lifted(NamedTuple):
    """A condemnation of the machine with this uid that a read found lifted."""

    uid: str
    id: int


MAX_LIFTED = 32
"""A host that forgets the oldest takes it for an accusation again, which costs a reset and no data."""


@frozen
class Memory:
    """`reading_since` is when the read now under way was ordered. `failed_reads` counts those in a row that bring the
    next inquiry nearer. `lifted` holds the condemnations that a read, the host's own or a peer's for it, found lifted
    (rule 4). `watched` is a condemnation that a watch reported, and that no read has confirmed yet; `watched_failures`
    reads since have failed. `condemned_id` is the condemnation that stands, as far as an unarmed host knows. `missing`
    is the last read that found no machine, while the Node has not been read since; `machine_gone` says that its Node
    was then found untouched (rule 1)."""

    proof: Proof | None = None
    failed_reads: int = 0
    reading_since: float | None = None
    last_read: LastRead | None = None
    check_at: float | None = None
    inquiry: Inquiry | None = None
    outage: Outage | None = None
    lifted: tuple[Lifted, ...] = ()
    watched: WatchedCondemned | None = None
    watched_failures: int = 0
    condemned_id: int | None = None
    missing: Missing | None = None
    machine_gone: bool = False
    decision: Decision | None = None

    def having_seen_lifted(self, uid: str, condemnation_id: int) -> Memory:
        """Returns the memory after a read, the host's own or a peer's for it, found this id lifted; 0 is none."""
        found = Lifted(uid, condemnation_id)
        if not condemnation_id or found in self.lifted:
            return self
        return replace(self, lifted=(*self.lifted, found)[-MAX_LIFTED:])

    def resumed(self) -> Memory:
        """As a restarted process takes it up: the exchanges under way were lost with the old one, all else stays."""
        return replace(self, reading_since=None, inquiry=self.inquiry.resumed() if self.inquiry is not None else None)


@frozen
class Standing:
    """The host's obligations while it is judged: all that it may have promised is in force at once (rule 5).

    `self_timeout_seconds` is the shortest T, `electorates` the nodes of each roster, the host itself among them.
    `waiting_for` says what an unarmed host still lacks. `watchdog_timeout_seconds` is W as the device grants it.
    `machine` is the host's machine as the roster names it, empty where there is none beside the Node. `untouched_at` is
    when the last read of the Node began, if that found the Node of the promise, without a taint or marker of a leader.
    """

    node: str
    machine_uid: str | None
    armed: bool
    self_timeout_seconds: float
    electorates: tuple[tuple[str, ...], ...] = ()
    waiting_for: str = ""
    watchdog_timeout_seconds: float = math.inf
    machine: str = ""
    untouched_at: float = -math.inf

    @property
    def peers(self) -> tuple[str, ...]:
        """Everyone to ask: each node of any roster in force, but the host itself."""
        names = dict.fromkeys(name for nodes in self.electorates for name in nodes)
        names.pop(self.node, None)
        return tuple(names)
