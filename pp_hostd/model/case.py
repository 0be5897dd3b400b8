"""What a leader remembers in its term: of each node that it works on, and of storms. Nothing of it outlives the term.

All that must outlive it stands in the cluster; a new leader condemns under its own id and waits again (rule 13).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import field

from pp_hostd.frozen import frozen
from pp_hostd.model.budget import Beginning
from pp_hostd.model.condemnation import Draw
from pp_hostd.model.promise import Armed
from pp_hostd.model.remedy import Inspection, Remedy

FEW_FAILURES = 3
"""So many in a row are nothing to tell: an API server restarts, or another one takes over."""


class Awaited(enum.Enum):
    """What may never come, so that something is done about it after a while."""

    OFF = "the host is off"
    ON = "the host is back"
    READY = "the Node of a host that is back is Ready"
    ACKNOWLEDGED = "at least half of the nodes know"
    FREED = "a remediation's attempt is carried out"
    RECOVERED = "the node is well again after it"


@frozen
class Case:
    """A node under work.

    `counted` is the beginning that this term wrote, or tried to write, to the budget for what has not begun yet.
    `drawn` is the id that the Node's cordon names, for the condemnation that follows it.
    `id` is the condemnation that this term wrote onto the version `after` of the machine, `stretch` the one of the
    watch in which it stands. `inspection` is the last one under it.
    `promise` is what binds the host, as found under this condemnation, `stated` the stretch of the watch in which the
    host states it. `tokens` are those of the peers that have
    acknowledged it, `again` the peers that did so once more after the wait; `t0_at` is rule 10's. `committed_at` is
    when the committed record was first seen, `kubelet_at` when the kubelet's Lease was last seen to change, and
    `kubelet_back` says that it did so in the boot whose gate is closed. `awaited` is what has not come yet, since
    `awaited_at`; `fell_back` says that the host could not be switched off, and has to reset itself.
    """

    counted: Beginning | None = None
    drawn: int | None = None
    id: int | None = None
    after: str = ""
    stretch: int | None = None
    inspection: Inspection | None = None
    promise: Armed | None = None
    stated: int | None = None
    tokens: Mapping[str, str] = field(default_factory=dict)
    again: frozenset[str] = frozenset()
    t0_at: float | None = None
    asked: int = 0
    ask_not_before_at: float = 0.0
    silent: Mapping[str, str] = field(default_factory=dict)
    committed_at: float | None = None
    kubelet_at: float | None = None
    kubelet_back: bool = False
    left: int | None = None
    not_before_at: float = 0.0
    trouble: str = ""
    awaited: Awaited | None = None
    awaited_at: float = 0.0
    fell_back: bool = False
    failures: int = 0
    """How many steps in a row were refused or not answered."""

    @property
    def keeps_failing(self) -> bool:
        return self.failures >= FEW_FAILURES


@frozen
class Term:
    """One leader's time in office."""

    own_node: str
    began_at: float
    cases: Mapping[str, Case] = field(default_factory=dict)
    draw: Draw = Draw(0, 0)
    """For the ids of condemnations that the next plan begins; the driver makes another one for each plan."""
    calm_at: float = 0.0
    """Nobody is condemned before: too many were asked for a while ago."""
    beginnings: Mapping[Beginning, float] = field(default_factory=dict)
    """Until when each beginning of a remediation counts against the budget, as far as this leader has seen it."""


class Stage(enum.Enum):
    """How far a node has come."""

    HELD = "held back"
    OVER_BUDGET = "over budget"
    """Held back until the budget allows it, which counts against no timeout."""
    CONDEMNING = "condemning"
    SWITCHING_OFF = "switching off"
    ACKNOWLEDGING = "acknowledging"
    WAITING = "waiting"
    CHECKING = "checking"
    FREEING = "freeing"
    GIVING_BACK = "giving back"
    SWITCHING_ON = "switching on"
    REMEDIATING = "remediating"
    CLEARING = "clearing"


@frozen
class Course:
    """What is to be done about a node now, and why. Without a step it waits, until `due_at` if that is known.
    `refused`: it does not go on by itself, and a person should look."""

    node: str
    subject: str
    stage: Stage
    sentence: str
    step: Remedy | None = None
    due_at: float | None = None
    refused: bool = False
    of: str = ""
    """The remediation object that this course is about, if it is about one."""

    @property
    def key(self) -> str:
        """What its steps and its case go by: the Node's name, where there is one."""
        return self.of or self.node or self.subject
