"""All that a plan looks at for one node: the cluster's side, the term's memory of it, and the time."""

from __future__ import annotations

from pp_hostd.frozen import frozen
from pp_hostd.leader.node_memory import NextAction, NodeMemory, Stage, Term
from pp_hostd.leader.plan.electorates import Electorates
from pp_hostd.leader.plan.targets import Target
from pp_hostd.leader.steps.port import LeaderStep, Look
from pp_hostd.model.condemnation import Condemned
from pp_hostd.model.machine import Machine
from pp_hostd.model.machine_details import Claim
from pp_hostd.model.observed import BackupSeen, MachineSeen, NodeSeen, Observed, is_early
from pp_hostd.model.settings import Settings


@frozen
class Evidence:
    """Rule 11: from `act_at` on the host is dead, or nothing was started on it. Where not `held`, a kubelet may have
    started something by itself, and must have been silent for a while."""

    sentence: str
    act_at: float
    held: bool


@frozen
class View:
    """`name` is the Node's, `subject` the machine's; empty where nothing tells. `left` names what a remedy has left
    behind, where neither leads to it. `looks` are what a remedy has an inspection read beside the machine and its Node,
    `evidence` is what proves to it that the host is dead; a sentence, if an inspection must still confirm that."""

    settings: Settings
    observed: Observed
    electorates: Electorates
    term: Term
    memory: NodeMemory
    name: str
    subject: str
    now: float
    left: str = ""
    looks: tuple[Look, ...] = ()
    evidence: Evidence | str | None = None

    @classmethod
    def of_target(
        cls, settings: Settings, observed: Observed, electorates: Electorates, term: Term, target: Target, now: float
    ) -> View:
        memory = term.memories.get(target.key, NodeMemory())
        return cls(settings, observed, electorates, term, memory, target.node, target.machine, now, target.left)

    @property
    def seen(self) -> NodeSeen | None:
        return self.observed.nodes.get(self.name)

    @property
    def machine_seen(self) -> MachineSeen | None:
        return self.observed.machines.get(self.subject)

    @property
    def machine(self) -> Machine | None:
        return None if self.machine_seen is None else self.machine_seen.machine

    @property
    def backup_seen(self) -> BackupSeen | None:
        return self.observed.backups.get(self.name)

    @property
    def licence(self) -> BackupSeen | None:
        """The stored backup if it is, or may be, of a Node that a leader deletes: if that is missing, we deleted it."""
        stored = self.backup_seen
        return None if stored is None or is_early(stored) else stored

    @property
    def condemned(self) -> Condemned | None:
        """The condemnation that stands, whoever wrote it."""
        found = None if self.machine is None else self.machine.condemnation
        return found if isinstance(found, Condemned) else None

    @property
    def is_claimed(self) -> bool:
        """Whether a remediation object has it remedied, which requests again only after its own timeout."""
        return self.machine_seen is not None and isinstance(self.machine_seen.host.claim, Claim)

    def does(self, stage: Stage, step: LeaderStep, sentence: str) -> NextAction:
        """The step, unless one failed just now: then it is tried again in a moment, and the sentence says why."""
        if self.settings.leader.mode == "dry-run":
            return self.waits(stage, f"dry run; otherwise next: {sentence}")
        step_now = step if self.now >= self.memory.not_before_at else None
        if self.memory.keeps_failing:  # said once, and in the same words whether it is tried just now or not
            told, due_at = f"{sentence}, which keeps failing: {self.memory.trouble}", self.memory.not_before_at
            return NextAction(
                self.name, self.subject, stage, told, step_now, None if step_now else due_at, refused=True
            )
        if step_now is None:
            told = f"{sentence}; trying again soon: {self.memory.trouble}"
            return NextAction(self.name, self.subject, stage, told, due_at=self.memory.not_before_at)
        return NextAction(self.name, self.subject, stage, sentence, step)

    def waits(self, stage: Stage, sentence: str, due_at: float | None = None) -> NextAction:
        return NextAction(self.name, self.subject, stage, sentence, due_at=due_at)

    def refuses(self, sentence: str) -> NextAction:
        """It goes on when somebody has done something about it."""
        return NextAction(self.name, self.subject, Stage.HELD, sentence, refused=True)
