"""Candidates for one Lease in true time: each with a clock of its own, and an API that answers when it likes.

The candidates are the real ones (model/candidacy.py); the API, the delays and the clocks are played.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Callable

from pp_hostd.model.lease import GIVEN_UP_SECONDS, Candidacy, Lease, LeaseExchange

Action = Callable[[], None]
ROUNDING_SECONDS = 1e-6


@dataclass(frozen=True)
class Fate:
    """Of one exchange: how long the request takes, how long the answer, and for how long its sender is stopped."""

    request_seconds: float = 0.01
    answer_seconds: float = 0.01
    stopped_seconds: float = 0.0


@dataclass
class Acted:
    """A candidate might act from here to there, in true time."""

    who: str
    begin: float
    end: float


class World:
    """True time, what is to happen in it, and the Lease."""

    def __init__(self, fates: Iterable[Fate]) -> None:
        self.now = 0.0
        self.lease: Lease | None = None
        self.acted: list[Acted] = []
        self.fates = itertools.chain(fates, itertools.repeat(Fate()))
        self._versions, self._order = itertools.count(1), itertools.count()
        self._agenda: list[tuple[float, int, Action]] = []

    def at(self, moment: float, action: Action) -> None:
        heapq.heappush(self._agenda, (max(moment, self.now), next(self._order), action))

    def run(self, until: float) -> None:
        while self._agenda[0][0] < until:
            self.now, _, action = heapq.heappop(self._agenda)
            action()

    def write(self, holder: str, duration_seconds: float) -> None:
        self.lease = Lease(str(next(self._versions)), holder, math.ceil(duration_seconds), 0)

    def overlaps(self) -> Iterator[tuple[Acted, Acted]]:
        for one, other in itertools.combinations(self.acted, 2):
            if one.who != other.who and one.begin < other.end and other.begin < one.end:
                yield one, other


class Rival:
    """One candidate whose clock runs at `rate`, and shows `offset` at the beginning of true time."""

    def __init__(self, world: World, name: str, rate: float, offset: float, duration_seconds: float) -> None:
        self.candidacy = Candidacy(name, duration_seconds)
        self._world, self._rate, self._offset = world, rate, offset
        self._acting = Acted(name, 0.0, 0.0)
        world.at(0.0, self._turn)

    def resign(self) -> None:
        self._become(self.candidacy.resigned(self._clock()))

    def _clock(self) -> float:
        return self._offset + self._rate * self._world.now

    def _when(self, at: float) -> float:
        return (at - self._offset) / self._rate

    def _turn(self) -> None:
        exchange, due_at = self.candidacy.next_exchange(self._clock())
        if due_at > self._clock():
            self._world.at(self._when(due_at) + ROUNDING_SECONDS, self._turn)
            return
        fate, sent = next(self._world.fates), self._world.now
        answers: list[Lease | bool | None] = []
        seen, sent_at = self.candidacy.lease, self._clock()
        executed = sent + fate.request_seconds
        deadline = sent + self.candidacy.exchange_seconds(sent_at) / self._rate
        ends = min(deadline, executed + fate.answer_seconds) + fate.stopped_seconds
        self._world.at(executed, lambda: answers.append(self._serve(exchange, seen)))
        # An answer that came while the candidate was stopped is still read.
        answered = executed + fate.answer_seconds <= ends
        self._world.at(ends, lambda: self._end(exchange, sent_at, answers[0] if answered else False))

    def _serve(self, exchange: LeaseExchange, seen: Lease | None) -> Lease | bool | None:
        """Carries out the exchange; returns the Lease as it is then (None: no Lease), or True for a conflict."""
        world, mine = self._world, self.candidacy
        if exchange is LeaseExchange.LOOK:
            return world.lease
        if (world.lease and world.lease.resource_version) != (seen and seen.resource_version):
            return True
        holder = mine.identity if exchange in (LeaseExchange.TAKE, LeaseExchange.RENEW) else ""
        world.write(holder, GIVEN_UP_SECONDS if exchange is LeaseExchange.GIVE_UP else mine.duration_seconds)
        return world.lease

    def _end(self, exchange: LeaseExchange, sent_at: float, answer: Lease | bool | None) -> None:
        now = self._clock()
        if isinstance(answer, bool):
            self._become(self.candidacy.failed(exchange, now, overtaken=answer))
        elif answer is not None and exchange in (LeaseExchange.TAKE, LeaseExchange.RENEW):
            self._become(self.candidacy.held(exchange, answer, sent_at, now))
        else:
            self._become(self.candidacy.saw(answer, now))
        self._turn()

    def _become(self, candidacy: Candidacy) -> None:
        now = self._world.now
        self.candidacy = candidacy
        self._acting.end = min(self._acting.end, now)
        if candidacy.acting(self._clock()):
            self._acting = Acted(candidacy.identity, now, self._when(candidacy.acting_until_at))
            self._world.acted.append(self._acting)


def disturb(world: World, what: str) -> None:
    """Deletes, blanks or annotates the Lease, as a person can."""
    if what == "delete":
        world.lease = None
    elif world.lease is not None:
        world.write("" if what == "blank" else world.lease.holder, world.lease.duration_seconds)
