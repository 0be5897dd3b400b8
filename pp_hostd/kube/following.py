"""A kubeconfig that changes on disk is used by the next exchange: a running daemon takes up a renewed enrolment."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Callable

from pp_hostd.errors import UserError
from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.credentials import signature
from pp_hostd.kube.kubeconfig import Kubeconfig

LOOK_SECONDS = 5.0


class Following:
    """`trouble` says why the file on disk is not the one in use; empty if it is. What it names rotates by itself."""

    def __init__(self, client: ApiClient, path: str, load: Callable[[], Awaitable[Kubeconfig]]) -> None:
        """`load` reads the kubeconfig at `path` without holding up the event loop."""
        self.trouble = ""
        self._client, self._path, self._load = client, path, load
        self._seen = signature((path,))

    async def run(self, interval_seconds: float = LOOK_SECONDS) -> None:
        """Look at the file again and again, until cancelled."""
        while True:
            await asyncio.sleep(interval_seconds)
            await self.look()

    async def look(self) -> None:
        """Use the file if it has changed. One that can't be used, perhaps half-written, is tried at the next look."""
        found = signature((self._path,))
        if found == self._seen:
            self.trouble = ""
            return
        try:
            self._client.use(await self._load())
        except UserError as error:
            self.trouble = f"the API is still asked with the credentials as they were: {error.message}"
        else:
            self._seen, self.trouble = found, ""
