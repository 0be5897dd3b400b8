"""What a power cycle costs the leader, by how many hosts there are, and how soon it sees that one is off."""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.kubeconfig import load
from pp_hostd.kube.resources import BARE_METAL_HOSTS, CONFIG_MAPS, NAMESPACES, NODES, OPENSHIFT_MACHINES, Resource
from pp_hostd.kube.watch import Change, ChangeKind, watch
from pp_hostd.model.keys import EXTERNAL_REMEDIATION, NAMESPACE
from tests.bench.figure import Figure
from tests.bench.running import Running
from tests.harness.bed.host import PP_LEADER
from tests.harness.embedded import EmbeddedCluster
from tests.harness.eventually import eventually

COUNTS, AT_ONCE = (10, 100, 1000), 100
METRICS_PORT = 19481
END_SECONDS, LOOK_SECONDS = 300, 0.2
PLACE = "metal"
SETTINGS = """
peers.auth = "none"
api.machines = "openshift"
power.cycle = true
leader.start_grace_seconds = 0.0
leader.max_unhealthy = "100%"
leader.max_at_once = 1000
leader.deletions_per_second = 1000.0
"""
ON = {"poweredOn": True, "operationalStatus": "OK", "provisioning": {"state": "provisioned"}}


@dataclass
class Site:
    """All hosts of a cluster, as their operator and their kubelets see them; both act at once."""

    client: ApiClient
    off_at: dict[str, float] = field(default_factory=dict)
    deleted_at: dict[str, float] = field(default_factory=dict)

    async def build(self, count: int) -> None:
        for namespace in (NAMESPACE, PLACE):
            await self.client.create(NAMESPACES, {"metadata": {"name": namespace}})
        for name in map(host_name, range(count)):
            host = {"metadata": {"name": name}, "spec": {"online": True}}
            await self.client.create(BARE_METAL_HOSTS, host, namespace=PLACE)
            await self._tell(BARE_METAL_HOSTS, name, ON)
            spec = {"providerID": f"baremetalhost:///{PLACE}/{name}"}
            await self.client.create(OPENSHIFT_MACHINES, {"metadata": {"name": name}, "spec": spec}, namespace=PLACE)
            await self._tell(OPENSHIFT_MACHINES, name, {"nodeRef": {"name": name}})
            await self._register(name)

    async def ask(self, count: int) -> None:
        asked = {"metadata": {"annotations": {EXTERNAL_REMEDIATION: ""}}}
        for name in map(host_name, range(count)):
            await self.client.patch(OPENSHIFT_MACHINES, name, asked, namespace=PLACE)

    async def operate(self) -> None:
        async for change in self._changes(BARE_METAL_HOSTS):
            name, kept = change["metadata"]["name"], bool(change["metadata"].get("annotations"))
            on = change["status"]["poweredOn"]
            if kept and on:
                self.off_at[name] = time.monotonic()
                await self._tell(BARE_METAL_HOSTS, name, {"poweredOn": False})
            elif not kept and not on:
                await self._tell(BARE_METAL_HOSTS, name, {"poweredOn": True})
                await self._register(name)

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

    async def _changes(self, kind: Resource) -> AsyncIterator[Json]:
        async for event in watch(self.client, kind):
            if isinstance(event, Change) and event.kind is not ChangeKind.DELETED:
                yield event.object

    async def _tell(self, kind: Resource, name: str, status: Json) -> None:
        await self.client.patch(kind, name, {"status": status}, namespace=PLACE, subresource="status")

    async def _register(self, name: str) -> None:
        annotations = {"machine.openshift.io/machine": f"{PLACE}/{name}"}
        await self.client.create(NODES, {"metadata": {"name": name, "annotations": annotations}})


def host_name(number: int) -> str:
    return f"host-{number:04}"


def power_cycles() -> Iterator[Figure]:
    """As many at once as there are hosts, up to a hundred."""
    for count in COUNTS:
        with EmbeddedCluster.start() as cluster:
            yield from asyncio.run(_measured(str(cluster.kubeconfig()), count))


async def _measured(kubeconfig: str, count: int) -> list[Figure]:
    site, asked = Site(ApiClient(load(kubeconfig), deadline_seconds=10)), min(count, AT_ONCE)
    await site.build(count)
    with _leading(kubeconfig) as leader:
        await asyncio.to_thread(eventually, lambda: leader.requests() > 0, "it leads", 60)
        await asyncio.sleep(5)  # until it has listed all
        working = [asyncio.create_task(site.operate()), asyncio.create_task(site.look())]
        await asyncio.sleep(1)
        requests, cpu = leader.requests(), _cpu_seconds(leader.pid)
        await site.ask(asked)
        await site.end(asked)
        requests, cpu = leader.requests() - requests, _cpu_seconds(leader.pid) - cpu
        for task in working:
            task.cancel()
    late = statistics.median(site.deleted_at[name] - site.off_at[name] for name in site.deleted_at)
    of = f"power: {asked} of {count:,} hosts"
    return [
        Figure(f"{of}, requests for each", requests / asked, "requests"),
        Figure(f"{of}, CPU for each", 1000 * cpu / asked, "ms"),
        Figure(f"{of}, from off to deleted", late, "s", at_most=1.0 if count == COUNTS[-1] else None),
    ]


def _cpu_seconds(pid: int) -> float:
    times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")


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
