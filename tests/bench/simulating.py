"""How many bad days the simulator plays in a minute of one core, by the Python that a campaign is played with."""

from __future__ import annotations

import json
import platform
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from pp_hostd.model.settings import Settings
from pp_hostd.sim.campaign import in_order
from pp_hostd.sim.days import random_schedule
from pp_hostd.sim.run import run
from pp_hostd.sim.schedule import END_AT
from tests.bench.figure import Figure

REPOSITORY = Path(__file__).parents[2]
CAMPAIGNS_PYTHON = REPOSITORY / ".venv-campaign" / "bin" / "python"
NODES, SCHEDULES = 5, 400
WARM_SECONDS = 100.0
"""A compiler that learns while it runs needs this time to get warm; a campaign takes hours."""


def schedules_per_minute() -> Iterator[Figure]:
    """Played by a process like each of a campaign's, whose CPU alone counts."""
    command = [str(CAMPAIGNS_PYTHON), "-m", "tests.bench.simulating"]
    done = subprocess.run(command, cwd=REPOSITORY, stdout=subprocess.PIPE, timeout=900, check=True)
    python, seconds, events = json.loads(done.stdout)
    simulator = f"simulator ({python}): {NODES} nodes, {END_AT / 60:g} min"
    yield Figure(f"{simulator}, schedules", SCHEDULES * 60 / seconds, "per min", at_least=1500)
    yield Figure(f"{simulator}, events", events / seconds, "per s")


def _played(first_seed: int) -> tuple[float, int]:
    """The schedules that follow, after others have made it warm: their seconds, and their events."""
    began, seed = time.process_time(), first_seed
    while time.process_time() - began < WARM_SECONDS:
        _events(seed := seed + 1)
    began = time.process_time()
    events = sum(_events(seed + number) for number in range(1, SCHEDULES + 1))
    return time.process_time() - began, events


def _events(seed: int) -> int:
    return run(random_schedule(seed, NODES, NODES), Settings()).events


if __name__ == "__main__":
    (played,) = in_order(_played, [1], jobs=1)
    print(json.dumps([platform.python_implementation(), *played]))
