"""A small HTTP/1.1 listener for strangers: requests without bodies, one at a time, everything bounded.

Bounded are the connections (when full, the one goes that is not being answered and whose last whole request is the
longest ago), the size of a head, the time until a request is whole, the time between two, and what is read ahead. An
error is one line, and ends the connection. A reply may be a stream: of that no more is held than one part.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import resource
import socket
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, Coroutine, Iterator
from typing import Any, Callable, NamedTuple

import h11

from pp_hostd.errors import UserError
from pp_hostd.frozen import frozen
from pp_hostd.service.metric import Metric

HEAD_BYTES = 4096
LINGER_SECONDS = 1.0
MAX_REASON = 100
NEVER = float("inf")


class Request(NamedTuple):
    """A whole request; header names are in lower case."""

    method: bytes
    target: bytes
    headers: dict[bytes, bytes]


class Reply(NamedTuple):
    """`extra` are more lines of the head, each with its line end. An error status ends the connection.

    A `stream` is sent in place of the body, each part once the client has taken the one before; it ends the connection.
    """

    status: int
    body: bytes
    content_type: bytes = b"text/plain; charset=utf-8"
    extra: bytes = b""
    stream: AsyncGenerator[bytes, None] | None = None


class Parting(enum.Enum):
    """Why the port ended a connection; how metrics name it."""

    REFUSED = "refused"
    LINGERED = "lingered"
    SLOW = "slow"
    IDLE = "idle"
    EVICTED = "evicted"


class Connection(asyncio.BufferedProtocol):
    """One client: it sends a request, or is being answered, or is idle, or has been refused and may only leave."""

    def __init__(self, port: HttpPort) -> None:
        self._port = port
        self._parser: h11.Connection | None = None  # only while a request is arriving
        self._ahead = b""  # bytes that came while the last request was being answered
        self._answering: asyncio.Task[None] | None = None
        self._is_last = False
        self._refused = False
        self._streaming = False
        self._taken: asyncio.Future[None] | None = None  # while a client has to take a part of a stream
        self.ends_at = NEVER
        self.parting = Parting.SLOW

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=0)
        self._end_in(self._port.limits.request_seconds, Parting.SLOW)
        self._port.joined(self)

    def connection_lost(self, _: Exception | None) -> None:
        self._port.left(self)
        if self._answering is not None:
            self._answering.cancel()

    def get_buffer(self, _: int) -> memoryview:
        """One for all connections: asyncio fills it and calls buffer_updated in the same breath."""
        return self._port.buffer

    def buffer_updated(self, count: int) -> None:
        data = bytes(self._port.buffer[:count])
        if self._refused:
            return
        if self._streaming:  # a client that still speaks is none that reads streams
            self._port.end(self, Parting.REFUSED)
            return
        if self._answering is not None:
            self._ahead += data
            self._transport.pause_reading()
            return
        self._received(data)

    def resume_writing(self) -> None:
        """The client has taken its answer, or a part of its stream."""
        if self._taken is not None:
            self._taken.set_result(None)
            self._taken = None
        elif not self._refused:
            self._next()

    def eof_received(self) -> bool:
        """A client that only has nothing more to say still gets its answer, but a stream has no end to wait for."""
        self._is_last = True
        return self._answering is not None and not self._streaming

    @property
    def is_answered(self) -> bool:
        """Whether somebody works on its request just now."""
        return self._answering is not None

    def abort(self) -> None:
        self._transport.abort()

    def _received(self, data: bytes) -> None:
        if self._parser is None:
            self._parser = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)
            self._end_in(self._port.limits.request_seconds, Parting.SLOW)
        try:
            self._parser.receive_data(data)
            event = self._parser.next_event()
        except h11.RemoteProtocolError as error:
            self._refuse(error.error_status_hint, str(error))
            return
        except ValueError:  # h11 before 0.15 lets a length of thousands of digits through
            self._refuse(400, "bad Content-Length")
            return
        if isinstance(event, h11.Request):
            self._ahead, self._parser = self._parser.trailing_data[0], None
            self._take(event)

    def _take(self, event: h11.Request) -> None:
        headers = dict(event.headers)
        if b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0":
            self._refuse(413, "a request may have no body")
            return
        if event.http_version != b"1.1" or b"close" in headers.get(b"connection", b"").lower():
            self._is_last = True
        self._port.served(self)
        self._end_in(NEVER, Parting.SLOW)  # `respond` keeps a deadline of its own
        self._answering = self._port.loop.create_task(self._answer(Request(event.method, event.target, headers)))

    async def _answer(self, request: Request) -> None:
        try:
            reply = await self._port.respond(request)
            if reply.stream is not None:
                await self._stream(reply, reply.stream)
        except BaseException:
            self._transport.abort()
            raise
        finally:
            self._answering = None  # the task holds us, and we hold the task
        if reply.status >= 400:
            self._part(reply, request.method)
        else:
            if reply.stream is None:
                self._send(reply, request.method)
            self._next()

    async def _stream(self, reply: Reply, parts: AsyncGenerator[bytes, None]) -> None:
        self._streaming = self._is_last = True
        head = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nConnection: close\r\n%b\r\n"
        try:
            await self._give(head % (reply.content_type, reply.extra))
            async for part in parts:
                await self._give(part)
        finally:
            await parts.aclose()

    async def _give(self, part: bytes) -> None:
        """Returns once the client has taken it; a client that takes too long is dropped."""
        self._transport.write(part)
        if self._transport.get_write_buffer_size():
            self._taken = self._port.loop.create_future()
            self._end_in(self._port.limits.idle_seconds, Parting.IDLE)
            await self._taken
            self._end_in(NEVER, Parting.IDLE)

    def _next(self) -> None:
        self._end_in(self._port.limits.idle_seconds, Parting.IDLE)
        if self._is_last:
            self._transport.close()
        elif self._transport.get_write_buffer_size():
            self._transport.pause_reading()  # a client that does not take answers gets no more of them
        elif self._ahead:
            data, self._ahead = self._ahead, b""
            self._received(data)
        if self._answering is None and not self._transport.get_write_buffer_size():
            self._transport.resume_reading()

    def _refuse(self, status: int, reason: str) -> None:
        self._part(Reply(status, f"{reason[:MAX_REASON]}\n".encode()))  # h11 quotes what it was sent

    def _part(self, reply: Reply, method: bytes = b"GET") -> None:
        """Sends the last reply, and drops for a moment all that still comes, or a reset would overtake the reply."""
        self._refused, self._parser, self._ahead = True, None, b""
        self._send(reply, method)
        self._port.partings[Parting.REFUSED] += 1
        self._end_in(LINGER_SECONDS, Parting.LINGERED)
        with contextlib.suppress(OSError):  # it has gone already
            self._transport.write_eof()
        self._transport.resume_reading()

    def _send(self, reply: Reply, method: bytes) -> None:
        status = b"200 OK" if reply.status == 200 else b"%d Error" % reply.status
        self._transport.write(
            b"HTTP/1.1 %b\r\nContent-Type: %b\r\nContent-Length: %d\r\n%b\r\n%b"
            % (status, reply.content_type, len(reply.body), reply.extra, b"" if method == b"HEAD" else reply.body)
        )

    def _end_in(self, seconds: float, parting: Parting) -> None:
        self.ends_at, self.parting = self._port.loop.time() + seconds, parting


BACKLOG = 1024
# However many come or are to go at once, the loop's other work waits for no more than these.
ACCEPTS_PER_TURN = 16
PARTINGS_PER_SWEEP = 32
SPEAKS_WITHIN_SECONDS = 5
SWEEP_SECONDS, NEXT_SWEEP_SECONDS = 0.5, 0.01


@frozen
class Limits:
    """The most that strangers may take: connections, time for a whole request, and time between two."""

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
        """Yields metrics of the connections of strangers to this port; the metrics' names begin with `name`."""
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
            # A connection that is being answered goes only if all are: newcomers cut off no question before that.
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
        sock = socket.create_server((address, port), family=family, dualstack_ipv6=everywhere)
    except OSError as error:
        raise UserError(
            f"can't listen on {address or 'every address'}, port {port}: {error.strerror}",
            f"Is the address one of this host's, and who has the port? See: ip address; ss -ltnp sport = {port}",
        ) from None
    # A client speaks first: until it does, the kernel keeps its connection, and a probe never wakes us.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, SPEAKS_WITHIN_SECONDS)
    return sock
