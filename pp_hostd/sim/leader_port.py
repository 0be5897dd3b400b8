"""The port of a simulated leader: its steps are the leader's own, and work on the simulated API."""

from __future__ import annotations

import enum
from collections.abc import Coroutine, Generator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Callable, Protocol, TypeVar

from pp_hostd.embedded.lifecycle import DeleteOptions
from pp_hostd.embedded.status import modified, no_such_path, not_found
from pp_hostd.frozen import frozen
from pp_hostd.kube.outcome import ApiError, Outcome
from pp_hostd.kube.resources import (
    CLUSTERS,
    KUBELET_LEASES,
    LEASES,
    MACHINES,
    NODES,
    PODS,
    REMEDIATIONS,
    VOLUME_ATTACHMENTS,
    Resource,
)
from pp_hostd.leader.steps.api import Json
from pp_hostd.leader.steps.port import Exchange
from pp_hostd.model.keys import FREEING, OUT_OF_SERVICE
from pp_hostd.model.step import Written
from pp_hostd.sim.api import Client, Failed, Reply, Serve, as_it_is

CALL_SECONDS = 5.0
LOOK_SECONDS = 0.05
EVICTION_SECONDS = 6.0
PODS_IN = "default"
Resume = Callable[[Reply], None]
Found = TypeVar("Found")


class Freed(enum.Enum):
    """The write after which workloads may start elsewhere."""

    DELETED = "the Node is deleted"
    MARKED = "the Node is marked"
    PODS = "its pods are deleted"


# The things that a step awaits. `run` begins each of them, and resumes the step with the reply.


class Awaited(Protocol):
    """Something that takes simulated time."""

    def begin(self, resume: Resume) -> None: ...


Work = Coroutine[Awaited, Reply, Any]


@frozen
class Call:
    """One exchange with the API; ApiError is raised if it fails."""

    client: Client
    serve: Serve
    seconds: float = CALL_SECONDS

    def begin(self, resume: Resume) -> None:
        self.client.call(self.serve, resume, self.seconds)

    def __await__(self) -> Generator[Awaited, Reply, Any]:
        reply = yield self
        if isinstance(reply, Failed):
            raise _error(reply)
        return reply


@frozen
class Sleep:
    """Some time that passes."""

    client: Client
    seconds: float

    def begin(self, resume: Resume) -> None:
        self.client.process.later(self.seconds, partial(resume, None))

    def __await__(self) -> Generator[Awaited, Reply, None]:
        yield self


@frozen
class Started:
    """Something that says by itself when it is over."""

    start: Callable[[Callable[[], None]], object]

    def begin(self, resume: Resume) -> None:
        self.start(partial(resume, None))

    def __await__(self) -> Generator[Awaited, Reply, None]:
        yield self


@frozen
class Within:
    """An exchange, each call of which ends by the deadline."""

    client: Client
    seconds: float
    exchange: Exchange

    def __await__(self) -> Generator[Awaited, Reply, Json]:
        clock, reply = self.client.process.clock, None
        until_at, exchange = clock() + self.seconds, self.exchange().__await__()
        while True:
            try:
                awaited = exchange.send(reply)
            except StopIteration as done:
                found: Json = done.value
                return found
            assert isinstance(awaited, Call), awaited
            reply = yield replace(awaited, seconds=min(awaited.seconds, until_at - clock()))


def run(work: Work, ended: Callable[[Any], None], is_wanted: Callable[[], bool], reply: Reply = None) -> None:
    """Run the step on, until it ends or nobody wants it any more."""
    if not is_wanted():
        work.close()
        return
    try:
        awaited = work.send(reply)
    except StopIteration as done:
        ended(done.value)
        return
    awaited.begin(lambda answer: run(work, ended, is_wanted, answer))


def _error(failed: Failed) -> ApiError:
    if failed.missing:
        return ApiError(Outcome.NOT_FOUND, failed.sentence, reason="NotFound")
    if failed.unserved:
        return ApiError(Outcome.NOT_FOUND, failed.sentence)
    if failed.written is Written.CONFLICT:
        return ApiError(Outcome.CONFLICT, failed.sentence)
    return ApiError(Outcome.TIMED_OUT, failed.sentence, may_be_done=failed.written is Written.UNKNOWN)


@frozen
class Listing:
    items: list[Any]


