"""The agent's memory of condemned machines, and its statements about a machine that follow from it (rule 4). Pure."""

from __future__ import annotations

import enum
import math
from collections import OrderedDict
from typing import Union

from pp_hostd.frozen import frozen, replace
from pp_hostd.model.answer import Answer, Health
from pp_hostd.model.condemnation import Condemned, NotCondemned
from pp_hostd.model.machine import Machine

MAX_REMEMBERED = 1024
REMEMBERED_SECONDS = 60.0
"""Between two reads of each machine that is remembered as condemned, while reads succeed (rule 4)."""


class Unread(enum.Enum):
    """A read that found no machine: the API says that there is none, or it said nothing of use."""

    NOT_FOUND = "not found"
    FAILED = "failed"


ReadOutcome = Union[Machine, Unread]


@frozen
class Statement:
    """The answer about a machine. "Unhealthy" with an id is an acknowledgement (rule 10)."""

    health: Health
    id: int | None
    token: str
    lifted_id: int = 0

    def answer(self, answered_by: str, asked_by: str, about: str, nonce: str = "") -> Answer:
        """The statement as it is sent to the node that asked about this machine."""
        return Answer(self.health, self.id, self.token, nonce, answered_by, asked_by, about, self.lifted_id)


@frozen
class _Memory:
    """A condemnation that is known, and when this was last learned or acknowledged.

    The serial stays for as long as the machine is remembered without a gap.
    """

    id: int
    known_at: float
    serial: int


class Witness:
    """Memory that a read clears which began later, or which found that very condemnation lifted (rule 4).

    No watch does, no deletion, and no other read that was already under way.
    """

    def __init__(self, process_token: str, max_remembered: int = MAX_REMEMBERED) -> None:
        """The token is random, and another one in each run of the agent."""
        self._process_token = process_token
        self._max_remembered = max_remembered
        self._memories: OrderedDict[tuple[str, str], _Memory] = OrderedDict()  # the longest not heard of comes first
        self._serial = 0
        self._has_listed = False
        self.own_missing = False
        """Whether the last read of this host's own machine found none: then others' may be gone for the same reason."""

    def listed(self) -> None:
        """All condemned machines have been listed, and learned, in this run."""
        self._has_listed = True

    def learned(
        self, machine_key: str, uid: str, condemnation_id: int, at: float, read_began_at: float = -math.inf
    ) -> None:
        """The machine was seen condemned under this id, by a watch, or by a read that began then. A lower id is old,
        unless a read found it that began after the higher one was last learned: somebody has taken that one away."""
        memory = self._memories.get((machine_key, uid))
        if memory is not None and condemnation_id < memory.id and read_began_at <= memory.known_at:
            return
        if memory is None or condemnation_id < memory.id:  # whoever acknowledged the higher one has forgotten it
            self._serial += 1
            memory = _Memory(condemnation_id, at if memory is None else memory.known_at, self._serial)
        self._remember(machine_key, uid, replace(memory, id=condemnation_id, known_at=max(at, memory.known_at)))

    @property
    def remembered(self) -> tuple[tuple[str, str], ...]:
        """The machines, by key and uid, that are known to be condemned."""
        return tuple(self._memories)

    def answer(self, machine_key: str, uid: str, outcome: ReadOutcome, *, began_at: float, now: float) -> Statement:
        """Returns the statement about this machine after a read of it that began at `began_at` and ended now."""
        if not self._has_listed:
            return self._statement(Health.API_ERROR)
        if outcome is Unread.NOT_FOUND or (isinstance(outcome, Machine) and outcome.uid != uid):
            return self._remembered(machine_key, uid, now) if self.own_missing else self._statement(Health.NOT_FOUND)
        condemnation = outcome.condemnation if isinstance(outcome, Machine) else None
        if isinstance(condemnation, Condemned):
            self.learned(machine_key, uid, condemnation.id, now, began_at)
        elif isinstance(condemnation, NotCondemned):
            cleared = self._cleared(machine_key, uid, condemnation.last_id, began_at)
            if cleared and not self.own_missing:
                return replace(self._statement(Health.HEALTHY), lifted_id=condemnation.last_id)
        return self._remembered(machine_key, uid, now)

    def _cleared(self, machine_key: str, uid: str, lifted_id: int, began_at: float) -> bool:
        """Forget the machine after a read that says "not condemned".

        Not if the condemnation was learned or said since the read began; unless that very one is the one which the read
        found lifted, and a watch reported it late: no id is drawn twice, so what once was lifted is so for good.
        """
        memory = self._memories.get((machine_key, uid))
        if memory is not None and began_at <= memory.known_at and lifted_id != memory.id:
            return False
        self._memories.pop((machine_key, uid), None)
        return True

    def _remembered(self, machine_key: str, uid: str, now: float) -> Statement:
        memory = self._memories.get((machine_key, uid))
        if memory is None:
            return self._statement(Health.API_ERROR)
        self._remember(machine_key, uid, replace(memory, known_at=max(now, memory.known_at)))
        return self._statement(Health.UNHEALTHY, memory.id, memory.serial)

    def _remember(self, machine_key: str, uid: str, memory: _Memory) -> None:
        self._memories[machine_key, uid] = memory
        self._memories.move_to_end((machine_key, uid))
        if len(self._memories) > self._max_remembered:
            self._memories.popitem(last=False)

    def _statement(self, health: Health, condemnation_id: int | None = None, serial: int = 0) -> Statement:
        return Statement(health, condemnation_id, f"{self._process_token}.{serial}")
