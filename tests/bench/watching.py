"""The cost of a long watch: memory must stay flat, however many events pass."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.kubeconfig import load
from pp_hostd.kube.resources import NODES
from pp_hostd.kube.watch import Change, watch
from tests.bench.figure import Figure
from tests.bench.resident import weigh
from tests.harness.cluster import write_kubeconfig
from tests.harness.trouble import TroubleServer

WARM, EVENTS = 10_000, 100_000


def watch_memory() -> Iterator[Figure]:
    """The server sends as fast as it can, from a process of its own; this one consumes."""
    server = TroubleServer()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "kubeconfig"
        write_kubeconfig(path, server.listen("watch of 100,000").url, server.authority.certificate_pem, token="bench")
        grown_kb, seconds = asyncio.run(_consume(str(path)))
    server.close()
    yield Figure("100,000 watch events: growth after the 10,000th", grown_kb / 1024, "MB", at_most=0.5)
    yield Figure("watch events consumed", EVENTS / seconds / 1000, "k/s")


async def _consume(kubeconfig: str) -> tuple[int, float]:
    client = ApiClient(load(kubeconfig), deadline_seconds=10)
    begun = time.perf_counter()
    count = warm_kb = 0
    async for event in watch(client, NODES, resource_version="0"):
        assert isinstance(event, Change), event
        count += 1
        if count == WARM:
            warm_kb = weigh()["resident_kb"]
        if count == EVENTS:
            break
    client.close()
    return weigh()["resident_kb"] - warm_kb, time.perf_counter() - begun
