"""Exchanges about one kind of object, in whichever version of its API the cluster serves."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Callable

from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.outcome import ApiError, is_unserved
from pp_hostd.kube.resources import Resource


class Served:
    """`versions` are all that a cluster may serve, the newest first. Objects go by [namespace/]name."""

    def __init__(self, client: ApiClient, versions: tuple[Resource, ...]) -> None:
        self._client = client
        self._versions = versions

    async def get(self, subject: str) -> Json:
        """By a linearizable read."""
        namespace, name = _parts(subject)
        return await self._served(lambda kind: self._client.get(kind, name, namespace=namespace))

    async def patch(self, subject: str, patch: Json, subresource: str | None = None) -> Json:
        namespace, name = _parts(subject)
        return await self._served(
            lambda kind: self._client.patch(kind, name, patch, namespace=namespace, subresource=subresource)
        )

    async def delete(self, subject: str, uid: str, resource_version: str) -> Json:
        namespace, name = _parts(subject)
        return await self._served(
            lambda kind: self._client.delete(
                kind, name, namespace=namespace, uid=uid, resource_version=resource_version
            )
        )

    async def _served(self, exchange: Callable[[Resource], Awaitable[Json]]) -> Json:
        """The exchange, in the version that was served last; where none is served there, in the next one."""
        for kind in self._versions[:-1]:
            try:
                return await exchange(kind)
            except ApiError as error:
                if not is_unserved(error):
                    raise
                if kind is self._versions[0]:  # of several exchanges at once the first turns
                    self._versions = (*self._versions[1:], kind)
        return await exchange(self._versions[0])


def _parts(subject: str) -> tuple[str | None, str]:
    namespace, _, name = subject.rpartition("/")
    return namespace or None, name
