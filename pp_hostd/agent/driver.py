"""Sense, judge, act: the one order of things, with clock, senses and hands as arguments. A simulator runs it as well.

Hands start things and never wait; their outcome comes back as evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Callable, Protocol, Union

from pp_hostd.agent.binding import after, ordered, standing
from pp_hostd.agent.judge import judge
from pp_hostd.agent.plan import plan
from pp_hostd.agent.shutdown import is_last_feeding
from pp_hostd.frozen import replace
from pp_hostd.model.boot_commitments import (
    BondEvent,
    BootCommitments,
    GateHeld,
    GateOpened,
    Look,
    StepFailed,
    StoreEnded,
    WatchdogArmed,
    WatchdogDisarmed,
)
from pp_hostd.model.evidence import Evidence, HostContext
from pp_hostd.model.memory import Decision, Memory, Standing
from pp_hostd.model.node import Node
from pp_hostd.model.promise import AgentRecord
from pp_hostd.model.settings import Settings
from pp_hostd.model.step import Arm, Disarm, LookAtNode, OpenGate, ReadMachine, Step, Store, Wait
from pp_hostd.model.verdict import Verdict

News = Union[Evidence, BondEvent]
_BOND_EVENTS = (Look, StoreEnded, WatchdogArmed, WatchdogDisarmed, StepFailed, GateHeld, GateOpened)
_ENDED_BY: Mapping[type[Step], tuple[type[BondEvent], ...]] = {
    LookAtNode: (Look,),
    Store: (StoreEnded,),
    Arm: (WatchdogArmed, StepFailed),
    Disarm: (WatchdogDisarmed, StepFailed),
    OpenGate: (GateOpened, StepFailed),
}
"""The outcomes of each step. Other news may come at any time: of a gate that is held, of a watchdog taken up again."""


class Senses(Protocol):
    """The agent's news, the context of its host and the rosters. Nothing here waits."""

    def take(self) -> list[News]:
        """Everything since the last call, in order."""

    def host_context(self) -> HostContext: ...

    def rosters(self) -> Mapping[int, tuple[str, ...]]:
        """The nodes of every roster that is still known, by version."""


class Actuators(Protocol):
    """The actions of the agent. Nothing here waits; outcomes come back through the senses."""

    def feed(self) -> None: ...
    def feed_last(self) -> None:
        """Feed by lengthening the watchdog's timeout to the one promised for a power-off, and never again."""

    def reset(self, decision: Decision, commitments: BootCommitments) -> None: ...
    def read(self) -> None: ...
    def ask(self, peers: tuple[str, ...], uid: str) -> None: ...
    def look(self) -> None: ...
    def store(self, record: AgentRecord, node: Node) -> None: ...
    def arm(self) -> None: ...
    def disarm(self) -> None: ...
    def open_gate(self, reason: str) -> None: ...
    def remember(self, memory: Memory, commitments: BootCommitments) -> None:
        """Keep both where a restarted daemon finds them."""

    def show(self, verdict: Verdict) -> None:
        """Tell people and the service manager about a finished judgement."""


class Driver:
    """One host's agent without its shell. `turn` is called whenever there is news, and at `verdict.wake_at`."""

    def __init__(
        self,
        settings: Settings,
        senses: Senses,
        actuators: Actuators,
        *,
        memory: Memory,
        commitments: BootCommitments,
        clock: Callable[[], float],
        entropy: Callable[[], int],
    ) -> None:
        self.settings = settings
        self.memory, self.commitments = memory, commitments
        self.waiting_for = ""
        self._senses, self._actuators = senses, actuators
        self._clock, self._entropy = clock, entropy
        self._step: Step = Wait("")  # the plan's step that is under way
        self._premises: object = None
        self._rosters: object = None

    @property
    def idle(self) -> bool:
        """Whether no step of the plan is under way."""
        return isinstance(self._step, Wait)

    @property
    def unbound(self) -> bool:
        """Whether the daemon may end: nothing is armed, promised or under way."""
        return self.idle and self.commitments.watchdog is None and not self.commitments.promises

    def turn(self) -> Verdict:
        """One judgement, and all that follows from it."""
        host_context, evidence = self._senses.host_context(), self._sensed(self._senses.take())
        if not self.commitments.binds:
            self._foresee(host_context)
        bound = self._bound(host_context)
        verdict, self.memory = judge(self.settings, bound, self.memory, evidence, self._clock(), self._entropy())
        if verdict.reset is not None:
            self._actuators.reset(verdict.reset, self.commitments)
        elif verdict.feed and is_last_feeding(host_context, self.commitments):
            self._actuators.feed_last()
        elif verdict.feed:
            self._actuators.feed()  # rule 2: by a finished judgement, and before anything else can stall
        step = self._next_step(host_context, verdict.at)
        self._actuators.remember(
            self.memory, self.commitments
        )  # rule 6: before anyone is asked or anything is promised
        if verdict.read:
            self._actuators.read()
        if verdict.ask and bound.machine_uid is not None:
            self._actuators.ask(verdict.ask, bound.machine_uid)
        self._take(step)
        self._actuators.show(verdict)
        # The judge orders the read that the plan wants.
        return verdict._replace(wake_at=verdict.at) if isinstance(step, ReadMachine) else verdict

    def _bound(self, host_context: HostContext) -> Standing:
        """The same as long as all that it follows from is the same."""
        rosters = self._senses.rosters()
        premises = (self.settings, host_context, self.commitments, self.memory.proof is None, self.waiting_for)
        if rosters is not self._rosters or premises != self._premises:
            self._rosters, self._premises = rosters, premises
            self._standing = standing(
                self.settings, host_context, self.commitments, self.memory, rosters, self.waiting_for
            )
        return self._standing

    def _foresee(self, host_context: HostContext) -> None:
        """Plans before the judgement too: the sentence about an unarmed host says what the plan waits for."""
        step = plan(self.settings, host_context, self.commitments, self.memory, self._clock()) if self.idle else None
        self.waiting_for = step.reason if isinstance(step, Wait) else self.waiting_for

    def _sensed(self, news: Iterable[News]) -> list[Evidence]:
        evidence: list[Evidence] = []
        for each in news:
            if isinstance(each, _BOND_EVENTS):
                self.commitments = after(self.commitments, each, self.settings.api.retry_seconds)
                self._step = Wait("") if isinstance(each, _ENDED_BY.get(type(self._step), ())) else self._step
            else:
                evidence.append(each)
        return evidence

    def _next_step(self, host_context: HostContext, now: float) -> Step:
        """One step of the plan at a time: the next is planned when the last one's outcome is known."""
        if not self.idle:
            return Wait(self.waiting_for)
        step = plan(self.settings, host_context, self.commitments, self.memory, now)
        self.waiting_for = step.reason if isinstance(step, Wait) else self.waiting_for
        if isinstance(step, ReadMachine):
            self.memory = replace(self.memory, check_at=now)
        self.commitments = ordered(self.commitments, step)
        return step

    def _take(self, step: Step) -> None:
        if isinstance(step, (Wait, ReadMachine)):
            return
        if isinstance(step, LookAtNode):
            self._actuators.look()
        elif isinstance(step, Store):
            self._actuators.store(step.record, step.node)
        elif isinstance(step, Arm):
            self._actuators.arm()
        elif isinstance(step, Disarm):
            self._actuators.disarm()
        elif isinstance(step, OpenGate):
            self._actuators.open_gate(step.reason)
        self._step = step
