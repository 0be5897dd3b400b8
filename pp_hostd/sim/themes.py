"""Bad days in which rules meet: each theme is a way that things go wrong together, during power cycles too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Callable

from pp_hostd.sim.bare_metal import LOOK_SECONDS
from pp_hostd.sim.host import BOOT_SECONDS
from pp_hostd.sim.schedule import MESSAGES, Day, Trouble, any_trouble, some_seconds


def _isolated(day: Day) -> Iterator[Trouble]:
    """One host is cut off for long, and its remediation is requested about then."""
    chance, victim, begin = day.chance, day.victim, day.begin
    what = chance.choice(("cut off", "cut off", "cut one way", "cut off from API"))
    yield Trouble(begin, what, (victim,), 40 + chance.random() * 40, chance.random())
    yield Trouble(begin + chance.uniform(-4, 10), "request", (victim,))
    if chance.random() < 0.6:
        yield Trouble(begin - 1, "agent stalls at the worst moment", (victim,))
    if chance.random() < 0.3:
        yield Trouble(begin - 1, "reset fails", (victim,))


def _divided(day: Day) -> Iterator[Trouble]:
    """Part of the hosts, the victim among them, can talk to each other and not to the API."""
    chance, names, victim, begin = day.chance, day.names, day.victim, day.begin
    half = len(names) // 2
    side = (victim, *day.others[: max(0, half + chance.choice((-1, -1, 0, 1)))])
    what, part = chance.choice((("split", 0.0), ("cut off from API", 0.0), ("split", chance.random())))
    yield Trouble(begin, what, side, 50 + chance.random() * 35, part)
    yield Trouble(begin + chance.uniform(-3, 5), "request", (victim,))
    if chance.random() < 0.5:
        yield Trouble(begin + chance.random() * 30, "agent is killed", (chance.choice(names),))
    if chance.random() < 0.3:
        yield Trouble(begin - 1, "agent stalls at the worst moment", (victim,))


def _outage(day: Day) -> Iterator[Trouble]:
    """The control plane fails, and perhaps somebody was condemned or absolved shortly before."""
    chance, names, victim, begin = day.chance, day.names, day.victim, day.begin
    if chance.random() < 0.6:
        yield Trouble(begin - chance.random() * 4, "request", (victim,))
        yield Trouble(begin + chance.uniform(-1, 3), "cut off", (victim,), chance.random() * 12)
        yield Trouble(begin + chance.random() * 6, "absolve", (victim,))
    what = chance.choice(("API stops", "API stops", "API browns out", "cut off from API"))
    yield Trouble(begin + chance.random() * 8, what, tuple(names), 20 + chance.random() * 55, chance.random())


def _flicker(day: Day) -> Iterator[Trouble]:
    """Condemned, absolved, condemned again, while the host can't always hear of it."""
    chance, victim, begin = day.chance, day.victim, day.begin
    yield Trouble(
        begin - 1, "cut off" if chance.random() < 0.7 else "cut off from API", (victim,), 10 + some_seconds(chance)
    )
    at = begin
    for what in ("request", "absolve") * chance.randint(1, 3):
        yield Trouble(at, what, (victim,))
        at += chance.choice((0.2, 2.0, 10.0, 25.0)) * chance.random()
    if chance.random() < 0.7:
        yield Trouble(at, "request", (victim,))
    yield Trouble(begin + chance.random() * 20, "leader is killed", (victim,), 0.0, chance.random())


def _leaders(day: Day) -> Iterator[Trouble]:
    """Leaders come and go while somebody is remediated, who reboots meanwhile."""
    chance, victim, begin = day.chance, day.victim, day.begin
    yield Trouble(begin, "cut off", (victim,), some_seconds(chance))
    yield Trouble(begin, "request", (victim,))
    if chance.random() < 0.5:  # it lives for as long as its watchdog lets it, and the next leader leads by then
        yield Trouble(begin, "agent stalls at the worst moment", (victim,), 60.0)
        yield Trouble(begin + 2 + chance.random() * 10, "leader hangs", (victim,), 25 + chance.random() * 30)
    for _ in range(chance.randint(1, 3)):
        what = chance.choice(("leader is killed", "leader hangs", "leader hangs"))
        yield Trouble(begin + chance.random() * 60, what, (victim,), 5 + chance.random() * 30, chance.random())
    if chance.random() < 0.5:
        yield Trouble(begin + chance.random() * 50, "power fails", (victim,))
    if chance.random() < 0.3:
        yield Trouble(begin + chance.random() * 50, "absolve", (victim,))


