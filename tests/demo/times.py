"""Decides, from how long this machine stands still, which times the hosts live by and what a run's outcome means."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import Any

from tests.harness.bed.cluster_bed import SETTINGS

MOST_RUNS = 5
MOST_FOLD = 20.0
"""The leaders' Lease may last 120 s at most; with these times a run takes a quarter of an hour."""
SHORTEST = {
    **SETTINGS,
    "peers.rounds": 3,
    "agent.self_timeout_seconds": 9.0,
    "leader.lease_seconds": 5.0,
    "leader.margin_seconds": 1.0,
    "leader.start_grace_seconds": 0.0,
}
MOVED_SECONDS = 60.0
"""The README's minute from the cut until the pod runs elsewhere, which default settings keep, too."""
BEARABLE_SECONDS = 0.75
"""With the shortest times a host outlives a stall of W - 1.5 s, since it feeds its watchdog at least every 1.5 s. Half
of that is kept for processes that wait for each other, each of them late."""


@dataclass(frozen=True)
class Times:
    """All times of the hosts and leaders, so many times as long as the shortest."""

    fold: float

    @property
    def settings(self) -> dict[str, Any]:
        """Returns them as a bed takes them; timing.py's inequalities hold for each fold."""
        longer = {key: value * self.fold for key, value in SHORTEST.items() if key.endswith("_seconds")}
        return {**SHORTEST, **longer, "watchdog.timeout_seconds": math.ceil(longer["watchdog.timeout_seconds"])}

    @property
    def self_timeout_seconds(self) -> float:
        return float(self.settings["agent.self_timeout_seconds"])

    @property
    def dead_seconds(self) -> float:
        return self.self_timeout_seconds + 2 * float(self.settings["watchdog.timeout_seconds"])

    @property
    def wait_seconds(self) -> float:
        """So long the leader waits before it frees a node."""
        return self.dead_seconds + float(self.settings["leader.margin_seconds"])

    @property
    def moved_seconds(self) -> float:
        """So long after the cut the database runs elsewhere, at the latest."""
        return MOVED_SECONDS * self.fold

    @property
    def bearable_seconds(self) -> float:
        """A stall that is no longer than this disturbs nothing."""
        return BEARABLE_SECONDS * self.fold


class Verdict(enum.Enum):
    """The meaning of a run's outcome."""

    HAPPENED = "happened"
    REPEAT = "repeat"
    FAULT = "fault"
    TOO_BUSY = "too busy"


def chosen_times(strain_seconds: float, least_fold: float = 1.0) -> Times:
    """Returns the shortest times that bear such a stall, and are not shorter than this fold."""
    fold = math.ceil(10 * strain_seconds / BEARABLE_SECONDS) / 10
    return Times(min(MOST_FOLD, max(least_fold, fold)))


def verdict_on(happened: bool, strain_seconds: float, times: Times, run: int) -> Verdict:
    """Runs count from 1. Only a stall that these times can't bear excuses a run in which not all happened."""
    if happened:
        return Verdict.HAPPENED
    if strain_seconds <= times.bearable_seconds:
        return Verdict.FAULT
    return Verdict.REPEAT if run < MOST_RUNS else Verdict.TOO_BUSY
