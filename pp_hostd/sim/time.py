"""Virtual time: what is to happen, in order, and the clocks of hosts that run a little too fast or too slow."""

from __future__ import annotations

import heapq
import itertools
from typing import Callable

MOST_AT_ONCE = 10_000
Action = Callable[[], object]


class Time:
    """Everything happens at `now`, one thing after the other; two things of one moment in the order they were set."""

    def __init__(self) -> None:
        self.now = 0.0
        self.happened = 0
        self._events: list[tuple[float, int, Action]] = []
        self._serial = itertools.count()

    def at(self, moment: float, action: Action) -> None:
        heapq.heappush(self._events, (max(moment, self.now), next(self._serial), action))

    def after(self, seconds: float, action: Action) -> None:
        heapq.heappush(self._events, (self.now + seconds, next(self._serial), action))

    def run(self, until: float) -> None:
        events, at_once = self._events, 0
        while events and events[0][0] <= until:
            moment, _, action = heapq.heappop(events)
            at_once = at_once + 1 if moment == self.now else 0
            if at_once > MOST_AT_ONCE:
                raise RuntimeError(f"time stands still at {moment:.3f} s: something does the same again and again")
            self.now = moment
            self.happened += 1
            action()
        self.now = until


class Clock:
    """CLOCK_BOOTTIME of one boot: it begins somewhere, and drifts."""

    def __init__(self, time: Time, rate: float, shows: float) -> None:
        self._time, self._rate, self._shown, self._began = time, rate, shows, time.now

    def __call__(self) -> float:
        return self._shown + (self._time.now - self._began) * self._rate

    def when(self, moment: float) -> float:
        """When, in true time, this clock shows that; a hair later, since floats are not exact."""
        return self._began + (moment - self._shown) / self._rate + 1e-6
