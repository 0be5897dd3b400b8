"""Bad days on which nodes are fenced: by devices that fail in every way, while leaders and people come and go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Callable

from pp_hostd.sim.fence_methods import METHODS, OFF_ON, REBOOT, STORED, STORED_ALONE, UNPLUGGED, WRONG_PLUG
from pp_hostd.sim.health import SILENT_SECONDS
from pp_hostd.sim.schedule import Day, Trouble

DEVICES = (
    "a fence device can't be reached",
    "a fence device does nothing",
    "a fence agent hangs",
    "a fence agent fails late",
)
_LEADERS = ("leader is killed", "leader is killed", "leader hangs", "leader hangs", "cut off from API")
FLOW_SECONDS = 60.0
"""About so long after its Node was found not Ready a host is off, or was."""
LONG_SECONDS = 140.0
"""Until all is healed, about."""


def _ill(day: Day, *, sick: bool | None = None) -> Iterator[Trouble]:
    """A host is cut off, or its kubelet says that it is not Ready; yields that trouble alone."""
    chance, victim = day.chance, day.victim
    sick = chance.random() < 0.4 if sick is None else sick
    if sick:
        yield Trouble(day.begin, "kubelet is sick", (victim,), 60 + chance.random() * 60)
    else:
        yield Trouble(day.begin, "cut off", (victim,), SILENT_SECONDS + 30 + chance.random() * 50)


def _at(day: Day, ill: Trouble) -> float:
    """About when the flow is at work."""
    found_at = day.begin + (SILENT_SECONDS if ill.what == "cut off" else 0.0)
    return found_at + 5 + day.chance.random() * FLOW_SECONDS


def _ailing(day: Day) -> Iterator[Trouble]:
    """The devices fail, in one way after the other."""
    (ill,) = _ill(day)
    yield ill
    if day.chance.random() < 0.4:
        yield Trouble(day.begin, day.chance.choice(DEVICES), (day.victim,), LONG_SECONDS)
        return
    for _ in range(day.chance.randint(0, 3)):
        yield Trouble(_at(day, ill), day.chance.choice(DEVICES), (day.victim,), day.chance.random() * 40)


def _led(day: Day) -> Iterator[Trouble]:
    """Leaders are killed, hang, or lose the API while agents run."""
    chance = day.chance
    (ill,) = _ill(day)
    yield ill
    for _ in range(chance.randint(1, 4)):
        what = chance.choice(_LEADERS)
        who = (day.victim,) if what != "cut off from API" else (chance.choice(day.names[:3]),)
        yield Trouble(_at(day, ill), what, who, 5 + chance.random() * 30, chance.random())
    if chance.random() < 0.3:
        yield Trouble(_at(day, ill), chance.choice(DEVICES), (day.victim,), chance.random() * 20)


def _by_hand(day: Day) -> Iterator[Trouble]:
    """People make, edit and delete NodeFences, also of hosts that are well, and change their methods."""
    chance, victim = day.chance, day.victim
    (ill,) = _ill(day)
    if chance.random() < 0.7:
        yield ill
    for _ in range(chance.randint(1, 4)):
        what = chance.choice(
            ("somebody fences", "a NodeFence is edited", "a NodeFence is deleted", "a fence-config is changed")
        )
        who = victim if chance.random() < 0.8 else chance.choice(day.names)
        yield Trouble(day.begin + chance.random() * 100, what, (who,), 0.0, chance.random())


def _pressed(day: Day) -> Iterator[Trouble]:
    """Somebody powers a host on by hand as soon as it is off, and it may be cut off again soon after it has booted."""
    chance, victim = day.chance, day.victim
    (ill,) = _ill(day, sick=chance.random() < 0.7)
    yield ill
    yield Trouble(day.begin + 1, "powered on by hand once it is off", (victim,))
    if chance.random() < 0.6:
        yield Trouble(day.begin + 2, "cut off once it is back", (victim,), 20 + chance.random() * 40, chance.random())
    if chance.random() < 0.3:
        yield Trouble(_at(day, ill), "watches lag", (), 60.0, chance.random() * 0.5)


def _paused(day: Day) -> Iterator[Trouble]:
    """A person pauses the leader in the middle of a flow, so its evidence grows old; the host may be powered on by hand
    meanwhile, and be cut off again."""
    chance, victim = day.chance, day.victim
    (ill,) = _ill(day)
    yield ill
    for _ in range(chance.randint(1, 2)):
        yield Trouble(_at(day, ill), "the leader is paused", (), 5 + chance.random() * 85)
    if chance.random() < 0.5:
        yield Trouble(day.begin + 1, "powered on by hand once it is off", (victim,))
        yield Trouble(day.begin + 2, "cut off once it is back", (victim,), 20 + chance.random() * 60, chance.random())
    if chance.random() < 0.3:
        yield Trouble(_at(day, ill), chance.choice(DEVICES), (victim,), chance.random() * 40)


def _flapping(day: Day) -> Iterator[Trouble]:
    """A host comes and goes: its Node is Ready just when something is done about it."""
    chance, victim, at = day.chance, day.victim, day.begin
    for _ in range(chance.randint(2, 4)):
        seconds = 10 + chance.random() * 30
        yield Trouble(at, chance.choice(("kubelet is sick", "kubelet is sick", "cut off")), (victim,), seconds)
        at += seconds + chance.random() * 15
    if chance.random() < 0.5:
        yield Trouble(day.begin + chance.random() * 60, chance.choice(DEVICES), (victim,), chance.random() * 30)


def _requested(day: Day) -> Iterator[Trouble]:
    """Somebody requests another remediation of a node that is being fenced, and perhaps withdraws it."""
    (ill,) = _ill(day)
    yield ill
    yield Trouble(_at(day, ill), "request", (day.victim,))
    if day.chance.random() < 0.5:
        yield Trouble(_at(day, ill), "absolve", (day.victim,))


def _crashed(day: Day) -> Iterator[Trouble]:
    """A kernel crashes, and another one saves its dump; the host is cut off again soon after it has booted."""
    chance, victim, at = day.chance, day.victim, day.begin
    if chance.random() < 0.6:
        yield from _ill(day, sick=True)
        at += 10 + chance.random() * 40
    yield Trouble(at, "kernel crashes", (victim,), 20 + chance.random() * 100)
    if chance.random() < 0.7:
        yield Trouble(at, "cut off once it is back", (victim,), 20 + chance.random() * 60, chance.random())
    if chance.random() < 0.3:
        yield Trouble(at, "watches lag", (), 60.0, chance.random())
    if chance.random() < 0.3:
        yield Trouble(at + chance.random() * 40, chance.choice(_LEADERS[:3]), (victim,), 5 + chance.random() * 10)
    if chance.random() < 0.3:
        yield Trouble(at, chance.choice(DEVICES), (victim,), chance.random() * LONG_SECONDS)


def _plugged(day: Day) -> Iterator[Trouble]:
    """A kubelet says that it is not Ready, and the plug of its host is another one's."""
    yield from _ill(day, sick=True)


