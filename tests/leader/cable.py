"""A cable between a client and its cluster that can be cut, and mended: TLS passes through it untouched."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.kubeconfig import Kubeconfig, endpoint

CHUNK_BYTES = 65536


class Cable:
    """The kubeconfig names the cluster at one end of the cable; `client` is at the other end."""

    def __init__(self, kubeconfig: Kubeconfig, own_url: str) -> None:
        self.client = ApiClient(replace(kubeconfig, endpoints=(endpoint(own_url, "the test"),)), deadline_seconds=10)
        self._port = kubeconfig.endpoints[0].port
        self._is_cut = False
        self._open: set[asyncio.StreamWriter] = set()

    def cut(self) -> None:
        """Whatever is connected is reset, and nothing connects any more."""
        self._is_cut = True
        for end in self._open:
            end.transport.abort()

    def mend(self) -> None:
        self._is_cut = False

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, to its end."""
        self._open.add(writer)
        if not self._is_cut:
            from_cluster, to_cluster = await asyncio.open_connection("127.0.0.1", self._port)
            self._open.add(to_cluster)
            await asyncio.gather(_pass_on(reader, to_cluster), _pass_on(from_cluster, writer))
            self._open.discard(to_cluster)
        writer.transport.abort()
        self._open.discard(writer)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
    writer.transport.abort()


@asynccontextmanager
async def laid_cable(kubeconfig: Kubeconfig) -> AsyncIterator[Cable]:
    carried: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        carried.add(asyncio.ensure_future(cable.carry(reader, writer)))

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    cable = Cable(kubeconfig, f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    try:
        yield cable
    finally:
        server.close()
        cable.client.close()
        cable.cut()
        await asyncio.gather(*carried)
