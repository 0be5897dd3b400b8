"""Virtual time: events in order, the clocks of hosts that run a little wrong, and processes that may hang."""

from __future__ import annotations

import heapq
from functools import partial
from typing import Callable

MOST_AT_ONCE = 10_000
Action = Callable[[], object]


class Time:
    """Everything happens at `now`, one thing after the other; two things of one moment in the order they were set."""

    def __init__(self) -> None:
        self.now = 0.0
        self.happened = 0
        self._moments: list[float] = []
        self._actions: dict[float, list[Action]] = {}
        """Of each moment. Those are in a heap of their own: numbers alone are put in order fastest."""

    def at(self, moment: float, action: Action) -> None:
        moment = max(moment, self.now)
        actions = self._actions.get(moment)
        if actions is None:
            self._actions[moment] = [action]
            heapq.heappush(self._moments, moment)
        else:
            actions.append(action)

    def after(self, seconds: float, action: Action) -> None:
        self.at(self.now + seconds, action)

    def run(self, until: float) -> None:
        while self._moments and self._moments[0] <= until:
            self.now = heapq.heappop(self._moments)
            self._happen(self._actions[self.now])
            del self._actions[self.now]
        self.now = until

    def _happen(self, actions: list[Action]) -> None:
        """Carries out the actions. One that is set for this very moment on the way comes last, and happens as well."""
        for number, action in enumerate(actions):
            if number > MOST_AT_ONCE:
                raise RuntimeError(f"time stands still at {self.now:.3f} s: something does the same again and again")
            self.happened += 1
            action()


class Clock:
    """CLOCK_BOOTTIME of one boot: it begins somewhere, and drifts."""

    def __init__(self, time: Time, rate: float, shows: float) -> None:
        self._time, self._rate, self._shown, self._began = time, rate, shows, time.now

    def __call__(self) -> float:
        return self._shown + (self._time.now - self._began) * self._rate

    def when(self, moment: float) -> float:
        """When, in true time, this clock shows that; a hair later, since floats are not exact."""
        return self._began + (moment - self._shown) / self._rate + 1e-6


class Process:
    """A process that may hang: it carries out an action at once, or when it goes on."""

    def __init__(self, time: Time, clock: Clock) -> None:
        self.alive = True
        self.clock = clock
        self._time = time
        self._hangs_until = 0.0
        self._backlog: list[Action] = []

    def hang(self, seconds: float) -> None:
        """As if stopped by a signal, or starved."""
        until = self._time.now + seconds
        if until > self._hangs_until:
            self._hangs_until = until
            self._time.at(until, self._go_on)

    def hang_no_more(self) -> None:
        self._hangs_until = min(self._hangs_until, self._time.now)
        self._go_on()

    @property
    def hangs(self) -> bool:
        return self.alive and self._time.now < self._hangs_until

    def kill(self) -> None:
        self.alive = False
        self._backlog.clear()

    def do(self, action: Action) -> None:
        if not self.alive:
            return
        if self._time.now < self._hangs_until:
            self._backlog.append(action)
        else:
            action()

    def later(self, seconds: float, action: Action) -> None:
        self._time.after(seconds, partial(self.do, action))

    def _go_on(self) -> None:
        if self._time.now < self._hangs_until:
            return
        backlog, self._backlog = self._backlog, []
        for action in backlog:
            self.do(action)
