"""The memory that the configuration and the client add to a bare process, with its memory locked."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.kubeconfig import load
from pp_hostd.kube.resources import NODES
from tests.bench.figure import Figure
from tests.harness.embedded import EmbeddedCluster


def client_memory() -> Iterator[Figure]:
    """Both processes are measured in the same run, since libraries weigh differently on each machine."""
    with EmbeddedCluster.start() as cluster:
        kubeconfig = str(cluster.kubeconfig())
        asyncio.run(make_node(kubeconfig))
        bare, client = _resident("bare"), _resident("client", kubeconfig)
    yield Figure("bare process (asyncio, ssl, json, h11), locked", bare["resident_kb"] / 1024, "MB")
    added = (client["resident_kb"] - bare["resident_kb"]) / 1024
    yield Figure("config and kube after 1,000 GETs, above bare", added, "MB", at_most=4)
    yield Figure("threads of that process", client["threads"], "threads", at_most=1)


async def make_node(kubeconfig: str) -> None:
    """The object that the benches read."""
    api = ApiClient(load(kubeconfig), deadline_seconds=10)
    await api.create(NODES, {"metadata": {"name": "bench", "labels": {"example": "x" * 60}}})
    api.close()


def _resident(*arguments: str) -> dict[str, int]:
    command = [sys.executable, "-m", "tests.bench.resident", *arguments]
    weight: dict[str, int] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return weight
