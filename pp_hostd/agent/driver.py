"""Sense, judge, act: the one order of things, with clock, senses and hands as arguments. A simulator runs it as well.

Hands start things and never wait; what becomes of them comes back as evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Callable, Protocol, Union

from pp_hostd.agent.binding import after, ordered, standing
from pp_hostd.agent.judge import judge
from pp_hostd.agent.plan import plan
from pp_hostd.agent.shutdown import is_last_feeding
from pp_hostd.model.bond import (
    Bond,
    BondEvent,
    GateHeld,
    GateOpened,
    Look,
    StepFailed,
    StoreEnded,
    WatchdogArmed,
    WatchdogDisarmed,
)
from pp_hostd.model.evidence import Evidence
from pp_hostd.model.ground import Ground
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
    """What has become known. Nothing here waits."""

    def take(self) -> list[News]:
        """Everything since the last call, in order."""

    def ground(self) -> Ground: ...

    def rosters(self) -> Mapping[int, tuple[str, ...]]:
        """The nodes of every roster that is still known, by version."""


class Hands(Protocol):
    """What can be done. Nothing here waits; outcomes come back through the senses."""

    def feed(self) -> None: ...
    def feed_last(self) -> None:
        """Feed by lengthening the watchdog's timeout to the one promised for a power-off, and never again."""

    def reset(self, decision: Decision, bond: Bond) -> None: ...
    def read(self) -> None: ...
    def ask(self, peers: tuple[str, ...], uid: str) -> None: ...
    def look(self) -> None: ...
    def store(self, record: AgentRecord, node: Node) -> None: ...
    def arm(self) -> None: ...
    def disarm(self) -> None: ...
    def open_gate(self, reason: str) -> None: ...
    def remember(self, memory: Memory, bond: Bond) -> None:
        """Keep both where a restarted daemon finds them."""

    def show(self, verdict: Verdict) -> None:
        """Tell people and the service manager about a finished judgement."""


class Driver:
    """One host's agent without its shell. `turn` is called whenever there is news, and at `verdict.wake_at`."""

    def __init__(
        self,
        settings: Settings,
        senses: Senses,
        hands: Hands,
        *,
        memory: Memory,
        bond: Bond,
        clock: Callable[[], float],
        entropy: Callable[[], int],
    ) -> None:
        self.settings = settings
        self.memory, self.bond = memory, bond
        self.waiting_for = ""
        self._senses, self._hands = senses, hands
        self._clock, self._entropy = clock, entropy
        self._step: Step = Wait("")  # the plan's step that is under way
        self._premises: object = None
        self._rosters: object = None

    @property
    def idle(self) -> bool:
        """Whether no step of the plan is under way."""
        return isinstance(self._step, Wait)

    def turn(self) -> Verdict:
        """One judgement, and all that follows from it."""
        ground, evidence = self._senses.ground(), self._sensed(self._senses.take())
        if not self.bond.binds:
            self._foresee(ground)
        bound = self._bound(ground)
        verdict, self.memory = judge(self.settings, bound, self.memory, evidence, self._clock(), self._entropy())
        if verdict.reset is not None:
            self._hands.reset(verdict.reset, self.bond)
        elif verdict.feed and is_last_feeding(ground, self.bond):
            self._hands.feed_last()
        elif verdict.feed:
            self._hands.feed()  # rule 2: by a finished judgement, and before anything else can stall
        step = self._next_step(ground, verdict.at)
        self._hands.remember(self.memory, self.bond)  # rule 6: before anyone is asked or anything is promised
        if verdict.read:
            self._hands.read()
        if verdict.ask and bound.machine_uid is not None:
            self._hands.ask(verdict.ask, bound.machine_uid)
        self._take(step)
        self._hands.show(verdict)
        # The judge orders the read that the plan wants.
        return verdict._replace(wake_at=verdict.at) if isinstance(step, ReadMachine) else verdict

    def _bound(self, ground: Ground) -> Standing:
        """The same as long as all that it follows from is the same."""
        rosters = self._senses.rosters()
        premises = (self.settings, ground, self.bond, self.memory.proof is None, self.waiting_for)
        if rosters is not self._rosters or premises != self._premises:
            self._rosters, self._premises = rosters, premises
            self._standing = standing(self.settings, ground, self.bond, self.memory, rosters, self.waiting_for)
        return self._standing

    def _foresee(self, ground: Ground) -> None:
        """What the plan waits for is part of an unarmed host's sentence, so it is asked before the judgement too."""
        step = plan(self.settings, ground, self.bond, self.memory, self._clock()) if self.idle else None
        self.waiting_for = step.reason if isinstance(step, Wait) else self.waiting_for

    def _sensed(self, news: Iterable[News]) -> list[Evidence]:
        evidence: list[Evidence] = []
        for each in news:
            if isinstance(each, _BOND_EVENTS):
                self.bond = after(self.bond, each, self.settings.api.retry_seconds)
                self._step = Wait("") if isinstance(each, _ENDED_BY.get(type(self._step), ())) else self._step
            else:
                evidence.append(each)
        return evidence

    def _next_step(self, ground: Ground, now: float) -> Step:
        """One step of the plan at a time: the next is planned when the last one's outcome is known."""
        if not self.idle:
            return Wait(self.waiting_for)
        step = plan(self.settings, ground, self.bond, self.memory, now)
        self.waiting_for = step.reason if isinstance(step, Wait) else self.waiting_for
        if isinstance(step, ReadMachine):
            self.memory = replace(self.memory, check_at=now)
        self.bond = ordered(self.bond, step)
        return step

    def _take(self, step: Step) -> None:
        if isinstance(step, (Wait, ReadMachine)):
            return
        if isinstance(step, LookAtNode):
            self._hands.look()
        elif isinstance(step, Store):
            self._hands.store(step.record, step.node)
        elif isinstance(step, Arm):
            self._hands.arm()
        elif isinstance(step, Disarm):
            self._hands.disarm()
        elif isinstance(step, OpenGate):
            self._hands.open_gate(step.reason)
        self._step = step
