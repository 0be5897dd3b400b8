"""A candidate as a process: writes down at every look whether it may act, until it is told to leave.

python -m tests.leader.campaigner KUBECONFIG HOST DURATION_SECONDS FILE
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from functools import partial
from typing import TextIO

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.kubeconfig import load
from pp_hostd.leader.election import Election

LOOK_SECONDS = 0.01

clock = partial(time.clock_gettime, time.CLOCK_BOOTTIME)


async def write_down(election: Election, file: TextIO) -> None:
    while True:
        now = clock()
        file.write(f"{now!r} {election.term if election.acting(now) else 0}\n")
        await asyncio.sleep(LOOK_SECONDS)


async def main(kubeconfig: str, host: str, duration_seconds: float, file: TextIO) -> None:
    client = ApiClient(load(kubeconfig), deadline_seconds=10)
    leave = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, leave.set)
    election = Election(client, host, duration_seconds, clock, lambda: None)
    tasks = [asyncio.create_task(election.run()), asyncio.create_task(write_down(election, file))]
    await leave.wait()
    await election.resign()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    client.close()


if __name__ == "__main__":
    _, kubeconfig, host, seconds, path = sys.argv
    with open(path, "w", buffering=1) as file:
        asyncio.run(main(kubeconfig, host, float(seconds), file))
