"""What goes wrong on a bad day: troubles in the order of time, made by chance from a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Callable

CALM_SECONDS = 12.0
"""Before the first trouble: everybody is well by then."""
TROUBLED_SECONDS = 85.0
HEALED_AT = 95.0
"""From here on nothing is wrong any more, but what was broken must be mended by those who live there."""
END_AT = 180.0


@dataclass(frozen=True)
class Trouble:
    """What happens to whom; `seconds` is how long it lasts, `part` how bad it is (from 0 to 1)."""

    at: float
    what: str
    who: tuple[str, ...] = ()
    seconds: float = 0.0
    part: float = 0.0

    def __str__(self) -> str:
        details = [", ".join(self.who), f"{self.seconds:.1f} s" if self.seconds else "", f"{self.part:.2f}"]
        return f"{self.at:7.2f} {self.what} ({'; '.join(filter(None, details))})"


@dataclass(frozen=True)
class Schedule:
    """`seed` also decides what chance does on the way: delays, losses, dice."""

    seed: int
    nodes: int
    troubles: tuple[Trouble, ...]
    healed_at: float = HEALED_AT
    end_at: float = END_AT


KINDS = {
    "request": 5,
    "cut off": 4,
    "cut off from API": 3,
    "cut one way": 2,
    "split": 2,
    "API stops": 3,
    "API browns out": 2,
    "a server stops": 1,
    "power fails": 2,
    "agent is killed": 3,
    "agent hangs": 2,
    "agent stalls": 2,
    "agent stalls at the worst moment": 1,
    "agent stops": 1,
    "leader is killed": 2,
    "leader hangs": 2,
    "absolve": 2,
    "reset fails": 1,
    "packets are lost": 2,
    "a host is slow": 2,
    "packets come twice": 1,
    "machine is replaced": 1,
    "condemnation lapses": 1,
    "watches lag": 1,
    "all but the leader lose the API": 1,
}
"""What can go wrong, and how often beside the others."""
_NAMES = tuple(KINDS)
_WEIGHTS = tuple(KINDS.values())


@dataclass(frozen=True)
class _Day:
    """The victim is who most of the trouble comes to, from the beginning on."""

    chance: random.Random
    names: list[str]
    victim: str
    begin: float


def random_schedule(seed: int, most_nodes: int, least_nodes: int = 2, theme: str = "") -> Schedule:
    """A bad day has a theme (this one, or any), in which rules meet; then things happen that have nothing to do with
    it."""
    chance = random.Random(f"schedule {seed}")
    nodes = chance.randint(least_nodes, most_nodes)
    names = [f"node-{number}" for number in range(1, nodes + 1)]
    victim = chance.choice(names)
    begin = CALM_SECONDS + chance.random() * 8
    day = _Day(chance, names, victim, begin)
    troubles = list(THEMES[theme or chance.choice(sorted(THEMES))](day))
    troubles += [_trouble(day) for _ in range(chance.randint(0, 6))]
    soon = [trouble if trouble.at < HEALED_AT else replace(trouble, at=HEALED_AT - 1) for trouble in troubles]
    return Schedule(seed, nodes, tuple(sorted(soon, key=lambda trouble: trouble.at)))


def _trouble(day: _Day) -> Trouble:
    chance, names, victim, begin = day.chance, day.names, day.victim, day.begin
    (what,) = chance.choices(_NAMES, _WEIGHTS)
    if chance.random() < 0.6:
        at = begin + chance.expovariate(1 / 10)
    else:
        at = CALM_SECONDS + chance.random() * TROUBLED_SECONDS
    who = [victim if chance.random() < 0.7 else chance.choice(names)]
    if what in ("split", "cut one way", "cut off from API"):
        who += [name for name in names if name not in who and chance.random() < 0.5]
    return Trouble(at, what, tuple(who), _seconds(chance), chance.random())


def _seconds(chance: random.Random) -> float:
    return chance.choice((chance.random() * 3, chance.random() * 15, chance.random() * 80))


def _isolated(day: _Day) -> Iterator[Trouble]:
    """One host is cut off for long, and asked for about then."""
    chance, victim, begin = day.chance, day.victim, day.begin
    what = chance.choice(("cut off", "cut off", "cut one way", "cut off from API"))
    yield Trouble(begin, what, (victim,), 40 + chance.random() * 40, chance.random())
    yield Trouble(begin + chance.uniform(-4, 10), "request", (victim,))
    if chance.random() < 0.6:
        yield Trouble(begin - 1, "agent stalls at the worst moment", (victim,))
    if chance.random() < 0.3:
        yield Trouble(begin - 1, "reset fails", (victim,))


def _divided(day: _Day) -> Iterator[Trouble]:
    """Part of the hosts, the victim among them, can talk to each other and not to the API."""
    chance, names, victim, begin = day.chance, day.names, day.victim, day.begin
    others = [name for name in names if name != victim]
    chance.shuffle(others)
    half = len(names) // 2
    side = (victim, *others[: max(0, half + chance.choice((-1, -1, 0, 1)))])
    what, part = chance.choice((("split", 0.0), ("cut off from API", 0.0), ("split", chance.random())))
    yield Trouble(begin, what, side, 50 + chance.random() * 35, part)
    yield Trouble(begin + chance.uniform(-3, 5), "request", (victim,))
    if chance.random() < 0.5:
        yield Trouble(begin + chance.random() * 30, "agent is killed", (chance.choice(names),))
    if chance.random() < 0.3:
        yield Trouble(begin - 1, "agent stalls at the worst moment", (victim,))


def _outage(day: _Day) -> Iterator[Trouble]:
    """The control plane fails, and perhaps somebody was condemned or absolved shortly before."""
    chance, names, victim, begin = day.chance, day.names, day.victim, day.begin
    if chance.random() < 0.6:
        yield Trouble(begin - chance.random() * 4, "request", (victim,))
        yield Trouble(begin + chance.uniform(-1, 3), "cut off", (victim,), chance.random() * 12)
        yield Trouble(begin + chance.random() * 6, "absolve", (victim,))
    what = chance.choice(("API stops", "API stops", "API browns out", "cut off from API"))
    yield Trouble(begin + chance.random() * 8, what, tuple(names), 20 + chance.random() * 55, chance.random())


def _flicker(day: _Day) -> Iterator[Trouble]:
    """Condemned, absolved, condemned again, while the host can't always hear of it."""
    chance, victim, begin = day.chance, day.victim, day.begin
    yield Trouble(
        begin - 1, "cut off" if chance.random() < 0.7 else "cut off from API", (victim,), 10 + _seconds(chance)
    )
    at = begin
    for what in ("request", "absolve") * chance.randint(1, 3):
        yield Trouble(at, what, (victim,))
        at += chance.choice((0.2, 2.0, 10.0, 25.0)) * chance.random()
    if chance.random() < 0.7:
        yield Trouble(at, "request", (victim,))
    yield Trouble(begin + chance.random() * 20, "leader is killed", (victim,), 0.0, chance.random())


