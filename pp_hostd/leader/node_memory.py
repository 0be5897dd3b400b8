"""A leader's memory in its term: of each node that it works on, and of storms. Nothing of it outlives the term.

All that must outlive the term stands in the cluster; a new leader condemns under its own id and waits again (rule 13).
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Set
from dataclasses import field
from typing import TypeVar

from pp_hostd.frozen import frozen, replace
from pp_hostd.leader.steps.port import Inspection, LeaderStep
from pp_hostd.model.budget import Beginning
from pp_hostd.model.condemnation import Draw

Part = TypeVar("Part")
FEW_FAILURES = 3
"""So many in a row are nothing to tell: an API server restarts, or another one takes over."""


@frozen
class NodeMemory:
    """A node under work, as far as every remedy needs it; `parts` are the memories of single remedies, by their type.

    `counted` is the beginning that this term wrote, or tried to write, to the budget for what has not begun yet.
    `inspection` is the last one. `left` is how many workloads are left to free, None if that is not known. After a step
    that failed because of `trouble`, the next one is not begun before `not_before_at`. `awaited` says what has not come
    yet, since `awaited_at`; empty if nothing is awaited. `fell_back` says that the host could not be switched off, and
    has to reset itself. `stored` is the id of the backup that licenses the deletion of its Node, if this very term has
    stored it, and has not tried to drop it since; None otherwise.
    """

    counted: Beginning | None = None
    inspection: Inspection | None = None
    left: int | None = None
    not_before_at: float = 0.0
    trouble: str = ""
    awaited: str = ""
    awaited_at: float = 0.0
    fell_back: bool = False
    stored: int | None = None
    failures: int = 0
    """How many steps in a row were refused or not answered."""
    parts: Mapping[type, object] = field(default_factory=dict)

    def part(self, of: type[Part]) -> Part:
        """The memory of this type; an empty one where there is none yet."""
        found = self.parts.get(of)
        return found if isinstance(found, of) else of()

    def with_part(self, part: object) -> NodeMemory:
        """The same, but for this part."""
        return replace(self, parts={**self.parts, type(part): part})

    @property
    def keeps_failing(self) -> bool:
        return self.failures >= FEW_FAILURES


@frozen
class Term:
    """One leader's term."""

    own_node: str
    began_at: float
    memories: Mapping[str, NodeMemory] = field(default_factory=dict)
    draw: Draw = Draw(0, 0)
    """For the ids of condemnations that the next plan begins; the driver makes another one for each plan."""
    resigned_at: float = -math.inf
    """This leader last gave its Lease up then."""
    calm_at: float = 0.0
    """Nobody is condemned before: too many were sick a while ago."""
    labelled: Mapping[str, str] = field(default_factory=dict)
    """The uid of the Node that bore the label of the control plane last, by name."""
    settles_at: Mapping[str, float] = field(default_factory=dict)
    """Until when each control-plane node counts as lost that this leader has worked on, whatever is seen of it."""
    beginnings: Mapping[Beginning, float] = field(default_factory=dict)
    """Until when each beginning of a remediation counts against the budget, as far as this leader has seen it."""
    ordered: Set[str] = frozenset()
    """Where the last plan has begun a remediation: it comes first in the next plan, for the limits count it there."""


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
    RESTORING = "restoring"
    SWITCHING_ON = "switching on"
    REMEDIATING = "remediating"
    FENCING = "fencing"
    CLEARING = "clearing"


@frozen
class NextAction:
    """The next action for a node, and the reason. Without a step the node waits, until `due_at` if that is known.
    `refused`: the node is blocked, and needs an operator."""

    node: str
    machine_key: str
    stage: Stage
    sentence: str
    step: LeaderStep | None = None
    due_at: float | None = None
    refused: bool = False
    of: str = ""
    """The object that this course is about, if it is about one: a remediation object, a health check."""
    quiet: bool = False
    """Routine, such as the status of a health check: it is told to people only if it is refused."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing is to be done, told or waited for: only its memory counts."""
        return self.quiet and self.step is None and self.due_at is None

    @property
    def key(self) -> str:
        """The key of its steps and its memory: the remediation object, else the Node's name, else the machine's key."""
        return self.of or self.node or self.machine_key
