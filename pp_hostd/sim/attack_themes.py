"""Troubles that people and their tools make on a random day: beside its theme, and in a cluster made for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Callable

from pp_hostd.frozen import replace
from pp_hostd.sim.cluster import Cluster
from pp_hostd.sim.schedule import Day, Trouble, some_seconds

BUDGET = "1"
"""So few remediations may begin in an hour where the budget is the point: a day has time for two or three."""
SAVED_AT = 5.0
"""Everybody has promised by then, and nobody is requested."""
Attack = Callable[[Day], Iterator[Trouble]]


def _some(day: Day) -> tuple[str, ...]:
    """The victim, or all, or any others with it."""
    chance = day.chance
    share = chance.choice((0.0, 0.5, 1.0))
    return (day.victim, *(name for name in day.others if chance.random() < share))


def _requested_in_isolation(day: Day, at: float) -> Iterator[Trouble]:
    what = day.chance.choice(("cut off", "cut off from API"))
    yield Trouble(at, what, (day.victim,), 30 + day.chance.random() * 40)
    yield Trouble(at + 1, "request", (day.victim,))


def _ids(day: Day) -> Iterator[Trouble]:
    """The id is removed after a remediation, or in the middle of it, and the host is condemned again."""
    chance, begin = day.chance, day.begin
    yield Trouble(begin, "cut off", (day.victim,), 46.0)
    yield Trouble(begin + 0.5, "request", (day.victim,))
    removed_at = begin + chance.choice((chance.random() * 40, 50 + chance.random() * 10))
    yield Trouble(removed_at, "condemnation id is removed", (day.victim,))
    yield from _requested_in_isolation(day, begin + 55 + chance.random() * 15)


def _restore(day: Day) -> Iterator[Trouble]:
    """Of etcd, to what was before all trouble; a remediation is under way or over, or comes later."""
    chance, at = day.chance, day.begin + day.chance.random() * 70
    yield Trouble(SAVED_AT, "etcd is saved")
    yield from _requested_in_isolation(day, at + chance.uniform(-60, 20))
    yield Trouble(at, "etcd is restored")


def _annotation(day: Day) -> Iterator[Trouble]:
    """Somebody takes a request back by removing its annotation, of which the host hears at once or later."""
    chance, at = day.chance, day.begin + day.chance.random() * 30
    if chance.random() < 0.7:
        yield Trouble(at - chance.random() * 3, "cut off", (day.victim,), some_seconds(chance))
    yield Trouble(at, "request", (day.victim,))
    seconds = chance.choice((0.0, 0.3, 1.0, 5.0, chance.random() * 60))
    yield Trouble(at + seconds, "external-remediation is removed", (day.victim,))


def _machines(day: Day) -> Iterator[Trouble]:
    """They vanish, one or many or all, and come back with the same uid or another one."""
    chance, at = day.chance, day.begin + day.chance.random() * 30
    yield Trouble(at, "machines vanish", _some(day), some_seconds(chance), chance.random())
    if chance.random() < 0.5:
        yield Trouble(at + chance.uniform(-5, 5), "request", (day.victim,))
    if chance.random() < 0.3:
        yield Trouble(at + chance.uniform(-5, 15), "power fails", (day.victim,))
    if chance.random() < 0.3:
        yield Trouble(at + chance.random() * 20, "machines vanish", _some(day), some_seconds(chance), chance.random())


def _machine_kind(day: Day) -> Iterator[Trouble]:
    """They vanish with their CRD."""
    at = day.begin + day.chance.random() * 30
    yield Trouble(at, "machines vanish with their CRD", tuple(day.names), some_seconds(day.chance))


def _node(day: Day) -> Iterator[Trouble]:
    """A Node is deleted by somebody else and registered again, perhaps while its host is remediated."""
    chance, at = day.chance, day.begin + day.chance.random() * 30
    yield Trouble(at, "a Node is registered again", (day.victim,), some_seconds(chance))
    if chance.random() < 0.5:
        yield Trouble(at + chance.uniform(-20, 10), "request", (day.victim,))


def _finalizers(day: Day) -> Iterator[Trouble]:
    chance, at = day.chance, day.begin + day.chance.random() * 30
    yield Trouble(at, "a Node has finalizers", (day.victim,), 1 + some_seconds(chance))
    yield Trouble(at + chance.uniform(-10, 10), "request", (day.victim,))


def _liar(day: Day) -> Iterator[Trouble]:
    """He accuses whoever asks, when the control plane is away for all or for one."""
    chance, at = day.chance, day.begin + day.chance.random() * 20
    yield Trouble(at, "a peer lies", (chance.choice(day.names),), 20 + chance.random() * 50, chance.random())
    if chance.random() < 0.5:
        yield Trouble(at + chance.random() * 5, "API stops", tuple(day.names), 20 + chance.random() * 40)
    else:
        yield from _requested_in_isolation(day, at + chance.random() * 5)


def _asks_again(day: Day) -> Iterator[Trouble]:
    """A health check has more or less patience with a host that is off, or cut off."""
    chance, at = day.chance, day.begin + day.chance.random() * 10
    patience_seconds = chance.choice((0.0, chance.random() * 20))
    yield Trouble(at, "somebody asks again", (day.victim,), patience_seconds)
    what = chance.choice(("power stays off", "power stays off", "cut off"))
    yield Trouble(at, what, (day.victim,), 20 + chance.random() * 50)


def _maintenance(day: Day) -> Iterator[Trouble]:
    chance, at = day.chance, day.begin + day.chance.random() * 30
    yield Trouble(at, "maintenance", _some(day), some_seconds(chance))
    if chance.random() < 0.5:
        yield from _requested_in_isolation(day, at + chance.uniform(-10, 20))


def _cold_start(day: Day) -> Iterator[Trouble]:
    """A site loses its power, and each host gets it back in its own time."""
    chance, at = day.chance, day.begin + day.chance.random() * 20
    for name in day.names:
        yield Trouble(at, "power stays off", (name,), 5 + chance.random() * 30)


def _control_plane_reboots(day: Day) -> Iterator[Trouble]:
    """One host that starts the API, or one after the other."""
    chance, at = day.chance, day.begin + day.chance.random() * 10
    for name in day.names[: chance.choice((1, 1, 3))]:
        what = chance.choice(("power fails", "power stays off", "shutdown"))
        seconds = chance.random() * 40 if what == "power stays off" else 0.0
        yield Trouble(at, what, (name,), seconds)
        at += 20 + chance.random() * 20


def _shutdowns(day: Day) -> Iterator[Trouble]:
    """One host, or many, or a whole site, in an outage of the control plane."""
    chance, at = day.chance, day.begin + day.chance.random() * 10
    yield Trouble(at, "API stops", tuple(day.names), 15 + chance.random() * 50, chance.random())
    for name in _some(day):
        yield Trouble(at + chance.random() * 30, "shutdown", (name,), chance.choice((0.0, chance.random() * 40)))
    if chance.random() < 0.5:
        yield Trouble(at + chance.random() * 50, "request", (day.victim,))


def _power_off(day: Day) -> Iterator[Trouble]:
    """It ends well, or hangs until the watchdog fires; the host is requested about then."""
    chance, at = day.chance, day.begin + day.chance.random() * 30
    hangs = chance.random() < 0.3
    yield Trouble(at, "shutdown", (day.victim,), some_seconds(chance), 1.0 if hangs else 0.0)
    yield Trouble(at + chance.uniform(-5, 20), "request", (day.victim,))


def _credentials(day: Day) -> Iterator[Trouble]:
    chance, at = day.chance, day.begin + day.chance.random() * 30
    yield Trouble(at, "credentials end", _some(day), some_seconds(chance))
    if chance.random() < 0.3:
        yield Trouble(at + chance.uniform(-5, 5), "power fails", (day.victim,))


def _rolling_fault(day: Day) -> Iterator[Trouble]:
    """One node after the other is requested, whether or not anything is wrong with it."""
    chance, at = day.chance, day.begin
    for name in (day.victim, *day.others):
        if chance.random() < 0.5:
            yield Trouble(at, "cut off", (name,), some_seconds(chance))
        yield Trouble(at, "request", (name,))
        at += chance.random() * 12


ATTACKS: dict[str, Attack] = {
    "ids": _ids,
    "restore": _restore,
    "annotation": _annotation,
    "machines": _machines,
    "machine kind": _machine_kind,
    "node": _node,
    "finalizers": _finalizers,
    "liar": _liar,
    "asks again": _asks_again,
    "maintenance": _maintenance,
    "cold start": _cold_start,
    "control plane reboots": _control_plane_reboots,
    "shutdowns": _shutdowns,
    "power-off": _power_off,
    "credentials": _credentials,
    "rolling fault": _rolling_fault,
}


def attacked_cluster(day: Day, attacks: list[str], cluster: Cluster) -> Cluster:
    """That cluster as the attacks need it: the API on its own hosts, a small budget, pairs that are not armed."""
    chance = day.chance
    if chance.random() < 0.2 or {"cold start", "control plane reboots"}.intersection(attacks):
        cluster = replace(cluster, api_on=tuple(day.names[: chance.choice((1, 3, 3))]))
    if chance.random() < 0.2 or "rolling fault" in attacks:
        cluster = replace(cluster, resets_per_hour=BUDGET)
    return replace(cluster, arm_pairs=chance.random() < 0.5)