class SimulatedApi:
    """The exchanges of steps. `frees` hears of each write after which workloads may start elsewhere. All pods of a node
    are one, and the kubelets' Leases are kept beside the store, since both change so often."""

    def __init__(self, client: Client, frees: Callable[[str, Freed], None]) -> None:
        self._client, self._api, self._frees = client, client.api, frees

    async def get(self, resource: Resource, name: str, *, namespace: str | None = None) -> Json:
        if resource is LEASES and namespace == KUBELET_LEASES:
            return await self._call(partial(self._kubelet_lease, name))
        return await self._call(partial(self._found, resource, namespace or "", name))

    async def list(
        self, resource: Resource, *, field_selector: str = "", keep: Callable[[Json], Any] = as_it_is
    ) -> Listing:
        assert resource in (PODS, VOLUME_ATTACHMENTS), resource
        node = field_selector.partition("=")[2]
        return Listing([keep(each) for each in await self._call(partial(self._pods, node))])

    async def create(self, resource: Resource, body: Json, *, namespace: str | None = None) -> Json:
        return await self._call(partial(self._api.create, resource, namespace or "", body))

    async def update(self, resource: Resource, body: Json, *, namespace: str | None = None) -> Json:
        return await self._call(partial(self._api.update, resource, namespace or "", body["metadata"]["name"], body))

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Json,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
    ) -> Json:
        return await self._call(partial(self._patch, resource, namespace or "", name, patch, subresource or ""))

    async def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        grace_period_seconds: int | None = None,
    ) -> Json:
        options = DeleteOptions(uid, resource_version, grace_period_seconds)
        return await self._call(partial(self._delete, resource, namespace or "", name, options))

    async def _call(self, serve: Callable[[], Found]) -> Found:
        found: Found = await Call(self._client, serve)
        return found

    # At the server.

    def _check_served(self, resource: Resource) -> None:
        cluster = self._api.cluster
        for versions in (MACHINES[cluster.machines], CLUSTERS, *REMEDIATIONS.values()):
            if resource in versions and resource is not cluster.served(versions):
                raise no_such_path()

    def _found(self, resource: Resource, namespace: str, name: str) -> Any:
        self._check_served(resource)
        return self._api.found(as_it_is, resource, namespace, name)

    def _kubelet_lease(self, node: str) -> Json:
        if node not in self._api.leases:
            raise not_found(LEASES, node)
        return {"spec": {"renewTime": self._api.leases[node]}}

    def _pods(self, node: str) -> Sequence[Json]:
        if node not in self._api.pods:
            return []
        version = repr(self._api.pods[node])
        return [{"metadata": {"name": node, "namespace": PODS_IN, "uid": node, "resourceVersion": version}, "spec": {}}]

    def _patch(self, resource: Resource, namespace: str, name: str, patch: Json, part: str) -> Json:
        self._check_served(resource)
        patched = self._api.patch(resource, namespace, name, patch, part)
        annotations = patch.get("metadata", {}).get("annotations", {})
        if resource is NODES and annotations.get(FREEING) is not None:
            self._frees(name, Freed.MARKED)
            self._client.time.after(EVICTION_SECONDS, partial(self._evict, name))
        return patched

    def _delete(self, resource: Resource, namespace: str, name: str, options: DeleteOptions) -> Json:
        self._check_served(resource)
        if resource is PODS:
            return self._delete_pods(name, options.resource_version)
        gone = self._api.delete(resource, namespace, name, options)
        if resource is NODES:
            self._api.leases.pop(name, None)
            self._frees(name, Freed.DELETED)
        return gone

    def _delete_pods(self, node: str, version: str | None) -> Json:
        if node not in self._api.pods:
            raise not_found(PODS, node)
        if version not in (None, repr(self._api.pods[node])):
            raise modified(PODS, node)
        del self._api.pods[node]
        self._frees(node, Freed.PODS)
        return {}

    def _evict(self, name: str) -> None:
        """The cluster's own controllers delete all pods of a Node that is out of service."""
        node = self._api.if_there(as_it_is, NODES, "", name)
        taints = () if node is None else node["spec"].get("taints", ())
        if name in self._api.pods and any(taint["key"] == OUT_OF_SERVICE for taint in taints):
            self._delete_pods(name, None)
