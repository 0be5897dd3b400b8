"""The leader's eyes alone, as a process: sees all of a cluster once, and reports what that weighs."""

from __future__ import annotations

import asyncio
import json
import sys

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.kubeconfig import load
from pp_hostd.leader.observe import Observer
from tests.bench.resident import weigh


async def observe(kubeconfig: str, machines: str) -> dict[str, int]:
    client = ApiClient(load(kubeconfig), deadline_seconds=10)
    changed = asyncio.Event()
    observer = Observer(client, machines, changed.set)
    running = asyncio.ensure_future(observer.run())
    while not observer.ready:
        await changed.wait()
        changed.clear()
    weight = {**weigh(), "machines": len(observer.observed.machines)}
    running.cancel()
    await asyncio.wait([running])
    client.close()
    return weight


if __name__ == "__main__":
    print(json.dumps(asyncio.run(observe(*sys.argv[1:]))))
