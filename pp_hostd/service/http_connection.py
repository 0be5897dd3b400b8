"""One client of an HTTP port: requests without bodies, one at a time, none too large, none too slow."""

from __future__ import annotations

import asyncio
import contextlib
import enum
from typing import TYPE_CHECKING, NamedTuple

import h11

if TYPE_CHECKING:
    from pp_hostd.service.http_port import HttpPort

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
    """`extra` are more lines of the head, each with its line end. An error status ends the connection."""

    status: int
    body: bytes
    content_type: bytes = b"text/plain; charset=utf-8"
    extra: bytes = b""


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
        self._ahead = b""  # what came while the last request was being answered
        self._answering: asyncio.Task[None] | None = None
        self._is_last = False
        self._refused = False
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
        if self._answering is not None:
            self._ahead += data
            self._transport.pause_reading()
            return
        self._received(data)

    def resume_writing(self) -> None:
        """The client has taken its answer."""
        if not self._refused:
            self._next()

    def eof_received(self) -> bool:
        """A client that only has nothing more to say still gets its answer."""
        self._is_last = True
        return self._answering is not None

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
        except ValueError:  # what h11 before 0.15 lets through of a length of thousands of digits
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
        self._end_in(NEVER, Parting.SLOW)  # whoever responds keeps a deadline
        self._answering = self._port.loop.create_task(self._answer(Request(event.method, event.target, headers)))

    async def _answer(self, request: Request) -> None:
        try:
            reply = await self._port.respond(request)
        except BaseException:
            self._transport.abort()
            raise
        finally:
            self._answering = None  # the task holds us, and we hold the task
        if reply.status >= 400:
            self._part(reply)
        else:
            self._send(reply)
            self._next()

    def _next(self) -> None:
        self._end_in(self._port.limits.idle_seconds, Parting.IDLE)
        if self._is_last:
            self._transport.close()
        elif self._transport.get_write_buffer_size():
            self._transport.pause_reading()  # whoever does not take answers gets no more of them
        elif self._ahead:
            data, self._ahead = self._ahead, b""
            self._received(data)
        if self._answering is None and not self._transport.get_write_buffer_size():
            self._transport.resume_reading()

    def _refuse(self, status: int, reason: str) -> None:
        self._part(Reply(status, f"{reason[:MAX_REASON]}\n".encode()))  # h11 quotes what it was sent

    def _part(self, reply: Reply) -> None:
        """The last reply. What the client still sends is dropped for a moment, or a reset would overtake the reply."""
        self._refused, self._parser, self._ahead = True, None, b""
        self._send(reply)
        self._port.partings[Parting.REFUSED] += 1
        self._end_in(LINGER_SECONDS, Parting.LINGERED)
        with contextlib.suppress(OSError):  # it has gone already
            self._transport.write_eof()
        self._transport.resume_reading()

    def _send(self, reply: Reply) -> None:
        status = b"200 OK" if reply.status == 200 else b"%d Error" % reply.status
        self._transport.write(
            b"HTTP/1.1 %b\r\nContent-Type: %b\r\nContent-Length: %d\r\n%b\r\n%b"
            % (status, reply.content_type, len(reply.body), reply.extra, reply.body)
        )

    def _end_in(self, seconds: float, parting: Parting) -> None:
        self.ends_at, self.parting = self._port.loop.time() + seconds, parting
