"""A process that only wakes as often as an idle agent does, and tells what that costs here. Run by the agent's bench.

On some virtual machines a Python that wakes from two seconds of sleep, with cold caches, costs more than its work does.
"""

from __future__ import annotations

import asyncio
import sys

WAKE_SECONDS = 2.0


def cpu_seconds() -> float:
    with open("/proc/self/schedstat") as file:
        return int(file.read().split()[0]) / 1e9


async def wake(seconds: float) -> float:
    """Returns its CPU, in percent of a core."""
    before, wakings = cpu_seconds(), round(seconds / WAKE_SECONDS)
    for _ in range(wakings):
        await asyncio.sleep(WAKE_SECONDS)
    return 100 * (cpu_seconds() - before) / (wakings * WAKE_SECONDS)


if __name__ == "__main__":
    print(asyncio.run(wake(float(sys.argv[1]))))