def _leaders(day: _Day) -> Iterator[Trouble]:
    """Leaders come and go while somebody is remediated, who reboots meanwhile."""
    chance, victim, begin = day.chance, day.victim, day.begin
    yield Trouble(begin, "cut off", (victim,), _seconds(chance))
    yield Trouble(begin, "request", (victim,))
    for _ in range(chance.randint(1, 3)):
        what = chance.choice(("leader is killed", "leader hangs", "leader hangs"))
        yield Trouble(begin + chance.random() * 60, what, (victim,), 5 + chance.random() * 30, chance.random())
    if chance.random() < 0.5:
        yield Trouble(begin + chance.random() * 50, "power fails", (victim,))
    if chance.random() < 0.3:
        yield Trouble(begin + chance.random() * 50, "absolve", (victim,))


def _anything(day: _Day) -> Iterator[Trouble]:
    for _ in range(day.chance.randint(2, 6)):
        yield _trouble(day)


def _deaf(day: _Day) -> Iterator[Trouble]:
    """Peers that knew of the condemnation lose the API, and perhaps their memory, until the wait is almost over."""
    chance, names, victim, begin = day.chance, day.names, day.victim, day.begin
    yield Trouble(begin, "cut off from API", (victim,), 80.0)
    yield Trouble(begin, "request", (victim,))
    at = begin + 0.5 + chance.random() * 4
    over_at = begin + chance.uniform(36, 45)
    yield Trouble(at, "all but the leader lose the API", (victim,), over_at - at - 1)
    if chance.random() < 0.7:
        yield Trouble(over_at - chance.random() * 3, "cut off", (victim,), 60.0)
    if chance.random() < 0.6:
        for name in names:
            if name != victim and chance.random() < 0.9:
                yield Trouble(at + 0.1 + chance.random() * 3, "agent is killed", (name,))
    if chance.random() < 0.3:
        yield Trouble(begin, "agent stalls at the worst moment", (victim,))


