"""The time that `pp-leader status` takes in a cluster of 5,000 nodes."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

from pp_hostd.kube.client import Json
from pp_hostd.kube.resources import CONFIG_MAPS, NAMESPACES, NODES
from pp_hostd.model.agent_info import AgentInfo
from pp_hostd.model.keys import AGENT, AGENT_INFO, ENROLLED, NAMESPACE, PROTECTED
from pp_hostd.model.promise import Armed, GateKind, WatchdogKind
from tests.bench.figure import Figure
from tests.harness.controlplane import RealCluster
from tests.leader.access.attempts import World

HOSTS = 5000
RUNS = 5
EXIT_LEADERLESS = 3
PROMISE = Armed("8e6a7b0c-0000-4000-8000-000000000000", 22, 10, WatchdogKind.HARDWARE, GateKind.HOLD, "uid", 3)
INFO = AgentInfo("1.2.3", datetime(2027, 3, 1, 12, tzinfo=timezone.utc))
IMAGE_NAMES = [f"images.example/team/image@sha256:{'a' * 64}", "images.example/team/image:v1.2.3"]


def status_time() -> Iterator[Figure]:
    """Of Nodes with fifty images each, as kubelets report them: 10 kB of JSON. The real API server has its share in the
    time, and none in the CPU."""
    with RealCluster.start() as cluster:
        world = World(cluster)
        names = [f"worker-{number}" for number in range(HOSTS)]
        world.create(NAMESPACES, "", {"metadata": {"name": NAMESPACE}})
        world.create(CONFIG_MAPS, "", {"metadata": {"name": ENROLLED}, "data": dict.fromkeys(names, "{}")}, NAMESPACE)
        for name in names:
            world.create(NODES, "", _node(name))
        runs = [_run(str(cluster.kubeconfig())) for _ in range(RUNS)]
        world.close()
    yield Figure(f"pp-leader status, {HOSTS} nodes", statistics.median(run[0] for run in runs), "s", at_most=2)
    yield Figure(f"pp-leader status, {HOSTS} nodes, CPU", statistics.median(run[1] for run in runs), "s", at_most=2)


def _node(name: str) -> Json:
    types = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure", PROTECTED)
    reported = {"status": "True", "reason": "Fine", "message": "as the kubelet reports it, in a few words"}
    return {
        "metadata": {"name": name, "annotations": {AGENT: PROMISE.render(), AGENT_INFO: INFO.render()}},
        "status": {
            "conditions": [{"type": each, **reported} for each in types],
            "images": [{"names": IMAGE_NAMES, "sizeBytes": 123456789}] * 50,
        },
    }


def _run(kubeconfig: str) -> tuple[float, float]:
    """Seconds, and seconds of CPU."""
    program = str(Path(sys.executable).with_name("pp-leader"))
    before, began_at = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(
        [program, "status", "--kubeconfig", kubeconfig], stdout=subprocess.PIPE, env=os.environ, check=False
    )
    seconds, after = time.monotonic() - began_at, resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == EXIT_LEADERLESS, done.stdout
    assert b"5000 hosts are protected and ready" in done.stdout, done.stdout
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
