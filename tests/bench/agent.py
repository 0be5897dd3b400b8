"""The costs of an agent on a host that is well: memory, CPU, requests; and how soon it acts once it is condemned."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

from pp_hostd.model.settings import Settings, value_of
from tests.bench.figure import Figure
from tests.bench.locked_agent import locked_agent
from tests.bench.running import requests_in
from tests.harness.bed.cluster_bed import SETTINGS, ClusterBed
from tests.harness.bed.host import Host
from tests.harness.embedded import EmbeddedCluster
from tests.harness.eventually import eventually

DEFAULTS = {key: value_of(Settings(), key) for key in SETTINGS}
"""In place of what a bed shortens."""
QUICK = {"api.read_interval_seconds": 0.5, "agent.mode": "dry-run"}
STEADY_SECONDS = 60.0
CONDEMNATIONS = 100


def weight() -> Iterator[Figure]:
    """Memory locked and in steady state; the bare process is measured in the same run."""
    bare_mb = _bare_mb()
    yield Figure("bare process (asyncio, ssl, json, h11), locked", bare_mb, "MB")
    for nodes in (100, 5000):
        with locked_agent(nodes) as agent:
            yield Figure(f"agent, {nodes:,} nodes, locked, above bare", agent.resident_mb() - bare_mb, "MB", at_most=8)
            yield Figure(f"agent, {nodes:,} nodes, locked, in all", agent.resident_mb(), "MB")
            yield Figure("threads of the agent", agent.threads(), "threads", at_most=1)


def running_costs() -> Iterator[Figure]:
    """Of an armed host, at the default intervals."""
    # Of two hosts none is armed.
    with EmbeddedCluster.start() as cluster, ClusterBed.start(cluster, 3, settings=DEFAULTS) as bed:
        bed.boot()
        host = bed.hosts["worker-1"]
        eventually(lambda: "not condemned" in host.status_text(), "the host is armed", 60)
        eventually(host.kubelet_started, "the host is promised and open")
        eventually(lambda: _requests(host) > 8, "the agent has read a few times", 30)
        asked, traffic, before = _requests(host), _traffic_bytes(host), _cpu_seconds(host)
        started_at = time.monotonic()
        waking = [sys.executable, "-m", "tests.bench.waking", str(STEADY_SECONDS)]
        waking_percent = float(subprocess.run(waking, check=True, capture_output=True, text=True).stdout)
        minutes = (time.monotonic() - started_at) / 60
        percent = (_cpu_seconds(host) - before) / (minutes * 60) * 100
        yield Figure("CPU of the agent", percent, "% of core", at_most=0.1)
        yield Figure("CPU of a Python that only wakes as often", waking_percent, "% of core")
        yield Figure("requests to the API", (_requests(host) - asked) / minutes, "a minute")
        yield Figure("bytes on the wire, both ways", (_traffic_bytes(host) - traffic) / minutes / 1024, "KB/min")


def reaction() -> Iterator[Figure]:
    """From the write that condemns to the order to reset, seen through the watch; a dry run can be condemned again."""
    with EmbeddedCluster.start() as cluster, ClusterBed.start(cluster, 2, settings=QUICK) as bed:
        bed.boot()
        host = bed.hosts["worker-1"]
        eventually(lambda: "not condemned" in host.status_text(), "the agent has proof")
        took = [_condemned_ms(bed, host) for _ in range(CONDEMNATIONS)]
    yield Figure("condemnation to reset, median", statistics.median(took), "ms")
    yield Figure("condemnation to reset, p99", statistics.quantiles(took, n=100)[98], "ms", at_most=250)


def _condemned_ms(bed: ClusterBed, host: Host) -> float:
    before = len(_resets(host))
    condemned_at = time.clock_gettime(time.CLOCK_BOOTTIME)
    bed.contents.condemn(host.name)
    eventually(lambda: len(_resets(host)) > before, "the agent would reset its host")
    took = (_resets(host)[before] - condemned_at) * 1000
    bed.contents.lift(host.name)
    eventually(lambda: "not condemned" in host.status_text(), "the agent has proof again")
    return took


def _resets(host: Host) -> list[float]:
    """When the agent's status began to say so."""
    texts = (event for event in host.events("notify") if "STATUS" in event["message"])
    return [event["at"] for event in texts if "would reset" in event["message"]["STATUS"]]


def _bare_mb() -> float:
    command = [sys.executable, "-m", "tests.bench.resident", "bare"]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return float(found["resident_kb"]) / 1024


def _cpu_seconds(host: Host) -> float:
    return int(host.run("cat", f"/proc/{host.agent_pid}/schedstat").stdout.split()[0]) / 1e9


def _traffic_bytes(host: Host) -> int:
    lines = host.run("cat", f"/proc/{host.agent_pid}/net/dev").stdout.splitlines()[2:]
    counters = [line.split(":", 1)[1].split() for line in lines if not line.strip().startswith("lo:")]
    return sum(int(each[0]) + int(each[8]) for each in counters)


def _requests(host: Host) -> float:
    program = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:9479/metrics', timeout=5).read().decode())"
    return requests_in(host.run(sys.executable, "-c", program).stdout)