def _anything(day: Day) -> Iterator[Trouble]:
    for _ in range(day.chance.randint(2, 6)):
        yield any_trouble(day)


def _deaf(day: Day) -> Iterator[Trouble]:
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


def _rough_boot(day: Day) -> Iterator[Trouble]:
    """A host boots while little of what it writes gets through, or much later."""
    chance, victim, begin = day.chance, day.victim, day.begin
    yield Trouble(begin, "power fails", (victim,))
    what = chance.choice(("a host is slow", "a host is slow", "API browns out", "packets are lost"))
    yield Trouble(begin + 7, what, (victim,), 10 + chance.random() * 50, chance.random())
    yield Trouble(begin + 8 + chance.random() * 50, "request", (victim,))
    yield Trouble(begin + 10 + chance.random() * 40, "cut off", (victim,), 80.0)


def _stopped(day: Day) -> Iterator[Trouble]:
    """An agent is told to stop while it can't withdraw its promise."""
    chance, victim, begin = day.chance, day.victim, day.begin
    yield Trouble(begin, "cut off", (victim,), 85.0)
    yield Trouble(begin + chance.uniform(-3, 6), "agent stops", (victim,), 30 + chance.random() * 50)
    yield Trouble(begin + chance.uniform(-2, 6), "request", (victim,))
    if chance.random() < 0.5:
        yield Trouble(begin - 1, "reset fails", (victim,))


def _lapsing(day: Day) -> Iterator[Trouble]:
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


def _lagging(day: Day) -> Iterator[Trouble]:
    """The leader's watch lags while somebody absolves the host, which comes back."""
    chance, victim, begin = day.chance, day.victim, day.begin
    yield Trouble(begin, "request", (victim,))
    yield Trouble(begin - 0.5, "cut off", (victim,), 10 + chance.random() * 25)
    yield Trouble(begin + 20 + chance.random() * 10, "watches lag", (), 60.0, 0.4 + chance.random() * 0.6)
    yield Trouble(begin + 25 + chance.random() * 18, "absolve", (victim,))


def _rebooted(day: Day) -> Iterator[Trouble]:
    """The power of a host fails that is cut off, and it boots into the same isolation."""
    chance, victim, begin = day.chance, day.victim, day.begin
    yield Trouble(begin, chance.choice(("cut off", "cut off from API")), (victim,), 30 + chance.random() * 50)
    yield Trouble(begin + chance.uniform(-5, 30), "power fails", (victim,))
    yield Trouble(begin + chance.uniform(-5, 20), "request", (victim,))
    if chance.random() < 0.5:
        yield Trouble(begin + chance.random() * 40, "agent is killed", (victim,))


def _tainted(day: Day) -> Iterator[Trouble]:
    """A host boots whose kubelet nothing holds, its agent is late, and it has a way for a moment only."""
    chance, victim, begin = day.chance, day.victim, day.begin
    yield Trouble(begin, "power fails", (victim,))
    asked_at = begin + chance.uniform(-3, 50)
    yield Trouble(asked_at, "request", (victim,))
    if chance.random() < 0.7:
        yield Trouble(begin, "agent starts late", (victim,), chance.random() * 100)
    way = chance.random() * 20
    if chance.random() < 0.5:
        yield Trouble(begin, "cut off", (victim,), way)
    yield Trouble(begin + 9 + way + chance.random() * 20, "cut off", (victim,), 80.0)


def _marked(day: Day) -> Iterator[Trouble]:
    """A host boots; while its first promise is on its way, it is requested, freed, and absolved."""
    chance, victim, begin = day.chance, day.victim, day.begin
    yield Trouble(begin, "power fails", (victim,))
    asked_at = begin + chance.uniform(9, 50)
    yield Trouble(asked_at, "request", (victim,))
    if chance.random() < 0.6:
        yield Trouble(
            begin + 1, "a request hangs", (victim,), 3 + chance.random() * 25, chance.uniform(3, 12) / MESSAGES
        )
    else:
        yield Trouble(begin, "agent starts late", (victim,), chance.random() * 60)
        yield Trouble(begin, "absolve once it is freed", (victim,), 0.0, chance.random())
    if chance.random() < 0.5:
        yield Trouble(asked_at + chance.random(), "watches lag", (), 60.0, chance.random() * 0.6)


