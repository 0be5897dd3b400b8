"""The costs of a leader while there is nothing to do: memory and requests, with a large cluster to look after."""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.kubeconfig import load
from pp_hostd.kube.outcome import ApiError
from pp_hostd.kube.resources import CONFIG_MAPS, NAMESPACES
from pp_hostd.model.keys import ENROLLED, LEADER, NAMESPACE, STATUS
from pp_hostd.model.leader_status import LeaderStatus, parse_leader_status
from tests.bench.figure import Figure
from tests.bench.observing import COUNT, fill, node_name
from tests.bench.running import Running
from tests.harness.bed.host import PP_LEADER
from tests.harness.embedded import EmbeddedCluster
from tests.harness.eventually import eventually

METRICS_PORT = 19480
IDLE_SECONDS = 60.0


def idle_costs() -> Iterator[Figure]:
    """Of the real process, at the default settings."""
    with EmbeddedCluster.start() as cluster, leading(str(cluster.kubeconfig())) as leader:
        before, since = leader.requests(), time.monotonic()
        time.sleep(IDLE_SECONDS)
        minutes = (time.monotonic() - since) / 60
        yield Figure(f"leader: {COUNT:,} Nodes of 8 kB, idle", leader.resident_mb(), "MB", at_most=80)
        yield Figure(f"leader: {COUNT:,} Nodes of 8 kB, at its peak", leader.peak_mb(), "MB", at_most=80)
        yield Figure("leader: requests to the API when idle", (leader.requests() - before) / minutes, "a minute")


@contextmanager
def leading(kubeconfig: str, count: int = COUNT) -> Iterator[Running]:
    """A leader that has listed so many Nodes and written their roster."""
    asyncio.run(_enrolled(kubeconfig, count))
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "pp-hostd.toml")
        path.write_text(
            f'peers.auth = "none"\nleader.kubeconfig = "{kubeconfig}"\nleader.metrics_port = {METRICS_PORT}\n'
        )
        command = [*PP_LEADER, "run", "--config", str(path)]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            try:
                eventually(lambda: asyncio.run(_listed(kubeconfig)) == count, "the roster is written", 120)
                yield Running(process.pid, METRICS_PORT)
            finally:
                process.kill()


async def _enrolled(kubeconfig: str, count: int) -> None:
    await fill(kubeconfig, count)
    client = ApiClient(load(kubeconfig), deadline_seconds=10)
    await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    data = {node_name(number): "{}" for number in range(count)}
    await client.create(CONFIG_MAPS, {"metadata": {"name": ENROLLED}, "data": data}, namespace=NAMESPACE)
    client.close()


async def _listed(kubeconfig: str) -> int:
    """How many nodes are in the roster, by the leader's own word."""
    client = ApiClient(load(kubeconfig), deadline_seconds=10)
    try:
        found = await client.get(CONFIG_MAPS, LEADER, namespace=NAMESPACE)
    except ApiError:
        return 0
    finally:
        client.close()
    status = parse_leader_status(found["data"][STATUS])
    assert isinstance(status, LeaderStatus), status
    return status.nodes
