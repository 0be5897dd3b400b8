"""The leader's costs of a power cycle, by the number of hosts, and how soon the leader sees that a host is off."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.resources import CONFIG_MAPS, NODES
from pp_hostd.kube.watch import Change, ChangeKind, watch
from pp_hostd.model.keys import NAMESPACE
from tests.bench.figure import Figure
from tests.bench.running import Running
from tests.harness.bed.host import PP_LEADER
from tests.harness.embedded import EmbeddedCluster
from tests.harness.eventually import eventually
from tests.leader.in_term import client_for
from tests.leader.power.site import Site

COUNTS, AT_ONCE = (10, 100, 1000), 100
METRICS_PORT = 19481
END_SECONDS, LOOK_SECONDS = 300, 0.2
SETTINGS = """
peers.auth = "none"
api.machines = "openshift"
power.cycle = true
leader.start_grace_seconds = 0.0
leader.max_unhealthy = "100%"
leader.resets_per_hour = "2000"
leader.max_at_once = 1000
leader.deletions_per_second = 1000.0
"""


class Measured(Site):
    """When hosts were switched off, and their Nodes deleted."""

    def __init__(self, client: ApiClient) -> None:
        super().__init__(client)
        self.off_at: dict[str, float] = {}
        self.deleted_at: dict[str, float] = {}

    async def switched(self, name: str, *, on: bool) -> None:
        if not on:
            self.off_at[name] = time.monotonic()
        await super().switched(name, on=on)

    async def look(self) -> None:
        async for event in watch(self.client, NODES):
            if isinstance(event, Change) and event.kind is ChangeKind.DELETED:
                self.deleted_at[event.object["metadata"]["name"]] = time.monotonic()

    async def end(self, count: int) -> None:
        """Until so many are given back."""
        for _ in range(int(END_SECONDS / LOOK_SECONDS)):
            backups = await self.client.list(CONFIG_MAPS, namespace=NAMESPACE)
            left = [each for each in backups.items if each["metadata"]["name"].startswith("backup-")]
            if len(self.deleted_at) == count and not left:
                return
            await asyncio.sleep(LOOK_SECONDS)
        raise TimeoutError(f"{len(self.deleted_at)} of {count} Nodes were deleted, {len(left)} are not back")


def host_name(number: int) -> str:
    return f"host-{number:04}"


def power_cycles() -> Iterator[Figure]:
    """As many at once as there are hosts, up to a hundred."""
    for count in COUNTS:
        with EmbeddedCluster.start() as cluster:
            yield from asyncio.run(_measured(str(cluster.kubeconfig()), count))


async def _measured(kubeconfig: str, count: int) -> list[Figure]:
    site, asked = Measured(client_for(kubeconfig)), min(count, AT_ONCE)
    await site.build()
    for name in map(host_name, range(count)):
        await site.add(name)
    with _leading(kubeconfig) as leader:
        await asyncio.to_thread(eventually, lambda: leader.requests() > 0, "it leads", 60)
        await asyncio.sleep(5)  # until it has listed all
        working = [asyncio.create_task(site.operate()), asyncio.create_task(site.look())]
        await asyncio.sleep(1)
        requests, cpu = leader.requests(), leader.cpu_seconds()
        for name in map(host_name, range(asked)):
            await site.ask(name)
        await site.end(asked)
        requests, cpu = leader.requests() - requests, leader.cpu_seconds() - cpu
        for task in working:
            task.cancel()
    late = statistics.median(site.deleted_at[name] - site.off_at[name] for name in site.deleted_at)
    of = f"power: {asked} of {count:,} hosts"
    return [
        Figure(f"{of}, requests for each", requests / asked, "requests"),
        Figure(f"{of}, CPU for each", 1000 * cpu / asked, "ms"),
        Figure(f"{of}, from off to deleted", late, "s", at_most=1.0 if count == COUNTS[-1] else None),
    ]


@contextmanager
def _leading(kubeconfig: str) -> Iterator[Running]:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "pp-hostd.toml")
        path.write_text(f'{SETTINGS}leader.kubeconfig = "{kubeconfig}"\nleader.metrics_port = {METRICS_PORT}\n')
        with subprocess.Popen([*PP_LEADER, "run", "--config", str(path)], stderr=subprocess.DEVNULL) as process:
            try:
                yield Running(process.pid, METRICS_PORT)
            finally:
                process.kill()
