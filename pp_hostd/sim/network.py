"""The network between hosts and API servers: packets are lost, late, or come twice."""

from __future__ import annotations

import math
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
        self._spoiled: dict[tuple[str, bool], tuple[int, float]] = {}
        self._time, self._chance = time, chance

    def send(self, source: str, target: str, arrive: Action) -> None:
        self.sent += 1
        if (source, target) in self.cut or (self.loss and self._chance.random() < self.loss):
            return
        late_seconds = self._late_seconds(source, target) if self._spoiled else 0.0
        if late_seconds == math.inf:
            return
        self._time.after(self._seconds(source, target) + late_seconds, arrive)
        if self.doubled and self._chance.random() < self.doubled:
            self._time.after(self._seconds(source, target) * 20, arrive)

    def is_cut_between(self, one: str, other: str) -> bool:
        """Whether packets are lost from one to the other, or back."""
        cut = self.cut
        return bool(cut) and ((one, other) in cut or (other, one) in cut)

    def spoil(self, host: str, *, sent: bool, number: int, late_seconds: float) -> None:
        """Of all messages from now on that the host sends, or that are sent to it, the one of this number is late."""
        self._spoiled[host, sent] = (number, late_seconds)

    @property
    def troubled(self) -> bool:
        return bool(self.cut or self.loss or self.doubled or self.slow_seconds or self._spoiled)

    def mend(self) -> None:
        """But for what is cut."""
        self.loss = self.doubled = 0.0
        self.slow_seconds.clear()
        self._spoiled.clear()

    def _late_seconds(self, source: str, target: str) -> float:
        for key in ((source, True), (target, False)):
            if key in self._spoiled:
                number, late_seconds = self._spoiled.pop(key)
                if not number:
                    return late_seconds
                self._spoiled[key] = (number - 1, late_seconds)
        return 0.0

    def _seconds(self, source: str, target: str) -> float:
        seconds = 0.0005 + 0.005 * self._chance.random()
        if self.slow_seconds:
            slow = self._chance.random() * (self.slow_seconds.get(source, 0) + self.slow_seconds.get(target, 0))
            seconds += slow * (6 if self._chance.random() < 0.15 else 1)
        return seconds
