"""Reads and writes of machines, in whichever version of their API the cluster serves."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Callable

from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.outcome import ApiError, is_unserved
from pp_hostd.kube.resources import MACHINES, NODES, Resource


class ServedMachines:
    """The machines of the cluster's kind; `setting` is api.machines."""

    def __init__(self, client: ApiClient, setting: str) -> None:
        self.setting = setting
        self._client = client
        self._versions = MACHINES[setting]

    @property
    def are_nodes(self) -> bool:
        """Whether the Nodes themselves are the machines."""
        return self._versions[0] is NODES

    async def get(self, subject: str) -> Json:
        """By a linearizable read."""
        namespace, name = _parts(subject)
        return await self._served(lambda kind: self._client.get(kind, name, namespace=namespace))

    async def patch(self, subject: str, patch: Json) -> Json:
        namespace, name = _parts(subject)
        return await self._served(lambda kind: self._client.patch(kind, name, patch, namespace=namespace))

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
