"""The port of a simulated leader: its steps are the leader's own, and work on the simulated API."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from functools import partial
from typing import Any, Callable, TypeVar

from pp_hostd.embedded.lifecycle import DeleteOptions
from pp_hostd.embedded.status import modified, not_found
from pp_hostd.frozen import frozen
from pp_hostd.kube.resources import KUBELET_LEASES, LEASES, NODES, PODS, VOLUME_ATTACHMENTS, Resource
from pp_hostd.leader.steps.api import Json
from pp_hostd.leader.steps.port import NotAcknowledged, StepNews, acknowledgement
from pp_hostd.model.answer import Answer
from pp_hostd.model.keys import FREEING, OUT_OF_SERVICE
from pp_hostd.model.roster import Member
from pp_hostd.peers.message import MachineReference, Question
from pp_hostd.sim.api import Client, as_it_is
from pp_hostd.sim.exchange import AskPeer, Call

LOOK_SECONDS = 0.05
EVICTION_SECONDS = 6.0
PODS_IN = "default"
STORED = "san"
Found = TypeVar("Found")


class Freed(enum.Enum):
    """The write after which workloads may start elsewhere."""

    DELETED = "the Node is deleted"
    MARKED = "the Node is marked"
    PODS = "its pods are deleted"
    STORED = "its pods are deleted that have their data on storage that can be cut off"


def claim_of(node: str) -> str:
    """Names the volume, and the pods, of a node that are on storage that can be cut off."""
    return f"{node}.{STORED}"


@frozen
class Listing:
    items: list[Any]


class SimulatedApi:
    """The exchanges of steps. `frees` hears of each write after which workloads may start elsewhere. All pods of a node
    are one, but for those on storage that can be cut off, which are another one. Pods and the kubelets' Leases are kept
    beside the store, since both change so often."""

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

    async def evict(self, _name: str, /, **_which: str) -> Json:
        """No pod here ends by itself."""
        return {}

    async def _call(self, serve: Callable[[], Found]) -> Found:
        found: Found = await Call(self._client, serve)
        return found

    # At the server.

    def _found(self, resource: Resource, namespace: str, name: str) -> Any:
        return self._api.found(as_it_is, resource, namespace, name)

    def _kubelet_lease(self, node: str) -> Json:
        if node not in self._api.leases:
            raise not_found(LEASES, node)
        return {"spec": {"renewTime": self._api.leases[node]}}

    def _pods(self, node: str) -> Sequence[Json]:
        return [self._pod(node, name) for name in (node, claim_of(node)) if name in self._api.pods]

    def _pod(self, node: str, name: str) -> Json:
        metadata = {"name": name, "namespace": PODS_IN, "uid": name, "resourceVersion": repr(self._api.pods[name])}
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": name}}
        return {"metadata": metadata, "spec": {"volumes": [volume]} if name != node else {}}

    def _patch(self, resource: Resource, namespace: str, name: str, patch: Json, part: str) -> Json:
        patched = self._api.patch(resource, namespace, name, patch, part)
        annotations = patch.get("metadata", {}).get("annotations", {})
        if resource is NODES and annotations.get(FREEING) is not None:
            self._frees(name, Freed.MARKED)
            self._client.time.after(EVICTION_SECONDS, partial(self._evict, name))
        return patched

    def _delete(self, resource: Resource, namespace: str, name: str, options: DeleteOptions) -> Json:
        self._api.check_served(resource)
        if resource is PODS:
            return self._delete_pods(name, options.resource_version)
        gone = self._api.delete(resource, namespace, name, options)
        if resource is NODES:
            self._api.leases.pop(name, None)
            self._frees(name, Freed.DELETED)
        return gone

    def _delete_pods(self, name: str, version: str | None) -> Json:
        if name not in self._api.pods:
            raise not_found(PODS, name)
        if version not in (None, repr(self._api.pods[name])):
            raise modified(PODS, name)
        del self._api.pods[name]
        node, _, stored = name.partition(".")
        self._frees(node, Freed.STORED if stored else Freed.PODS)
        return {}

    def _evict(self, name: str) -> None:
        """The cluster's own controllers delete all pods of a Node that is out of service."""
        node = self._api.if_there(as_it_is, NODES, "", name)
        taints = () if node is None else node["spec"].get("taints", ())
        for pods in (name, claim_of(name)):
            if pods in self._api.pods and any(taint["key"] == OUT_OF_SERVICE for taint in taints):
                self._delete_pods(pods, None)


class Asking:
    """One round of questions to peers; over when each was answered or let its time pass."""

    def __init__(
        self,
        client: Client,
        ask_peer: AskPeer,
        round_seconds: float,
        node: str,
        machine_key: str,
        uid: str,
        peers: tuple[Member, ...],
        tell: Callable[[StepNews], None],
        over: Callable[[None], None],
    ) -> None:
        self._node, self._tell, self._over = node, tell, over
        self._waiting = {peer.name for peer in peers}
        self._asked_at = client.process.clock()
        question = Question(MachineReference.of(machine_key, uid), client.host)
        for peer in peers:
            ask_peer(peer.name, question, partial(self._answered, peer.name))
        client.process.later(round_seconds, self._end)
        if not peers:
            over(None)

    def _answered(self, peer: str, answer: Answer) -> None:
        if peer not in self._waiting:
            return
        self._waiting.discard(peer)
        self._tell(acknowledgement(self._node, peer, answer, self._asked_at))
        if not self._waiting:
            self._over(None)

    def _end(self) -> None:
        if self._waiting:
            waiting, self._waiting = sorted(self._waiting), set()
            for peer in waiting:
                self._tell(NotAcknowledged(self._node, peer, self._asked_at, answered=False, sentence="silent"))
            self._over(None)
