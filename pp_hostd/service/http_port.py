"""A small HTTP/1.1 listener for strangers: requests without bodies, one at a time, everything bounded.

Bounded are the connections (when full, the one goes that is not being answered and whose last whole request is the
longest ago), the size of a head, the time until a request is whole, the time between two, and what is read ahead. An
error is one line, and ends the connection.
"""

from __future__ import annotations

import asyncio
import resource
import socket
from collections import Counter, OrderedDict
from collections.abc import Coroutine, Iterator
from typing import Any, Callable

from pp_hostd.errors import UserError
from pp_hostd.frozen import frozen
from pp_hostd.service.http_connection import HEAD_BYTES, Connection, Parting, Reply, Request
from pp_hostd.service.metric import Metric

BACKLOG = 1024
# However many come or are to go at once, the loop's other work waits for no more than these.
ACCEPTS_PER_TURN = 16
PARTINGS_PER_SWEEP = 32
SWEEP_SECONDS, NEXT_SWEEP_SECONDS = 0.5, 0.01


@frozen
class Limits:
    """What strangers may take."""

    connections: int = 1024
    request_seconds: float = 5.0
    idle_seconds: float = 30.0


LIMITS = Limits()
Respond = Callable[[Request], Coroutine[Any, Any, Reply]]


class HttpPort:
    """All connections of one listener, and what they share."""

    def __init__(self, respond: Respond, limits: Limits = LIMITS) -> None:
        self.respond = respond
        self.limits = limits
        # At most half of the descriptors: strangers must never keep us from the API.
        descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self._most = min(limits.connections, descriptors // 2) if descriptors > 0 else limits.connections
        self.loop = asyncio.get_running_loop()
        self.buffer = memoryview(bytearray(HEAD_BYTES))
        self.partings: Counter[Parting] = Counter()
        self._connections: OrderedDict[Connection, None] = OrderedDict()
        self._server: asyncio.AbstractServer | None = None
        self._sweeping: asyncio.TimerHandle | None = None

    async def listen(self, address: str, port: int) -> int:
        """Begin to listen, and tell on which port (0 picks a free one); an empty address is all, IPv4 and IPv6."""
        sock = _listening(address, port)
        self._server = await self.loop.create_server(self.connection, sock=sock, backlog=ACCEPTS_PER_TURN)
        sock.listen(BACKLOG)  # asyncio takes one figure for both
        return int(sock.getsockname()[1])

    async def close(self) -> None:
        """Stop listening, and drop everybody."""
        if self._server is not None:
            self._server.close()
        if self._sweeping is not None:
            self._sweeping.cancel()
        for connection in list(self._connections):
            connection.abort()
        await asyncio.sleep(0)  # that takes effect when the loop comes round

    def connection(self) -> Connection:
        return Connection(self)

    def metrics(self, name: str) -> Iterator[Metric]:
        """What strangers do to this port, in metrics whose names begin so."""
        yield Metric(f"{name}_connections", "Connections that are open.", "gauge", [({}, len(self._connections))])
        yield Metric(
            f"{name}_connections_ended_total",
            "Connections that were ended on our side, by reason.",
            "counter",
            [({"reason": parting.value}, self.partings[parting]) for parting in Parting],
        )

    @property
    def open_connections(self) -> int:
        return len(self._connections)

    def joined(self, connection: Connection) -> None:
        if len(self._connections) >= self._most:
            # Whoever waits for its answer stays: newcomers, however many, cut nobody's question off.
            idle = (each for each in self._connections if not each.is_answered)
            self.end(next(idle, None) or next(iter(self._connections)), Parting.EVICTED)
        self._connections[connection] = None
        if self._sweeping is None:
            self._sweeping = self.loop.call_later(SWEEP_SECONDS, self._sweep)

    def left(self, connection: Connection) -> None:
        self._connections.pop(connection, None)

    def served(self, connection: Connection) -> None:
        """It has sent a whole request, so it is the last to be evicted."""
        if connection in self._connections:
            self._connections.move_to_end(connection)

    def end(self, connection: Connection, parting: Parting) -> None:
        self.partings[parting] += 1
        self.left(connection)
        connection.abort()

    def _sweep(self) -> None:
        """One timer for all. It runs only while somebody is connected."""
        now = self.loop.time()
        overdue = [each for each in self._connections if each.ends_at <= now]
        for connection in overdue[:PARTINGS_PER_SWEEP]:
            self.end(connection, connection.parting)
        seconds = NEXT_SWEEP_SECONDS if len(overdue) > PARTINGS_PER_SWEEP else SWEEP_SECONDS
        self._sweeping = self.loop.call_later(seconds, self._sweep) if self._connections else None


def _listening(address: str, port: int) -> socket.socket:
    """The socket, made here: asyncio would look even an address up, in a thread."""
    everywhere = not address and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if everywhere or ":" in address else socket.AF_INET
    try:
        return socket.create_server((address, port), family=family, dualstack_ipv6=everywhere)
    except OSError as error:
        raise UserError(
            f"can't listen on {address or 'every address'}, port {port}: {error.strerror}",
            f"Is the address one of this host's, and who has the port? See: ip address; ss -ltnp sport = {port}",
        ) from None
