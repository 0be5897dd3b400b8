"""The exchanges that steps have with the API, also about kinds that a cluster serves in one of several versions."""

from __future__ import annotations

from typing import Any, Callable, Protocol

from pp_hostd.kube.resources import CLUSTERS, MACHINES, NODES, Resource
from pp_hostd.kube.served import ServedVersion

Json = dict[str, Any]


class Listing(Protocol):
    """A whole list of what was kept of each object."""

    @property
    def items(self) -> list[Any]: ...


class Api(Protocol):
    """The exchanges that steps have with the API. Reads are linearizable. Each raises ApiError if it fails."""

    async def get(self, resource: Resource, name: str, *, namespace: str | None = None) -> Json: ...

    async def list(
        self, resource: Resource, *, field_selector: str = "", keep: Callable[[Json], Any] = ...
    ) -> Listing: ...

    async def create(self, resource: Resource, body: Json, *, namespace: str | None = None) -> Json: ...
    async def update(self, resource: Resource, body: Json, *, namespace: str | None = None) -> Json: ...

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Json,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
    ) -> Json: ...

    async def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        grace_period_seconds: int | None = None,
    ) -> Json: ...

    async def evict(self, name: str, /, *, namespace: str, uid: str) -> Json: ...


class Served:
    """One kind of object, in whichever version of its API the cluster serves. `versions` are all that it may serve, the
    newest first. Objects go by [namespace/]name."""

    def __init__(self, api: Api, versions: tuple[Resource, ...]) -> None:
        self._api = api
        self._version = ServedVersion(versions)

    async def get(self, key: str) -> Json:
        """By a linearizable read."""
        namespace, name = _parts(key)
        return await self._version.exchange(lambda kind: self._api.get(kind, name, namespace=namespace))

    async def patch(self, key: str, patch: Json, subresource: str | None = None) -> Json:
        namespace, name = _parts(key)
        return await self._version.exchange(
            lambda kind: self._api.patch(kind, name, patch, namespace=namespace, subresource=subresource)
        )

    async def delete(self, key: str, uid: str, resource_version: str) -> Json:
        namespace, name = _parts(key)
        return await self._version.exchange(
            lambda kind: self._api.delete(kind, name, namespace=namespace, uid=uid, resource_version=resource_version)
        )


class ServedKinds:
    """The kinds of objects that a leader writes, each of which remembers the version that is served."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._kinds: dict[tuple[Resource, ...], Served] = {}

    def __call__(self, versions: tuple[Resource, ...]) -> Served:
        """The kind that the cluster serves in one of these versions."""
        return self._kinds.setdefault(versions, Served(self._api, versions))


class ServedMachines(Served):
    """The machines of the cluster's kind; `setting` is api.machines."""

    def __init__(self, api: Api, setting: str) -> None:
        super().__init__(api, MACHINES[setting])
        self.setting = setting
        self.clusters = Served(api, CLUSTERS)
        """To which they belong, where they are Cluster API's."""

    @property
    def are_nodes(self) -> bool:
        """Whether the Nodes themselves are the machines."""
        return self._version.first is NODES


def _parts(key: str) -> tuple[str | None, str]:
    namespace, _, name = key.rpartition("/")
    return namespace or None, name
