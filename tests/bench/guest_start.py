"""The cost of the agent's start on an emulated machine, beside a Python there that only loads the same libraries."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.bench.figure import Figure
from tests.harness.embedded import EmbeddedCluster
from tests.machines.bed import Bed, Plan
from tests.machines.guest import Guest
from tests.machines.prepare import prepare

RUNS = 3
START_SECONDS = 120
BARE = """PYTHONPATH=/usr/share/pp-hostd python3 -c '
import asyncio, ssl, json, h11, time
print(time.process_time())'"""
HALT = r"""cd /run/systemd/system && mkdir -p pp-hostd.service.d
printf '[Service]\nWatchdogSec=0\nExecStartPost=+/bin/kill -STOP $MAINPID\n' > pp-hostd.service.d/halt.conf
systemctl daemon-reload"""
"""At READY it stands still: what it does afterwards is no part of its start. Nothing is armed by then."""
USED = "systemctl show --property=CPUUsageNSec --value pp-hostd"
STOP = "systemctl kill --signal=SIGCONT pp-hostd; systemctl stop pp-hostd; systemctl reset-failed pp-hostd || true"


def agent_start() -> Iterator[Figure]:
    """CPU of the guest, from the start of the unit to READY."""
    prepare()
    with EmbeddedCluster.start() as cluster, tempfile.TemporaryDirectory() as directory:
        bed = Bed(cluster, Path(directory))
        try:
            (guest,) = bed.gather({"measured": Plan()}, absent=("other-1", "other-2"))
            guest.run("systemctl start machines-network")
            guest.run(HALT)
            bare = statistics.median(float(guest.run(BARE)) for _ in range(RUNS))
            start = statistics.median(_start(guest) for _ in range(RUNS))
        finally:
            bed.close()
    yield Figure("bare Python in a guest, CPU", bare, "s")
    yield Figure("start of the agent in a guest, CPU beyond that", start - bare, "s", at_most=2)


def _start(guest: Guest) -> float:
    guest.run("systemctl start pp-hostd", START_SECONDS)
    used = int(guest.run(USED)) / 1e9
    guest.run(STOP, START_SECONDS)
    return used
