"""A process of a host: it may hang, and then does later what it should have done; killed, it does nothing any more."""

from __future__ import annotations

from functools import partial

from pp_hostd.sim.time import Action, Clock, Time


class Process:
    """What reaches it is done at once, or when it goes on."""

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
