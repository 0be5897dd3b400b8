"""Bad days in a cluster whose hosts are power-cycled: what may go wrong while one of them is off."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Callable

from pp_hostd.sim.bare_metal import LOOK_SECONDS
from pp_hostd.sim.host import BOOT_SECONDS
from pp_hostd.sim.kinds import Day
from pp_hostd.sim.schedule import Trouble

TROUBLES = ("BMC does not answer", "the operator is away", "a BareMetalHost is paused")
OFF_SECONDS = 4 * LOOK_SECONDS
"""By then a host that was requested reads off."""


def _requested(day: Day) -> Iterator[Trouble]:
    """Things that have nothing to do with each other go wrong."""
    chance = day.chance
    yield Trouble(day.begin + chance.random() * 10, "request", (day.victim,))
    for _ in range(chance.randint(0, 3)):
        who = day.victim if chance.random() < 0.8 else chance.choice(day.names)
        at = day.begin + chance.random() * 40
        yield Trouble(at, chance.choice(TROUBLES), (who,), chance.random() * 40, chance.random())


def _powered_on_by_hand(day: Day) -> Iterator[Trouble]:
    """While no leader acts, a person pauses the BareMetalHost of a host that is off, and powers the host on."""
    chance, victim, begin = day.chance, day.victim, day.begin
    seconds = 2 * BOOT_SECONDS + chance.random() * 30
    away_seconds = OFF_SECONDS + seconds + chance.uniform(-4, 4)
    yield Trouble(begin, "request", (victim,))
    if chance.random() < 0.3:
        yield Trouble(begin + 1, "the leader is paused", (), away_seconds)
    else:
        yield from (Trouble(begin + 1, "leader hangs", (), away_seconds, part) for part in (0.1, 0.5, 0.9))
    yield Trouble(begin + OFF_SECONDS, "a BareMetalHost is paused", (victim,), seconds, 0.5)


def _requested_again(day: Day) -> Iterator[Trouble]:
    """A health check requests again while the host is off, or boots."""
    yield Trouble(day.begin, "request", (day.victim,))
    yield Trouble(day.begin + 1, "somebody asks again", (day.victim,), day.chance.choice((0.0, 5.0)))


def _replaced(day: Day) -> Iterator[Trouble]:
    """The Machine of a host that goes off, or is off, is replaced."""
    yield Trouble(day.begin, "request", (day.victim,))
    yield Trouble(day.begin + day.chance.random() * OFF_SECONDS, "machine is replaced", (day.victim,))


def _withdrawn(day: Day) -> Iterator[Trouble]:
    """Somebody withdraws the request, and perhaps requests again."""
    chance, victim, at = day.chance, day.victim, day.begin
    for what in ("request", "absolve", "request")[: chance.randint(2, 3)]:
        yield Trouble(at, what, (victim,))
        at += chance.random() * OFF_SECONDS


POWER_THEMES: dict[str, Callable[[Day], Iterator[Trouble]]] = {
    "requested": _requested,
    "powered on by hand": _powered_on_by_hand,
    "requested again": _requested_again,
    "replaced": _replaced,
    "withdrawn": _withdrawn,
}
