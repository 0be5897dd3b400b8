"""Hosts that probe each other in virtual time: each message may be lost, hosts may be off, and links may be cut."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from random import Random
from typing import Callable

from pp_hostd.agent.probing import REGULAR_SECONDS, RINGS, Probing, place
from pp_hostd.model.reachability import ASKED, ATTEMPT_SECONDS, ATTEMPTS, Finding, confirmed

LATENCY_SECONDS = 0.0005, 0.02
"""One way, at least and at most."""


def everybodys_targets(names: Sequence[str], rings: int = RINGS) -> dict[str, tuple[str, ...]]:
    """The targets that probing.targets gives for each of these nodes, by one sort for each ring."""
    chosen: dict[str, list[str]] = {name: [] for name in names}
    for ring in range(rings):
        ordered = sorted(names, key=lambda name: place(ring, name))
        for number, name in enumerate(ordered):
            others = (ordered[(number + step) % len(names)] for step in range(1, len(names)))
            found = next((other for other in others if other not in chosen[name]), None)
            chosen[name] += [] if found is None else [found]
    return {name: tuple(found) for name, found in chosen.items()}


class Crowd:
    """So many hosts, from a time of 0 on. `suspicions` are those that were told: when, by whom and of whom.

    Hosts that are `unplugged` reach neither hosts nor API, and run on. `cut` says whether no message gets from one host
    to another.
    """

    def __init__(self, hosts: int, loss: float, seed: int) -> None:
        self.names = [f"host-{number}" for number in range(hosts)]
        self.unplugged: set[str] = set()
        self.cut: Callable[[str, str], bool] = lambda _from, _to: False
        self.without_api: Callable[[str], bool] = self.unplugged.__contains__
        self.messages, self.now = 0, 0.0
        self.suspicions: list[tuple[float, str, str]] = []
        self._loss, self.random = loss, Random(seed)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._targets = everybodys_targets(self.names)
        self._probing: dict[str, Probing] = {}
        self._suspected: dict[str, tuple[str, ...]] = {}
        self._wakes_at: dict[str, float] = {}
        for name in self.names:
            self.restart(name)

    def restart(self, name: str, pause_seconds: float = 0.0) -> None:
        """Begins a new run of the agent. Meanwhile its kernel refuses connections, which reaches it all the same."""
        first_at = self.now + pause_seconds + self.random.uniform(0, RINGS * REGULAR_SECONDS)
        self._probing[name] = Probing(self._targets[name], first_at)
        self._suspected[name], self._wakes_at[name] = (), math.inf
        self._schedule(name)

    def run(self, seconds: float) -> None:
        until = self.now + seconds
        while self._events and self._events[0][0] <= until:
            self.now, _, event = heapq.heappop(self._events)
            event()
        self.now = until

    def first_suspicion(self, suspect: str, since: float) -> tuple[float, str]:
        """When a suspicion of this host first began, and whose; never, and nobody's, if none did."""
        found = ((at, by) for at, by, whom in self.suspicions if whom == suspect and at >= since)
        return min(found, default=(math.inf, ""))

    def is_confirmed(self, suspect: str, suspected_by: str) -> bool:
        """Whether the leader, on one of the other hosts, confirms this suspicion."""
        drawn = self.random.sample(self.names, len(self.names)) if len(self.names) < 50 else self._some()
        others = [name for name in drawn if name not in (suspect, suspected_by)]
        leader = next((name for name in others if name not in self.unplugged), suspected_by)
        asked = [name for name in others if name != leader][:ASKED]
        return confirmed(self._tried(leader, suspect), [self._heard(leader, other, suspect) for other in asked])

    def _some(self) -> list[str]:
        return self.random.sample(self.names, 2 * ASKED + 2)

    def _heard(self, leader: str, other: str, suspect: str) -> Finding:
        """The leader's question is one exchange: if a message is lost, the answer comes too late."""
        both_ways = self._arrives(leader, other) and self._arrives(other, leader)
        return self._tried(other, suspect) if both_ways else None

    def _tried(self, by: str, suspect: str) -> bool:
        return any(self._arrives(by, suspect) and self._arrives(suspect, by) for _ in range(ATTEMPTS))

    def _arrives(self, sender: str, receiver: str) -> bool:
        if sender in self.unplugged or receiver in self.unplugged or self.cut(sender, receiver):
            return False
        return self.random.random() >= self._loss

    def _schedule(self, name: str) -> None:
        at = self._probing[name].next_at
        if at < self._wakes_at[name]:
            self._wakes_at[name] = at
            self._at(at, lambda: self._send(name, at))

    def _send(self, name: str, at: float) -> None:
        if self._wakes_at[name] != at:
            return
        self._wakes_at[name] = math.inf
        probing = self._probing[name]
        probing.reads(not self.without_api(name), self.now)
        for target in probing.due(self.now):
            self._probe(name, probing, target)
        self._tell(name)
        self._schedule(name)

    def _probe(self, name: str, probing: Probing, target: str) -> None:
        sent_at, arrives = self.now, self._arrives(name, target)
        self.messages += 1 + arrives
        reached = arrives and self._arrives(target, name)
        there_and_back = sum(self.random.uniform(*LATENCY_SECONDS) for _ in range(2))
        ends_at = sent_at + (there_and_back if reached else ATTEMPT_SECONDS)
        self._at(ends_at, lambda: self._ended(name, probing, target, sent_at, reached))

    def _ended(self, name: str, probing: Probing, target: str, sent_at: float, reached: bool) -> None:
        if probing is not self._probing[name]:
            return
        probing.ended(target, sent_at, reached, self.now)
        self._schedule(name)
        self._tell(name)

    def _tell(self, name: str) -> None:
        suspects, told = self._probing[name].suspects, self._suspected[name]
        if suspects != told and not self.without_api(name):
            self.suspicions += [(self.now, name, each) for each in suspects if each not in told]
            self._suspected[name] = suspects

    def _at(self, at: float, event: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._events, (at, self._count, event))
