"""The API as the hosts see it: passes TCP on to the cluster, and misbehaves towards those hosts that it is told to.

Its listening sockets come from the bed's network, while the process itself stays in the machine's, where the cluster
listens. TLS passes through untouched.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import ipaddress
import socket
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Callable

from tests.harness.bed.channel import listen, reply_to

TRICKLE_SECONDS = 1.0
Route = tuple[int, int]
"""The number of a host and of an API server in the bed's network."""


class Mode(enum.Enum):
    """The behaviour that a host finds at an API server's address; a change takes hold of open connections too."""

    PASS = "pass"
    REFUSE = "refuse"
    """Connections are reset at once, open ones too."""
    SWALLOW = "swallow"
    """Connections are accepted, and not a byte moves."""
    TRICKLE = "trickle"
    """Answers come at a byte a second."""
    RESET = "reset"
    """The next thing that the server says is cut in half, and the connection reset."""


class _Reset(Exception):
    """This connection ends with a reset."""


class Relay:
    """The modes, and the connections they apply to."""

    def __init__(self, upstream_port: int) -> None:
        self._upstream_port = upstream_port
        self._diverted: dict[Route, int] = {}
        self._modes: dict[Route, Mode] = {}
        self._changed = asyncio.Event()
        self._open: dict[asyncio.StreamWriter, Route] = {}

    def set_mode(self, hosts: Sequence[int], servers: Sequence[int], mode: str) -> None:
        for route in [(host, server) for host in hosts for server in servers]:
            self._modes[route] = Mode(mode)
        self._changed.set()
        self._changed = asyncio.Event()
        self._reset_if(lambda route: self._mode(route) is Mode.REFUSE)

    def divert(self, hosts: Sequence[int], servers: Sequence[int], port: int) -> None:
        """Lead these hosts to another server; what they have open is reset."""
        routes = [(host, server) for host in hosts for server in servers]
        self._diverted.update(dict.fromkeys(routes, port))
        self._reset_if(lambda route: route in routes)

    def _reset_if(self, concerned: Callable[[Route], bool]) -> None:
        for host, route in self._open.items():
            if concerned(route):
                _reset(host)

    async def serve(self, reader: asyncio.StreamReader, host: asyncio.StreamWriter) -> None:
        """One connection of a host, to its end."""
        route = _number(host.get_extra_info("peername")), _number(host.get_extra_info("sockname"))
        self._open[host] = route
        try:
            await self._pass_on(reader, host, route)
            host.close()
        except (OSError, _Reset):
            _reset(host)
        finally:
            del self._open[host]

    async def _pass_on(self, reader: asyncio.StreamReader, host: asyncio.StreamWriter, route: Route) -> None:
        await self._permission(route)
        port = self._diverted.get(route, self._upstream_port)
        answers, server = await asyncio.open_connection("127.0.0.1", port)
        pumps = [
            asyncio.create_task(self._pump(reader, server, route, answers=False)),
            asyncio.create_task(self._pump(answers, host, route, answers=True)),
        ]
        try:
            await asyncio.gather(*pumps)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            server.close()

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, route: Route, *, answers: bool
    ) -> None:
        while data := await reader.read(65536):
            await self._permission(route)
            if answers and self._mode(route) is Mode.RESET:
                writer.write(data[: len(data) // 2])
                raise _Reset
            while answers and data and self._mode(route) is Mode.TRICKLE:
                writer.write(data[:1])
                data = data[1:]
                await asyncio.sleep(TRICKLE_SECONDS)
            await self._permission(route)
            writer.write(data)
            await writer.drain()
        await self._permission(route)
        writer.write_eof()

    async def _permission(self, route: Route) -> None:
        """Wait for as long as nothing may move."""
        while self._mode(route) is Mode.SWALLOW:
            await self._changed.wait()
        if self._mode(route) is Mode.REFUSE:
            raise _Reset

    def _mode(self, route: Route) -> Mode:
        return self._modes.get(route, Mode.PASS)


def run(listeners: Sequence[socket.socket], upstream_port: int, control: Path) -> None:
    """Relay for ever."""
    asyncio.run(_run(listeners, upstream_port, control))


async def _run(listeners: Sequence[socket.socket], upstream_port: int, control: Path) -> None:
    relay = Relay(upstream_port)

    async def obey(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(reply_to(await reader.read(), {"set_mode": relay.set_mode, "divert": relay.divert}))
        writer.close()

    for listener in listeners:
        await asyncio.start_server(relay.serve, sock=listener)
    await asyncio.start_unix_server(obey, sock=listen(control))
    await asyncio.Event().wait()


def _number(address: tuple[str, int]) -> int:
    return ipaddress.ip_address(address[0]).packed[-1]


def _reset(writer: asyncio.StreamWriter) -> None:
    """End the connection by a RST instead of a FIN."""
    with contextlib.suppress(OSError):  # it may have ended by itself
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.transport.abort()
