"""The API reads behind the peer port: each begun after the question arrived, and never more than a few at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Callable

from pp_hostd.agent.witness import ReadOutcome, Statement, Unread, Witness
from pp_hostd.peers.message import MachineReference

MAX_AT_ONCE = 8
MAX_WAITING = 256  # below the cap on connections: in an outage the others are answered at once, and nobody is evicted

Read = Callable[[MachineReference, float], Awaitable[ReadOutcome]]


@dataclass
class _Wanted:
    """A read that has not begun, and the questions that it will answer."""

    ends_at: float = 0.0
    askers: list[asyncio.Future[Statement]] = field(default_factory=list)


class FreshReads:
    """Of a machine there is at most one read under way and one waiting; a question joins only the latter (rule 1)."""

    def __init__(self, read: Read, witness: Witness, clock: Callable[[], float]) -> None:
        """`read` is the linearizable read of a machine, with a deadline in seconds; it does not raise."""
        self._read = read
        self._witness = witness
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[MachineReference, _Wanted] = {}
        self._under_way: dict[MachineReference, asyncio.Task[None]] = {}

    async def statement(self, about: MachineReference, deadline_seconds: float) -> Statement:
        """What a read begun from now on lets us say; after the deadline, what we can say without."""
        if about not in self._waiting and len(self._waiting) >= MAX_WAITING:
            return self._answer(about, Unread.FAILED, self._clock())
        asker: asyncio.Future[Statement] = self._loop.create_future()
        wanted = self._waiting.setdefault(about, _Wanted())
        wanted.askers.append(asker)
        wanted.ends_at = self._loop.time() + deadline_seconds  # whoever asked before gives up on its own
        timer = self._loop.call_at(wanted.ends_at, self._give_up, about, asker)
        self._begin()
        try:
            return await asker
        finally:
            timer.cancel()

    def _give_up(self, about: MachineReference, asker: asyncio.Future[Statement]) -> None:
        if not asker.done():
            asker.set_result(self._answer(about, Unread.FAILED, self._clock()))

    def _begin(self) -> None:
        while len(self._under_way) < MAX_AT_ONCE:
            about = next((each for each in self._waiting if each not in self._under_way), None)
            if about is None:
                return
            self._under_way[about] = self._loop.create_task(self._run(about, self._waiting.pop(about)))

    async def _run(self, about: MachineReference, wanted: _Wanted) -> None:
        began_at = self._clock()
        remaining_seconds = wanted.ends_at - self._loop.time()
        outcome: ReadOutcome = Unread.FAILED
        try:
            if remaining_seconds > 0:
                outcome = await self._read(about, remaining_seconds)
        finally:
            del self._under_way[about]
        # Answered before the next read of this machine begins: what is acknowledged now must not spoil that one.
        statement = self._answer(about, outcome, began_at)
        for asker in wanted.askers:
            if not asker.done():
                asker.set_result(statement)
        self._begin()

    def _answer(self, about: MachineReference, outcome: ReadOutcome, began_at: float) -> Statement:
        return self._witness.answer(about.subject, about.uid, outcome, began_at=began_at, now=self._clock())
