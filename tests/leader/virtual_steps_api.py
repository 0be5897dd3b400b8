"""The exchanges of steps with the virtual cluster, which take no time."""

from __future__ import annotations

from typing import Any, Callable, Protocol

from pp_hostd.frozen import frozen
from pp_hostd.kube.client import whole
from pp_hostd.kube.outcome import ApiError, Outcome
from pp_hostd.kube.resources import (
    CONFIG_MAPS,
    LEASES,
    NODES,
    PODS,
    VOLUME_ATTACHMENTS,
    Resource,
)
from pp_hostd.model.keys import FREEING, OUT_OF_SERVICE
from tests.leader.virtual_api import Conflict, Json, VirtualApi


class Cluster(Protocol):
    """The virtual cluster, as the API of its steps uses it."""

    api: VirtualApi
    now: float
    pods: dict[str, int]
    leases: dict[str, str]

    def frees(self, node: str) -> None: ...
    def ends_pods(self, node: str) -> bool: ...
    def delete_node(self, name: str) -> None: ...


@frozen
class Listing:
    items: list[Any]


class VirtualStepsApi:
    """`now` is the time of the last exchange."""

    def __init__(self, cluster: Cluster) -> None:
        self.now = 0.0
        self.refused: set[tuple[str, str]] = set()
        """Verbs and kinds for which the leader has no rights."""
        self.budget = ""
        """The sentence of a disruption budget that objects to each eviction; empty if none does."""
        self.evicted: set[str] = set()
        self.lease_more: Json = {}
        """More fields of the spec of every kubelet's Lease."""
        self._cluster = cluster

    async def get(self, resource: Resource, name: str, *, namespace: str | None = None) -> Json:
        self.now = self._cluster.now
        if resource is LEASES:
            renewed = self._cluster.leases.get(name)
            found = None if renewed is None else {"spec": {"renewTime": renewed, **self.lease_more}}
        else:
            found = self._cluster.api.get(*self._place(resource, name, namespace))
        if found is None:
            raise ApiError(Outcome.NOT_FOUND, f"there is no {resource.describe(namespace, name)}", reason="NotFound")
        return found

    async def list(
        self, resource: Resource, *, field_selector: str = "", keep: Callable[[Json], Any] = whole
    ) -> Listing:
        self.now = self._cluster.now
        assert resource in (PODS, VOLUME_ATTACHMENTS), resource
        node = field_selector.partition("=")[2]
        left = self._cluster.pods.get(node, 0)
        if left and self._is_out_of_service(node):  # somebody else's controllers take one pod at each look
            self._cluster.pods[node] = left - 1
        return Listing([keep(self._pod(node, number)) for number in range(left)])

    def _pod(self, node: str, number: int) -> Json:
        """In a namespace of its node's name."""
        uid = f"{node}-{number}"
        metadata = {"name": f"pod-{number}", "namespace": node, "uid": uid, "resourceVersion": "1"}
        ends = {"deletionTimestamp": "2026-03-01T00:00:00Z"} if uid in self.evicted else {}
        return {"metadata": {**metadata, **ends}, "spec": {}}

    def _is_out_of_service(self, node: str) -> bool:
        found = self._cluster.api.get("nodes", node) or {}
        return any(taint["key"] == OUT_OF_SERVICE for taint in found.get("spec", {}).get("taints", ()))

    async def create(self, resource: Resource, body: Json, *, namespace: str | None = None) -> Json:
        self._check_rights("create", resource)
        self.now = self._cluster.now
        kind, key = self._place(resource, body["metadata"]["name"], namespace)
        if self._cluster.api.get(kind, key) is not None:
            raise ApiError(Outcome.CONFLICT, f"{kind} {key} is there already", reason="AlreadyExists")
        place = {} if namespace is None else {"namespace": namespace}
        self._cluster.api.put(kind, key, {**body, "metadata": {**body["metadata"], **place}})
        return self._cluster.api.objects[kind][key]

    async def update(self, resource: Resource, body: Json, *, namespace: str | None = None) -> Json:
        metadata = body["metadata"]
        kind, key = self._matching(resource, metadata["name"], namespace, None, metadata["resourceVersion"])
        self._cluster.api.put(kind, key, body)
        return self._cluster.api.objects[kind][key]

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Json,
        *,
        namespace: str | None = None,
        **_subresource: Any,
    ) -> Json:
        self._check_rights("patch", resource)
        metadata = dict(patch["metadata"])
        uid, version = metadata.pop("uid"), metadata.pop("resourceVersion")
        kind, key = self._matching(resource, name, namespace, uid, version)
        if resource is NODES and metadata.get("annotations", {}).get(FREEING) is not None:
            self._cluster.frees(name)
        self._cluster.api.patch(kind, key, {**patch, "metadata": metadata})
        patched = self._cluster.api.objects[kind][key]
        if "deletionTimestamp" in patched["metadata"] and not patched["metadata"].get("finalizers"):
            self._cluster.api.put(kind, key, None)
        return patched

    async def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        **_grace_period_seconds: Any,
    ) -> Json:
        self._check_rights("delete", resource)
        self.now = self._cluster.now
        if resource is PODS:
            assert namespace is not None
            self._cluster.frees(namespace)
            self._cluster.pods[namespace] -= 1
            return {}
        kind, key = self._matching(resource, name, namespace, uid, resource_version)
        if resource is NODES:
            self._cluster.frees(name)
            self._cluster.delete_node(name)
        elif self._cluster.api.objects[kind][key]["metadata"].get("finalizers"):
            self._cluster.api.patch(kind, key, {"metadata": {"deletionTimestamp": "2026-03-01T00:00:00Z"}})
        else:
            self._cluster.api.put(kind, key, None)
        return {}

    async def evict(self, _name: str, /, *, namespace: str, uid: str) -> Json:
        """A kubelet that is heard ends the pod at once; else it stays."""
        self._check_rights("evict", PODS)
        if self.budget:
            raise ApiError(Outcome.THROTTLED, self.budget, reason="TooManyRequests")
        if self._cluster.ends_pods(namespace):
            self._cluster.pods[namespace] -= 1
        else:
            self.evicted.add(uid)
        return {}

    def _check_rights(self, verb: str, resource: Resource) -> None:
        if (verb, resource.kind) in self.refused:
            raise ApiError(Outcome.FORBIDDEN, f"no right to {verb} a {resource.kind}")

    def _matching(
        self, resource: Resource, name: str, namespace: str | None, uid: str | None, version: str | None
    ) -> tuple[str, str]:
        self.now = self._cluster.now
        kind, key = self._place(resource, name, namespace)
        try:
            self._cluster.api.matching(kind, key, uid, version)
        except Conflict as conflict:
            raise _conflict(conflict) from None
        return kind, key

    def _place(self, resource: Resource, name: str, namespace: str | None) -> tuple[str, str]:
        """The virtual API's kind, and the object's key there."""
        at_home = resource is CONFIG_MAPS or not resource.namespaced
        return self._cluster.api.called(resource), name if at_home else f"{namespace}/{name}"


def _conflict(conflict: Conflict) -> ApiError:
    return ApiError(Outcome.CONFLICT, f"{conflict} is no longer what it was")