def _rough_boot(day: _Day) -> Iterator[Trouble]:
    """A host boots while little of what it writes gets through, or much later."""
    chance, victim, begin = day.chance, day.victim, day.begin
    yield Trouble(begin, "power fails", (victim,))
    what = chance.choice(("a host is slow", "a host is slow", "API browns out", "packets are lost"))
    yield Trouble(begin + 7, what, (victim,), 10 + chance.random() * 50, chance.random())
    yield Trouble(begin + 8 + chance.random() * 50, "request", (victim,))
    yield Trouble(begin + 10 + chance.random() * 40, "cut off", (victim,), 80.0)


def _stopped(day: _Day) -> Iterator[Trouble]:
    """An agent is told to stop while it can't withdraw its promise."""
    chance, victim, begin = day.chance, day.victim, day.begin
    yield Trouble(begin, "cut off", (victim,), 85.0)
    yield Trouble(begin + chance.uniform(-3, 6), "agent stops", (victim,), 30 + chance.random() * 50)
    yield Trouble(begin + chance.uniform(-2, 6), "request", (victim,))


def _lapsing(day: _Day) -> Iterator[Trouble]:
    """The condemnation is gone for a moment, in which the host has a way to the API."""
    chance, victim, begin = day.chance, day.victim, day.begin
    first = 6 + chance.random() * 8
    yield Trouble(begin, "cut off", (victim,), first - 1)
    yield Trouble(begin + 0.2, "request", (victim,))
    yield Trouble(begin + first - chance.random() * 2, "condemnation lapses", (victim,), 1 + chance.random() * 8)
    yield Trouble(begin + first + chance.random() * 6, "cut off", (victim,), 85.0)
    if chance.random() < 0.8:
        yield Trouble(begin + first, "agent stalls at the worst moment", (victim,))
    if chance.random() < 0.7:
        yield Trouble(begin + 2, "watches lag", (), 60.0, 0.3 + chance.random() * 0.5)


def _lagging(day: _Day) -> Iterator[Trouble]:
    """The leader's watch lags while somebody absolves the host, which comes back."""
    chance, victim, begin = day.chance, day.victim, day.begin
    yield Trouble(begin, "request", (victim,))
    yield Trouble(begin - 0.5, "cut off", (victim,), 10 + chance.random() * 25)
    yield Trouble(begin + 20 + chance.random() * 10, "watches lag", (), 60.0, 0.4 + chance.random() * 0.6)
    yield Trouble(begin + 25 + chance.random() * 18, "absolve", (victim,))


THEMES: dict[str, Callable[[_Day], Iterator[Trouble]]] = {
    "isolated": _isolated,
    "divided": _divided,
    "outage": _outage,
    "flicker": _flicker,
    "leaders": _leaders,
    "anything": _anything,
    "deaf": _deaf,
    "rough boot": _rough_boot,
    "stopped": _stopped,
    "lapsing": _lapsing,
    "lagging": _lagging,
}
