"""One remediation object, and all that is known about its machine: what a plan looks at for it, and its actions."""

from __future__ import annotations

from collections.abc import Sequence

from pp_hostd.frozen import frozen, replace
from pp_hostd.leader.interfaces import Remedy
from pp_hostd.leader.node_memory import NextAction, Stage
from pp_hostd.leader.plan.view import View
from pp_hostd.leader.requests.remediation_objects.remediation import KINDS, Phase, Remediation, RemediationsSeen
from pp_hostd.leader.requests.remediation_objects.steps import SetPhase
from pp_hostd.leader.steps.port import LeaderStep
from pp_hostd.model.condemnation import NotRequested
from pp_hostd.model.machine import Machine
from pp_hostd.model.machine_details import Claim, MachineDetails


@frozen
class Wanted:
    """`told` is what is done about that machine, if anything; `holder` the first object that holds its Node, empty if
    none does."""

    remediation: Remediation
    view: View
    told: NextAction | None
    remedies: Sequence[Remedy]
    holder: str = ""

    @property
    def machine(self) -> Machine | None:
        return self.view.machine

    @property
    def about(self) -> MachineDetails:
        seen = self.view.machine_seen
        return MachineDetails() if seen is None else seen.host

    @property
    def claim(self) -> Claim:
        return Claim(self.remediation.key, self.remediation.uid, self.remediation.kind.remedy)

    @property
    def is_ours(self) -> bool:
        return isinstance(self.about.claim, Claim) and self.about.claim.uid == self.remediation.uid

    @property
    def rival(self) -> str:
        """The other object that has the machine remedied; empty if none. A claim of a missing object does not count."""
        claim = self.about.claim
        if not isinstance(claim, Claim):
            return "" if self.remediation.node_uid else self.holder
        other = self.view.observed.part(RemediationsSeen).seen.get(claim.of)
        return claim.of if not self.is_ours and other is not None and other.uid == claim.uid else ""

    @property
    def is_node(self) -> bool:
        """Whether Nodes stand for themselves, so that a remediation replaces the machine by one of the same name."""
        return self.view.settings.api.machines == "node"

    @property
    def was_replaced(self) -> bool:
        """Whether another Node has come for the one whose remediation this attempt requested."""
        return self.machine is not None and self.remediation.node_uid not in ("", self.machine.uid)

    @property
    def is_asked(self) -> bool:
        return self.machine is not None and not isinstance(self.machine.condemnation, NotRequested)

    @property
    def remedy(self) -> Remedy | None:
        return next((remedy for remedy in self.remedies if remedy.name == self.remediation.kind.remedy), None)

    @property
    def is_marked(self) -> bool:
        return any(remedy.has_marked(self.view) for remedy in self.remedies)

    @property
    def is_under_way(self) -> bool:
        """Whether something is left of a remediation that objects can request. A NodeFence has a request of its own and
        may wait for a person: its marks do not count, nor does a backup that is dropped only once it is over."""
        names = {kind.remedy for kind in KINDS}
        marked = any(remedy.has_marked(self.view) for remedy in self.remedies if remedy.name in names)
        fenced = any(remedy.has_begun(self.view) for remedy in self.remedies if remedy.name not in names)
        return self.is_asked or marked or (self.view.backup_seen is not None and not fenced)

    def does(self, stage: Stage, step: LeaderStep, sentence: str) -> NextAction:
        return self._of(self.view.does(stage, step, sentence))

    def waits(self, stage: Stage, sentence: str, due_at: float | None = None) -> NextAction:
        return self._of(self.view.waits(stage, sentence, due_at))

    def refuses(self, sentence: str) -> NextAction:
        return self._of(self.view.refuses(sentence))

    def sets(self, phase: Phase, reason: str, sentence: str) -> NextAction:
        return self._sets(phase, reason, sentence, self.remediation.retry_count, self.remediation.node_uid)

    def tries_again(self, sentence: str) -> NextAction:
        """Begins another attempt, which has requested nothing yet."""
        return self._sets(Phase.RUNNING, "Running", sentence, self.remediation.retry_count + 1, "")

    def notes_node(self, machine: Machine) -> NextAction:
        sentence = f"about to request the remediation of Node {machine.name}"
        return self._sets(Phase.RUNNING, "Running", sentence, self.remediation.retry_count, machine.uid)

    def _sets(self, phase: Phase, reason: str, sentence: str, retry_count: int, node_uid: str) -> NextAction:
        step = SetPhase(self.remediation, phase, retry_count, reason, sentence, node_uid)
        return self.does(Stage.REMEDIATING, step, sentence)

    def _of(self, next_action: NextAction) -> NextAction:
        key = self.remediation.key
        return replace(next_action, of=key, sentence=f"{key}: {next_action.sentence}")