def _membership(day: Day) -> Iterator[Trouble]:
    """Nodes come and go while part of the hosts, the victim among them, can talk to each other alone."""
    chance, names, victim, begin = day.chance, day.names, day.victim, day.begin
    others = day.others
    side = others[: max(0, len(names) // 2 + chance.choice((-1, 0, 0, 1)))]
    cut_at = begin + chance.random() * 5
    if chance.random() < 0.5:  # its own side leaves, and it can't hear of that
        leaving, leave_at = side, cut_at + chance.random() * 4
    else:  # the other side does, and it hears of that, but can't say so
        leaving, leave_at = others[len(side) :], cut_at - chance.random() * 2
        yield Trouble(leave_at, "a request hangs", (victim,), 0.0)
    for name in leaving:
        yield Trouble(leave_at, "a node leaves", (name,), 10 + some_seconds(chance))
    yield Trouble(cut_at, chance.choice(("split", "split", "cut off from API")), (victim, *side), 85.0)
    yield Trouble(cut_at + chance.random() * 4, "request", (victim,))


def _upgraded(day: Day) -> Iterator[Trouble]:
    """A host gets another T when its remediation is requested, and can say so in time, or late, or never."""
    chance, victim, begin = day.chance, day.victim, day.begin
    cut_at = begin + chance.uniform(-3, 3)
    for at in (begin, begin + chance.random() * 2):
        what = chance.choice(("agent is upgraded", "agent is reloaded"))
        yield Trouble(at, what, (victim,), 0.0, chance.choice((chance.random(), 1.0)))
    if chance.random() < 0.3:
        what = chance.choice(("a request hangs", "an answer is lost"))
        yield Trouble(begin, what, (victim,), chance.random() * 20, chance.random() * 0.3)
    if chance.random() < 0.5:
        yield Trouble(begin - 4, "watches lag", (), 60.0, 0.1 + chance.random() * 0.2)
    yield Trouble(cut_at + chance.uniform(-2, 2), "request", (victim,))
    yield Trouble(cut_at, "cut off", (victim,), 85.0)
    if chance.random() < 0.7:
        yield Trouble(begin + 3.1, "agent stalls at the worst moment", (victim,))


def _replaced(day: Day) -> Iterator[Trouble]:
    """A machine is replaced by another one of its name, while the host of the old one lives on."""
    chance, victim, begin = day.chance, day.victim, day.begin
    yield Trouble(begin + chance.random() * 10, "machine is replaced", (victim,))
    if chance.random() < 0.5:
        yield Trouble(begin + chance.random() * 30, "request", (victim,))
    if chance.random() < 0.5:
        yield Trouble(begin + chance.random() * 30, "agent is killed", (victim,))


def _rolling_upgrade(day: Day) -> Iterator[Trouble]:
    """All agents get another T, one after the other, while remediation of a node is requested."""
    chance, victim, begin = day.chance, day.victim, day.begin
    part, pace_seconds = chance.random(), chance.random() * 5
    for number, name in enumerate(day.names):
        yield Trouble(begin + number * pace_seconds, "agent is upgraded", (name,), 0.0, part)
    yield Trouble(begin + chance.random() * 20, "request", (victim,))
    yield Trouble(begin + chance.random() * 20, chance.choice(("cut off", "API stops")), (victim,), 40.0)


THEMES: dict[str, Callable[[Day], Iterator[Trouble]]] = {
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
    "rebooted": _rebooted,
    "tainted": _tainted,
    "marked": _marked,
    "membership": _membership,
    "upgraded": _upgraded,
    "rolling upgrade": _rolling_upgrade,
    "replaced": _replaced,
}


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


def _replaced_while_off(day: Day) -> Iterator[Trouble]:
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
    "replaced": _replaced_while_off,
    "withdrawn": _withdrawn,
}
