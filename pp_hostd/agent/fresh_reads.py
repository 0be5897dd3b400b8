"""The API reads that peers' questions cause, and the statement that each question gets. No I/O here."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Callable

from pp_hostd.agent.witness import REMEMBERED_SECONDS, ReadOutcome, Statement, Unread, Witness
from pp_hostd.peers.message import MachineReference

MAX_READS = 8
MAX_WAITING = 256  # below the cap on connections: in an outage the others are answered at once, and nobody is evicted

Ended = Callable[[ReadOutcome], None]
Begin = Callable[[MachineReference, float, Ended], None]
"""Begins the linearizable read of a machine, with a deadline in seconds, and tells its outcome once."""
Cancel = Callable[[], None]
Later = Callable[[float, Callable[[], None]], Cancel]
"""Does something after so many seconds, unless it is cancelled."""
Said = Callable[[Statement], None]


@dataclass
class _Asker:
    said: Said | None
    """None once the statement is given."""
    give_up_no_more: Cancel | None = None

    def answer(self, statement: Statement) -> None:
        if self.said is not None:
            said, self.said = self.said, None
            if self.give_up_no_more is not None:
                self.give_up_no_more()
            said(statement)


@dataclass
class _Wanted:
    """A read that has not begun, and the questions that it will answer."""

    ends_at: float = 0.0
    askers: list[_Asker] = field(default_factory=list)


class FreshReads:
    """Of a machine there is at most one read under way and one waiting; a question joins only the latter (rule 1)."""

    def __init__(self, begin: Begin, later: Later, witness: Witness, clock: Callable[[], float]) -> None:
        self._begin_read, self._later, self._witness, self._clock = begin, later, witness, clock
        self._waiting: dict[MachineReference, _Wanted] = {}
        self._under_way: set[MachineReference] = set()

    def ask(self, about: MachineReference, deadline_seconds: float, said: Said) -> None:
        """Gives the statement after a read begun from now on; after the deadline, or if too many reads wait, the one
        without a read."""
        if about not in self._waiting and len(self._waiting) >= MAX_WAITING:
            said(self._answer(about, Unread.FAILED, self._clock()))
            return
        asker = _Asker(said)
        wanted = self._waiting.setdefault(about, _Wanted())
        wanted.askers.append(asker)
        wanted.ends_at = self._clock() + deadline_seconds  # whoever asked before gives up on its own
        asker.give_up_no_more = self._later(deadline_seconds, lambda: self._give_up(about, asker))
        self._begin()

    def _give_up(self, about: MachineReference, asker: _Asker) -> None:
        if asker.said is not None:
            asker.answer(self._answer(about, Unread.FAILED, self._clock()))

    def _begin(self) -> None:
        while len(self._under_way) < MAX_READS:
            about = next((each for each in self._waiting if each not in self._under_way), None)
            if about is None:
                return
            self._under_way.add(about)
            self._start(about, self._waiting.pop(about))

    def _start(self, about: MachineReference, wanted: _Wanted) -> None:
        began_at = self._clock()

        def ended(outcome: ReadOutcome) -> None:
            self._under_way.discard(about)
            # Answered before the next read of this machine begins: what is acknowledged now must not spoil that one.
            statement = self._answer(about, outcome, began_at)
            for asker in wanted.askers:
                asker.answer(statement)
            self._begin()

        if wanted.ends_at > began_at:
            self._begin_read(about, wanted.ends_at - began_at, ended)
        else:
            ended(Unread.FAILED)

    def _answer(self, about: MachineReference, outcome: ReadOutcome, began_at: float) -> Statement:
        return self._witness.answer(about.machine_key, about.uid, outcome, began_at=began_at, now=self._clock())


async def read_remembered_again(
    witness: Witness,
    statement: Callable[[MachineReference], Awaitable[Statement]],
    sleep: Callable[[float], Awaitable[None]],
) -> None:
    """Rule 4: where somebody removed an id, no answer names it as lifted, and only a read ends the memory of it. Goes
    on until it is cancelled."""
    while True:
        await sleep(REMEMBERED_SECONDS)
        for machine_key, uid in witness.remembered:
            await statement(MachineReference.of(machine_key, uid))
