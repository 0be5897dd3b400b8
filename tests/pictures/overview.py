"""The picture of README.md: who talks to whom, and what happens when a cable is pulled, to scale."""

from __future__ import annotations

from collections.abc import Iterator

from tests.pictures.figures import PROMISE, SETTINGS, Moment, pulled_cable
from tests.pictures.svg import Tone, arrow, box, cross, document, line, paragraph, text

WIDTH, HEIGHT = 960, 606
LEFT, RIGHT, AXIS, LAST_SECONDS = 150, 930, 596, 56
HOSTS = ((60, "worker-1"), (370, "worker-2"), (680, "control-1"))
HOST_WIDTH, HOST_TOP = 220, 208


def overview() -> str:
    moments = pulled_cable()
    title = f"Who talks to whom, and what happens in {moments[-1].after} when a worker's cable is pulled"
    told = " ".join(f"After {each.after}: {each.who}: {each.told}." for each in moments)
    return document(WIDTH, HEIGHT, title, told, [*_who_talks(), *_what_happens(moments)])


def _who_talks() -> Iterator[str]:
    yield text(20, 32, "Who talks to whom", style="big")
    yield box(330, 48, 300, 58)
    yield text(480, 73, "Kubernetes API", anchor="middle", style="big")
    yield text(480, 94, "its annotation says who is condemned", Tone.SOFT, "middle", "small")
    for x, name in HOSTS:
        yield from _host(x, name)
    reads = f"every {SETTINGS.api.read_interval_seconds:g} s: am I condemned?"
    yield arrow(170, HOST_TOP, 360, 108, Tone.GOOD)
    yield text(238, 152, reads, Tone.GOOD, "end")
    yield arrow(480, HOST_TOP, 480, 108, Tone.GOOD)
    yield arrow(735, HOST_TOP, 580, 108, Tone.GOOD)
    yield arrow(842, HOST_TOP, 634, 90, Tone.ACT)
    yield text(770, 132, "condemns, waits, deletes", Tone.ACT)
    yield text(794, 150, "the Node, recreates it", Tone.ACT)
    for x in (280, 590):
        yield arrow(x + 4, 262, x + 86, 262, Tone.WAIT, both=True)
    words = "peers: asked by a host that can't read the API, and by the leader"
    yield text(435, 336, words, Tone.WAIT, "middle")


def _host(x: float, name: str) -> Iterator[str]:
    yield box(x, HOST_TOP, HOST_WIDTH, 106)
    yield text(x + 14, HOST_TOP + 22, name, style="big")
    yield text(x + HOST_WIDTH - 14, HOST_TOP + 22, "kubelet, pods", Tone.SOFT, "end", "small")
    yield box(x + 14, HOST_TOP + 34, 84, 28, fill="paper")
    yield text(x + 56, HOST_TOP + 53, "pp-hostd", anchor="middle")
    if name.startswith("control"):
        yield box(x + 118, HOST_TOP + 34, 88, 28, fill="paper", edge="act")
        yield text(x + 162, HOST_TOP + 53, "pp-leader", Tone.ACT, "middle")
    yield text(x + 14, HOST_TOP + 90, "feeds the watchdog, on proof", Tone.SOFT, style="small")


def _what_happens(moments: list[Moment]) -> Iterator[str]:
    _, _, condemned, known, reset, over, _, runs = moments
    yield line(20, 358, WIDTH - 20, 358)
    yield text(20, 388, "A worker's cable is pulled (seconds, default settings, one measured run)", style="big")
    yield from _axis()
    top = 412
    yield from _lane(top, "the worker")
    yield _bar(0, reset.seconds, top, "good")
    yield text(_x(0) + 8, top + 21, "runs its pods, asks in vain", Tone.GOOD)
    yield cross(_x(reset.seconds), top + 15)
    yield text(_x(reset.seconds) + 14, top + 21, f"{reset.after}: resets itself", Tone.BAD)
    yield from _lane(top + 48, "pp-leader")
    yield _bar(known.seconds, over.seconds, top + 48, "wait")
    yield text(_x(known.seconds) - 6, top + 69, f"{condemned.after}: condemns", Tone.ACT, "end")
    waits = f"waits {PROMISE.leader_acts_seconds:g} s: by then the worker is dead, even if its kernel hangs"
    yield text(_x(known.seconds) + 8, top + 69, waits, Tone.WAIT)
    yield from _lane(top + 96, "the pod")
    yield _bar(0, reset.seconds, top + 96, "good")
    yield text(_x(0) + 8, top + 117, "runs on the worker", Tone.GOOD)
    yield text((_x(reset.seconds) + _x(over.seconds)) / 2, top + 117, "runs nowhere", Tone.SOFT, "middle")
    yield _bar(runs.seconds, LAST_SECONDS, top + 96, "good")
    yield from paragraph(_x(runs.seconds) - 8, top + 117, 150, f"{runs.after}: elsewhere", Tone.GOOD, "end")


def _x(seconds: float) -> float:
    return LEFT + (RIGHT - LEFT) * seconds / LAST_SECONDS


def _axis() -> Iterator[str]:
    yield line(LEFT, AXIS - 28, RIGHT, AXIS - 28)
    for seconds in range(0, LAST_SECONDS, 10):
        yield line(_x(seconds), 404, _x(seconds), AXIS - 28, dashed=True)
        yield text(_x(seconds), AXIS - 10, f"{seconds} s", Tone.SOFT, "middle", "small")


def _lane(top: float, name: str) -> Iterator[str]:
    yield text(20, top + 21, name)


def _bar(since: float, until: float, top: float, edge: str) -> str:
    return box(_x(since), top, _x(until) - _x(since), 30, fill="box", edge=edge)
