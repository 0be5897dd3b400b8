"""How many bad days the simulator plays in a minute of one core, and how many events that takes."""

from __future__ import annotations

import time
from collections.abc import Iterator

from pp_hostd.model.settings import Settings
from pp_hostd.sim.days import random_schedule
from pp_hostd.sim.jobs import in_order
from pp_hostd.sim.run import run
from pp_hostd.sim.schedule import END_AT
from tests.bench.figure import Figure

NODES, SCHEDULES = 5, 250


def schedules_per_minute() -> Iterator[Figure]:
    """Played by a process like each of a campaign's, whose CPU alone counts."""
    seconds, events = map(sum, zip(*in_order(_played, range(1, SCHEDULES + 1), jobs=1)))
    simulator = f"simulator: {NODES} nodes, {END_AT / 60:g} minutes"
    yield Figure(f"{simulator}, schedules", SCHEDULES * 60 / seconds, "per min", at_least=1500)
    yield Figure(f"{simulator}, events", events / seconds, "per s")


def _played(seed: int) -> tuple[float, int]:
    began = time.process_time()
    outcome = run(random_schedule(seed, NODES, NODES), Settings())
    return time.process_time() - began, outcome.events