def _stored(day: Day) -> Iterator[Trouble]:
    """The storage of a host is cut off, and the host comes back."""
    chance, victim = day.chance, day.victim
    (ill,) = _ill(day)
    yield ill
    if chance.random() < 0.5:
        yield Trouble(_at(day, ill), chance.choice(DEVICES), (victim,), chance.random() * 40)
    if chance.random() < 0.3:
        yield Trouble(_at(day, ill), "a NodeFence is edited", (victim,), 0.0, chance.random())


FENCE_THEMES: dict[str, Callable[[Day], Iterator[Trouble]]] = {
    "fence devices fail": _ailing,
    "leaders change in a fence": _led,
    "fences by hand": _by_hand,
    "a button is pressed": _pressed,
    "paused in a fence": _paused,
    "a fenced host flaps": _flapping,
    "fenced and requested": _requested,
    "fenced storage": _stored,
    "wrong plugs": _plugged,
    "kernels crash": _crashed,
}
_OF_VICTIM = {"fenced storage": (STORED, STORED_ALONE), "wrong plugs": (WRONG_PLUG,)}
_LIKELY = (REBOOT, REBOOT, OFF_ON, OFF_ON, STORED, STORED, STORED_ALONE, UNPLUGGED)
WRONG = 0.03
"""So often a plug is that of another host."""


def some_methods(day: Day, theme: str) -> tuple[str, ...]:
    """Of each host. The victim's are seldom those of another remedy, which other days are about."""
    return tuple(_some_methods(day, _OF_VICTIM.get(theme, _LIKELY) if name == day.victim else ()) for name in day.names)


def _some_methods(day: Day, likely: tuple[str, ...]) -> str:
    chance = day.chance
    if likely:
        return chance.choice(likely)
    return WRONG_PLUG if chance.random() < WRONG else chance.choice(METHODS[:-1])
