"""The network between hosts and API servers: packets are lost, late, or come twice."""

from __future__ import annotations

import random

from pp_hostd.sim.time import Action, Time


class Network:
    """`cut` holds pairs of names, each one direction. `slow_seconds` is added at a host."""

    def __init__(self, time: Time, chance: random.Random) -> None:
        self.cut: set[tuple[str, str]] = set()
        self.loss = 0.0
        self.doubled = 0.0
        self.slow_seconds: dict[str, float] = {}
        self.sent = 0
        self._time, self._chance = time, chance

    def send(self, source: str, target: str, arrive: Action) -> None:
        self.sent += 1
        if (source, target) in self.cut or (self.loss and self._chance.random() < self.loss):
            return
        self._time.after(self._seconds(source, target), arrive)
        if self.doubled and self._chance.random() < self.doubled:
            self._time.after(self._seconds(source, target) * 20, arrive)

    def _seconds(self, source: str, target: str) -> float:
        seconds = 0.0005 + 0.005 * self._chance.random()
        if self.slow_seconds:
            slow = self._chance.random() * (self.slow_seconds.get(source, 0) + self.slow_seconds.get(target, 0))
            seconds += slow * (6 if self._chance.random() < 0.15 else 1)
        return seconds
