"""Nodes with their machines as a cluster has them, and waiting for what a running sense makes of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Callable, TypeVar

from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.outcome import ApiError
from pp_hostd.kube.resources import CAPI_MACHINES, NAMESPACES, NODES, OPENSHIFT_MACHINES, Resource
from pp_hostd.model.condemnation import Condemned
from pp_hostd.model.keys import NAMESPACE
from tests.contract.objects import sample

SINCE = datetime(2026, 3, 1, 12, 0, tzinfo=timezone.utc)
KINDS = {"openshift": OPENSHIFT_MACHINES, "cluster-api": CAPI_MACHINES, "node": NODES}
"""The kind of a machine in the clusters of the tests, by the setting api.machines."""

HANG_SECONDS = 30.0
T = TypeVar("T")


def boottime() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass(frozen=True)
class Home:
    """Where the machines of one test live."""

    client: ApiClient
    machines: str
    namespace: str

    @property
    def kind(self) -> Resource:
        return KINDS[self.machines]

    @property
    def where(self) -> str | None:
        return self.namespace if self.kind.namespaced else None

    def machine_key(self, name: str) -> str:
        return f"{self.namespace}/{name}" if self.where else name

    async def enrol(self, name: str) -> Json:
        """A Node, and the Machine of the same name that belongs to it; returns what is the machine."""
        node = await self.client.create(NODES, sample(NODES, name, annotations=self.names_machine(name)))
        return node if self.kind is NODES else await self.create_machine(name, node=name)

    async def create_machine(self, name: str, node: str | None) -> Json:
        created = await self.client.create(self.kind, sample(self.kind, name), namespace=self.where)
        if node is None:
            return created
        status = {"status": {"nodeRef": {"kind": "Node", "name": node}}}
        return await self.client.patch(self.kind, name, status, namespace=self.where, subresource="status")

    async def condemn(self, name: str, condemnation_id: int = 7) -> Json:
        patch = {"metadata": Condemned(condemnation_id, SINCE).render()}
        return await self.client.patch(self.kind, name, patch, namespace=self.where)

    def names_machine(self, name: str) -> dict[str, str]:
        """The annotations with which a Node names its Machine."""
        if self.machines == "openshift":
            return {"machine.openshift.io/machine": f"{self.namespace}/{name}"}
        if self.machines == "cluster-api":
            return {"cluster.x-k8s.io/machine": name, "cluster.x-k8s.io/cluster-namespace": self.namespace}
        return {}


async def create_our_namespace(client: ApiClient) -> None:
    """Other tests may have done so before."""
    with suppress(ApiError):
        await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})


@asynccontextmanager
async def running(sense: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    task = asyncio.ensure_future(sense)
    try:
        yield
        assert not task.done(), task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def until_found(look: Callable[[], Awaitable[T]], what: str) -> T:
    """Ask until there is something; that."""
    deadline = time.monotonic() + HANG_SECONDS
    while not (found := await look()):
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        await asyncio.sleep(0.02)
    return found


async def until(check: Callable[[], object], what: str) -> None:
    """Let the loop run until that holds."""
    deadline = time.monotonic() + HANG_SECONDS
    while not check():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        await asyncio.sleep(0.005)
