"""Bad days as data: troubles in the order of time, the cluster that they come to, and every kind of trouble."""

from __future__ import annotations

import random

from pp_hostd.frozen import frozen
from pp_hostd.sim.cluster import PLAIN, Cluster

CALM_SECONDS = 12.0
"""Before the first trouble: everybody is well by then."""
TROUBLED_SECONDS = 85.0
HEALED_AT = 95.0
"""From here on nothing is wrong any more, but what was broken must be mended by those who live there."""
END_AT = 180.0
MESSAGES = 24
"""Of so many that come next one is spoiled, if it is a single message: its number is this part of them."""


@frozen
class Trouble:
    """One trouble: what happens to whom; `seconds` is how long it lasts, `part` how bad it is (from 0 to 1)."""

    at: float
    what: str
    who: tuple[str, ...] = ()
    seconds: float = 0.0
    part: float = 0.0

    def __str__(self) -> str:
        details = [", ".join(self.who), f"{self.seconds:.1f} s" if self.seconds else "", f"{self.part:.2f}"]
        return f"{self.at:7.2f} {self.what} ({'; '.join(filter(None, details))})"


@frozen
class Schedule:
    """`seed` also decides what chance does on the way: delays, losses, dice. The `spared` must not reset themselves."""

    seed: int
    nodes: int
    troubles: tuple[Trouble, ...]
    healed_at: float = HEALED_AT
    end_at: float = END_AT
    cluster: Cluster = PLAIN
    spared: tuple[str, ...] = ()


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
    "absolve once it is freed": 1,
    "reset fails": 1,
    "packets are lost": 2,
    "a host is slow": 2,
    "packets come twice": 1,
    "machine is replaced": 1,
    "condemnation lapses": 1,
    "watches lag": 1,
    "all but the leader lose the API": 1,
    "a request hangs": 3,
    "an answer is lost": 3,
    "a node leaves": 2,
    "agent is upgraded": 2,
    "agent is reloaded": 1,
    "a clock is set": 1,
    "agent starts late": 1,
}
"""The troubles of a day, and how often each happens beside the others."""
_NAMES = tuple(KINDS)
_WEIGHTS = tuple(KINDS.values())


@frozen
class Day:
    """The victim is who most of the trouble comes to, from the beginning on."""

    chance: random.Random
    names: list[str]
    victim: str
    begin: float

    @property
    def others(self) -> list[str]:
        """In any order."""
        others = [name for name in self.names if name != self.victim]
        self.chance.shuffle(others)
        return others


def any_trouble(day: Day) -> Trouble:
    chance, names, victim, begin = day.chance, day.names, day.victim, day.begin
    (what,) = chance.choices(_NAMES, _WEIGHTS)
    if chance.random() < 0.6:
        at = begin + chance.expovariate(1 / 10)
    else:
        at = CALM_SECONDS + chance.random() * TROUBLED_SECONDS
    who = [victim if chance.random() < 0.7 else chance.choice(names)]
    if what in ("split", "cut one way", "cut off from API"):
        who += [name for name in names if name not in who and chance.random() < 0.5]
    return Trouble(at, what, tuple(who), some_seconds(chance), chance.random())


def some_seconds(chance: random.Random) -> float:
    return chance.choice((chance.random() * 3, chance.random() * 15, chance.random() * 80))
