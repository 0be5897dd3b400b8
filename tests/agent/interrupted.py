"""An API whose watch breaks off once and then goes on with nothing to tell but bookmarks, as it does for months."""

from __future__ import annotations

import asyncio
import json

from pp_hostd.kube.client import ApiClient, Json, Listing
from pp_hostd.kube.connection import Connection
from pp_hostd.kube.kubeconfig import Kubeconfig
from pp_hostd.kube.outcome import ApiError, Outcome
from pp_hostd.kube.resources import Resource
from pp_hostd.model.endpoint import Endpoint

BROKEN_OFF = "watching: unreachable"


class Interrupted(ApiClient):
    """It lists these objects. `going_on` is set by the test that has seen the interruption."""

    def __init__(self, kubeconfig: Kubeconfig, *items: Json) -> None:
        super().__init__(kubeconfig, deadline_seconds=10)
        self.going_on = asyncio.Event()
        self._items = items

    async def list(self, *_: object, **__: object) -> Listing:
        return Listing(list(self._items), "10")

    async def open_watch(self, resource: Resource, *_: object) -> Connection:
        if not self.going_on.is_set():
            raise ApiError(Outcome.UNREACHABLE, BROKEN_OFF)
        return Bookmarks(resource)


class Bookmarks(Connection):
    """One bookmark, and then silence."""

    def __init__(self, resource: Resource) -> None:
        self.endpoint = Endpoint("https://127.0.0.1", "127.0.0.1", 443, "")
        bookmark = {"kind": resource.kind, "metadata": {"resourceVersion": "11"}}
        self._lines = [json.dumps({"type": "BOOKMARK", "object": bookmark}).encode() + b"\n"]

    async def read(self) -> bytes:
        return self._lines.pop() if self._lines else await asyncio.get_running_loop().create_future()

    def close(self) -> None:
        pass
