"""The memory that the cluster takes in a leader that sees all of it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator

from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.kubeconfig import load
from pp_hostd.kube.resources import NODES
from pp_hostd.model.keys import AGENT
from pp_hostd.model.promise import Armed, GateKind, WatchdogKind
from tests.bench.figure import Figure
from tests.harness.embedded import EmbeddedCluster

COUNT, NODE_BYTES, POOLS = 5000, 8000, 5
IMAGES = [
    {"names": [f"registry.example/project/image-{number}@sha256:{number:064x}"], "sizeBytes": 123456789}
    for number in range(52)
]


def observer_memory() -> Iterator[Figure]:
    """Right after the list, which is when most is held at once."""
    with EmbeddedCluster.start() as cluster:
        kubeconfig = str(cluster.kubeconfig())
        asyncio.run(fill(kubeconfig))
        command = [sys.executable, "-m", "tests.bench.observer", kubeconfig, "node"]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert found["machines"] == COUNT
    yield Figure(f"observer: {COUNT:,} Nodes of 8 kB", found["resident_kb"] / 1024, "MB", at_most=80)


async def fill(kubeconfig: str, count: int = COUNT) -> None:
    """So many Nodes, as large as real ones."""
    client = ApiClient(load(kubeconfig), deadline_seconds=10)
    assert len(json.dumps(_node(0))) > NODE_BYTES
    for number in range(count):
        await client.create(NODES, _node(number))
    client.close()


def node_name(number: int) -> str:
    return f"node-{number:04}.rack.example"


def _node(number: int) -> Json:
    """With a promise, an address, and the images that make up most of any Node."""
    boot, uid = f"{number:08x}-0000-4000-8000-000000000000", f"{number:08x}-0000-4000-8000-111111111111"
    promise = Armed(boot, 22.0, 10.0, WatchdogKind.HARDWARE, GateKind.HOLD, uid, 1)
    address = {"type": "InternalIP", "address": f"10.78.{number >> 8}.{number & 255}"}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    return {
        "metadata": {
            "name": node_name(number),
            "labels": {"pool": f"pool-{number % POOLS}"},
            "annotations": {AGENT: promise.render()},
        },
        "spec": {"providerID": f"metal3://{uid}"},
        "status": {"addresses": [address], "conditions": [ready], "images": IMAGES},
    }
