"""All that a plan looks at for one node: the cluster's side, the term's memory of it, and the time."""

from __future__ import annotations

from dataclasses import dataclass

from pp_hostd.leader.plan.electorates import Electorates
from pp_hostd.model.case import Case, Course, Stage, Term
from pp_hostd.model.condemnation import Condemned
from pp_hostd.model.machine import Machine
from pp_hostd.model.observed import BackupSeen, MachineSeen, NodeSeen, Observed
from pp_hostd.model.remedy import Remedy
from pp_hostd.model.settings import Settings


@dataclass(frozen=True)
class View:
    """`name` is the Node's, `subject` the machine's; both are empty where nothing tells them."""

    settings: Settings
    observed: Observed
    electorates: Electorates
    term: Term
    case: Case
    name: str
    subject: str
    now: float

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
    def condemned(self) -> Condemned | None:
        """The condemnation that stands, whoever wrote it."""
        found = None if self.machine is None else self.machine.condemnation
        return found if isinstance(found, Condemned) else None

    def does(self, stage: Stage, step: Remedy, sentence: str) -> Course:
        """The step, unless one failed just now: then it is tried again in a moment, and the sentence says why."""
        if self.settings.leader.mode == "dry-run":
            return self.waits(stage, f"a dry run, or else this would be next: {sentence}")
        if self.now < self.case.not_before_at:
            told = f"{sentence}; tried again soon: {self.case.trouble}"
            return Course(self.name, self.subject, stage, told, due_at=self.case.not_before_at)
        return Course(self.name, self.subject, stage, sentence, step)

    def waits(self, stage: Stage, sentence: str, due_at: float | None = None) -> Course:
        return Course(self.name, self.subject, stage, sentence, due_at=due_at)

    def refuses(self, sentence: str) -> Course:
        """It goes on when somebody has done something about it."""
        return Course(self.name, self.subject, Stage.HELD, sentence, refused=True)
