"""All that a plan looks at for one node: the cluster's side, the term's memory of it, and the time."""

from __future__ import annotations

from pp_hostd.frozen import frozen
from pp_hostd.leader.plan.electorates import Electorates
from pp_hostd.model.backup import Backup
from pp_hostd.model.bare_metal_host import BareMetalHost, PowerRequest
from pp_hostd.model.case import Case, Course, Stage, Term
from pp_hostd.model.condemnation import Condemned
from pp_hostd.model.machine import Machine
from pp_hostd.model.machine_host import Claim
from pp_hostd.model.observed import BackupSeen, MachineSeen, NodeSeen, Observed, is_early
from pp_hostd.model.remedy import Remedy
from pp_hostd.model.settings import Settings


@frozen
class View:
    """`name` is the Node's, `subject` the machine's, `host` the BareMetalHost's; empty where nothing tells."""

    settings: Settings
    observed: Observed
    electorates: Electorates
    term: Term
    case: Case
    name: str
    subject: str
    now: float
    host: str = ""

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

    @property
    def host_seen(self) -> BareMetalHost | None:
        return self.observed.hosts.seen.get(self.host)

    @property
    def request(self) -> PowerRequest | None:
        """Our request that keeps its host off, if there is one for this very machine, or for one that is gone."""
        found, machine = None if self.host_seen is None else self.host_seen.request, self.machine
        ours = isinstance(found, PowerRequest) and (machine is None or machine.uid == found.uid)
        return found if isinstance(found, PowerRequest) and ours else None

    @property
    def kept_off(self) -> str:
        """Its BareMetalHost, if that is kept off by our request."""
        return self.host if self.request is not None else ""

    @property
    def is_off(self) -> bool:
        """Whether it is certainly off by our request: this leader saw it turn off, or another one did, which stored
        the version of the host that is still the newest."""
        host = self.host_seen
        if self.request is None or host is None or host.powered_on is not False or host.obstacle:
            return False
        stored = None if self.backup_seen is None else self.backup_seen.backup
        known = isinstance(stored, Backup) and (stored.host, stored.off) == (host.subject, host.resource_version)
        return host.seen_off or known

    def does(self, stage: Stage, step: Remedy, sentence: str) -> Course:
        """The step, unless one failed just now: then it is tried again in a moment, and the sentence says why."""
        if self.settings.leader.mode == "dry-run":
            return self.waits(stage, f"a dry run, or else this would be next: {sentence}")
        step_now = step if self.now >= self.case.not_before_at else None
        if self.case.keeps_failing:  # said once, and in the same words whether it is tried just now or not
            told, due_at = f"{sentence}, which keeps failing: {self.case.trouble}", self.case.not_before_at
            return Course(self.name, self.subject, stage, told, step_now, None if step_now else due_at, refused=True)
        if step_now is None:
            told = f"{sentence}; tried again soon: {self.case.trouble}"
            return Course(self.name, self.subject, stage, told, due_at=self.case.not_before_at)
        return Course(self.name, self.subject, stage, sentence, step)

    def waits(self, stage: Stage, sentence: str, due_at: float | None = None) -> Course:
        return Course(self.name, self.subject, stage, sentence, due_at=due_at)

    def refuses(self, sentence: str) -> Course:
        """It goes on when somebody has done something about it."""
        return Course(self.name, self.subject, Stage.HELD, sentence, refused=True)
