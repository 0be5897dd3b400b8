"""Helpers of the tests of freeing: pods and attachments, and a client that calls a hook around each deletion."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Callable

from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.resources import PODS, VOLUME_ATTACHMENTS, Resource
from pp_hostd.leader.steps.port import Freed
from pp_hostd.leader.steps.workloads import Freeing, FreeWorkloads
from tests.agent.objects import Home
from tests.contract.objects import names_of, pod, sample
from tests.leader.applying import Actuators, with_leader

FAST = with_leader(deletions_per_second=1000.0)


async def _nothing(_resource: Resource, _name: str) -> None:
    pass


class Eventful(ApiClient):
    """Something happens just before, or just after, each deletion."""

    before: Callable[[Resource, str], Awaitable[None]] = staticmethod(_nothing)
    after: Callable[[Resource, str], Awaitable[None]] = staticmethod(_nothing)

    async def delete(self, resource: Resource, name: str, **options: Any) -> Json:
        await self.before(resource, name)
        deleted = await super().delete(resource, name, **options)
        await self.after(resource, name)
        return deleted


async def bind(home: Home, name: str, node: str, metadata: Json | None = None, **spec: object) -> Json:
    body = pod(name, nodeName=node, **spec)
    body["metadata"].update(metadata or {})
    return await home.client.create(PODS, body, namespace=home.namespace)


async def attach(client: ApiClient, name: str, node: str, **metadata: Any) -> Json:
    body = sample(VOLUME_ATTACHMENTS, name, **metadata)
    return await client.create(VOLUME_ATTACHMENTS, {**body, "spec": {**body["spec"], "nodeName": node}})


async def pods(home: Home) -> list[str]:
    return names_of((await home.client.list(PODS, namespace=home.namespace)).items)


async def attachments(home: Home, node: str) -> list[str]:
    return [name for name in names_of((await home.client.list(VOLUME_ATTACHMENTS)).items) if name.startswith(node)]


async def freed(actuators: Actuators, node: str, freeing: Freeing) -> int:
    """How many one pass says are left."""
    await actuators.done(FreeWorkloads(node, freeing))
    told = actuators.news[-2]
    assert isinstance(told, Freed) and told.node == node
    return told.left
