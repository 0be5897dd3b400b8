"""How an agent feeds its watchdog on a bad day: it may hang between judging and feeding, at the worst moment too."""

from __future__ import annotations

import math
from functools import partial
from typing import Callable

from pp_hostd.sim.host import Boot, Host
from pp_hostd.sim.time import Process, Time
from pp_hostd.sim.truth import A_MOMENT

STALL_WITHIN_SECONDS = 6.0
UNPROVEN_SECONDS = 6.0
"""For longer than between two reads that go well."""


class Feeding:
    """`wake` makes the agent judge once more."""

    def __init__(
        self, time: Time, process: Process, host: Host, boot: Boot, timeout_seconds: float, wake: Callable[[], None]
    ) -> None:
        self._time, self._process, self._host, self._boot = time, process, host, boot
        self._timeout_seconds, self._wake = timeout_seconds, wake
        self._stall_seconds = 0.0
        self._tell_hang: Callable[[float], None] | None = None  # while it stalls at the worst moment

    def stall(self, seconds: float) -> None:
        """If it is about to feed, it hangs between judging and feeding (rule 2)."""
        self._stall_seconds = seconds
        self._process.later(STALL_WITHIN_SECONDS, partial(setattr, self, "_stall_seconds", 0.0))

    def stall_at_worst(self, tell_hang: Callable[[float], None]) -> None:
        """Without a proof it hangs after each feeding for as long as its watchdog lets it; and before it, when the old
        one is about to run out. `tell_hang` hears for how long, each time."""
        self._tell_hang = tell_hang

    def stall_no_more(self) -> None:
        self._tell_hang = None

    def feed(self, lived_seconds: float, life_seconds: Callable[[], float]) -> None:
        """After a judgement by a proof of that age, which lasts for so long."""
        left = life_seconds() - lived_seconds if self._tell_hang is not None else math.inf
        if left < A_MOMENT:
            self._stall_seconds = self._boot.fires_at - self._time.now - A_MOMENT
        if self._stall_seconds > 0:
            self._feed_late(forever=left < A_MOMENT)
            return
        self._host.feed(self._boot)
        if left < 3 * A_MOMENT:
            self._process.later(left - A_MOMENT / 2, self._wake)  # the very last judgement that may feed
        elif self._tell_hang is not None and lived_seconds > UNPROVEN_SECONDS:
            self._hang(min(left, self._timeout_seconds) - 2 * A_MOMENT)

    def _feed_late(self, *, forever: bool) -> None:
        """And then, perhaps, it never judges again."""
        seconds, self._stall_seconds = self._stall_seconds, 0.0
        self._hang(seconds)
        self._process.do(partial(self._host.feed, self._boot))
        if forever:
            self._process.do(self._hang_on)

    def _hang_on(self) -> None:
        if self._tell_hang is not None:
            self._hang(2 * self._timeout_seconds)

    def _hang(self, seconds: float) -> None:
        self._process.hang(seconds)
        if self._tell_hang is not None:
            self._tell_hang(seconds)
