"""One HTTP/1.1 connection to an API server, by plain socket operations and TLS, and its failures as typed outcomes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import ssl
from collections.abc import Awaitable
from typing import Any, Callable, TypeVar

import h11

from pp_hostd.frozen import frozen
from pp_hostd.kube.deadline import TimedOut
from pp_hostd.kube.outcome import ApiError, Garbage, Outcome
from pp_hostd.model.endpoint import Endpoint

T = TypeVar("T")

CHUNK_BYTES = 16384
HOUSEKEEPING_CHUNKS = 4  # more than TLS itself ever has to say on an idle connection
# A far side that vanished without a word is noticed within about 11 seconds.
KEEPALIVE = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 2),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 11000),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
)


class Stream:
    """Bytes to and from one server. Raises OSError when the network fails and ssl.SSLError when TLS does."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, server_name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket = sock
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=server_name)

    @classmethod
    async def connect(cls, address: str, port: int, context: ssl.SSLContext, server_name: str) -> Stream:
        """Connect to an address literal and shake hands. Nothing stays open if this fails or is cancelled."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            for level, option, value in KEEPALIVE:
                sock.setsockopt(level, option, value)
            await _done(asyncio.get_running_loop().sock_connect(sock, (address, port)))
            stream = cls(sock, context, server_name)
            await stream._drive(stream._tls.do_handshake)
            return stream
        except BaseException:
            sock.close()
            raise

    async def send(self, data: bytes) -> None:
        """Hand all of `data` to the kernel."""
        try:
            await self._drive(lambda: self._tls.write(data))
        except ConnectionError:
            await self.receive()  # raises, if the last that the server said was that TLS refuses us
            raise

    async def receive(self) -> bytes:
        """The next bytes, or b"" when the server has closed the connection."""
        try:
            return await self._drive(lambda: self._tls.read(CHUNK_BYTES))
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
            return b""

    def stale(self) -> bool:
        """Whether an idle connection is of no more use: the server closed it, or said something that nobody asked."""
        try:
            for _ in range(HOUSEKEEPING_CHUNKS):
                data = self._socket.recv(CHUNK_BYTES)
                if not data:
                    return True
                self._incoming.write(data)
            return True
        except BlockingIOError:
            pass
        except OSError:
            return True
        try:
            self._tls.read(1)
        except ssl.SSLWantReadError:
            return False  # at most TLS housekeeping, such as session tickets, was waiting
        except ssl.SSLError:
            return True
        return True

    def close(self) -> None:
        """Close at once; nothing is awaited and nothing lingers."""
        self._socket.close()

    async def _drive(self, operation: Callable[[], T]) -> T:
        """Run a TLS operation, moving bytes between it and the socket until it is done."""
        while True:
            try:
                result = operation()
            except ssl.SSLWantReadError:
                await self._flush()
                await self._readable()
                try:
                    data = self._socket.recv(CHUNK_BYTES)
                except BlockingIOError:  # what made it readable was bad
                    continue
                if data:
                    self._incoming.write(data)
                else:
                    self._incoming.write_eof()
            except ssl.SSLError:
                with contextlib.suppress(OSError):
                    await self._flush()  # the alert that tells the server why
                raise
            else:
                await self._flush()
                return result

    async def _readable(self) -> None:
        """Until there is something to receive. Always takes a turn of the loop: else a server that always has more to
        say would starve the loop and its timers.

        asyncio's own sock_recv first tries in vain, as the reply to a request is never there at once.
        """
        number, ready = self._socket.fileno(), self._loop.create_future()
        self._loop.add_reader(number, self._has_become_readable, ready)
        try:
            await ready
        except BaseException:
            self._loop.remove_reader(number)
            raise

    def _has_become_readable(self, ready: asyncio.Future[None]) -> None:
        self._loop.remove_reader(self._socket.fileno())
        if not ready.done():
            ready.set_result(None)

    async def _flush(self) -> None:
        if not self._outgoing.pending:
            return
        data = self._outgoing.read()
        try:
            sent = self._socket.send(data)  # most often the kernel takes all of it at once
        except BlockingIOError:
            sent = 0
        if sent < len(data):
            await _done(self._loop.sock_sendall(self._socket, data[sent:]))


async def _done(operation: Awaitable[T]) -> T:
    """The result. A failure comes without asyncio's traceback, whose frames hold the future that holds the failure."""
    try:
        return await operation
    except OSError as error:
        raise error.with_traceback(None) from None


MAX_HEAD_BYTES = 65536
END_OF_MESSAGE = h11.EndOfMessage()


class Broken(OSError):
    """The connection ended before the reply did."""


@frozen
class Head:
    """The status and the headers of a reply, which come before its body."""

    status: int
    headers: dict[str, str]


class Connection:
    """Used for one exchange at a time; `finished` says whether another may follow."""

    def __init__(self, stream: Stream, endpoint: Endpoint, context: ssl.SSLContext) -> None:
        self.endpoint = endpoint
        self.context = context
        self.request_sent = False
        self.received_bytes = 0
        self._ended = False
        self._stream = stream
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)
        self._last_asked: tuple[object, ...] = ()

    async def request(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Head:
        """Send a whole request and read the head of the reply."""
        if self._http.our_state is h11.DONE:
            self._http.start_next_cycle()
        self.request_sent, self.received_bytes = False, 0
        lines = [("Host", self.endpoint.authority), *headers.items(), ("Content-Length", str(len(body)))]
        asked = method, target, lines
        if asked != self._last_asked:  # most often the same again; h11 checks and renders each header when it is made
            self._last_asked = asked
            self._head = h11.Request(method=method, target=self.endpoint.prefix + target, headers=lines)
        rendered = self._http.send(self._head) or b""
        if body:
            rendered += self._http.send(h11.Data(data=body)) or b""
        rendered += self._http.send(END_OF_MESSAGE) or b""
        self.request_sent = True  # from here on the server may have it, whatever send() says
        await self._stream.send(rendered)
        await self._receive()
        while True:
            event = await self._next_event()
            if isinstance(event, h11.Response):
                found = event.headers.raw_items()
                return Head(event.status_code, {n.lower().decode(): v.decode("latin-1") for n, v in found})

    async def read(self) -> bytes:
        """The next piece of the body, or b"" at its end."""
        while True:
            event = await self._next_event()
            if isinstance(event, h11.Data):
                return bytes(event.data)
            if isinstance(event, h11.EndOfMessage):
                return b""

    @property
    def finished(self) -> bool:
        """Whether the last exchange ended cleanly, with nothing left over, so that another may follow."""
        done = self._http.our_state is h11.DONE and self._http.their_state is h11.DONE
        return done and not self._http.trailing_data[0]

    def stale(self) -> bool:
        """Whether the server has closed this connection while it was idle."""
        return self._stream.stale()

    def close(self) -> None:
        self._stream.close()

    async def _next_event(self) -> h11.Event:
        while True:
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError:
                if self._ended:
                    raise Broken(f"the server closed the connection {self._how_far()}") from None
                raise
            except ValueError:  # what h11 before 0.15 lets through of a length of thousands of digits
                raise Garbage("its reply is not HTTP: bad Content-Length") from None
            if not isinstance(event, type):  # h11 says by a class that it needs more
                return event
            await self._receive()

    async def _receive(self) -> None:
        data = await self._stream.receive()
        self.received_bytes += len(data)
        self._ended = not data
        self._http.receive_data(data)

    def _how_far(self) -> str:
        return f"after {self.received_bytes} bytes of its reply" if self.received_bytes else "without an answer"


BY_STATUS = {
    401: Outcome.UNAUTHORIZED,
    403: Outcome.FORBIDDEN,
    404: Outcome.NOT_FOUND,
    409: Outcome.CONFLICT,
    410: Outcome.GONE,
    429: Outcome.THROTTLED,
}
MAX_QUOTED = 300


def from_exception(error: BaseException) -> tuple[Outcome, str]:
    """The outcome of an exchange that `error` ended, and the end of its sentence."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return Outcome.TLS_REFUSED, f"its certificate is not to be trusted: {error.verify_message}"
    if isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)):  # the last: OpenSSL 1.1
        return Outcome.UNREACHABLE, "it closed the connection during the TLS handshake"
    if isinstance(error, ssl.SSLError):
        reason = str(error.reason or error.args[-1]).replace("_", " ").lower()
        return Outcome.TLS_REFUSED, f"TLS failed: {reason}"
    if isinstance(error, TimedOut):
        return Outcome.TIMED_OUT, "no whole answer in time"
    if isinstance(error, Broken):
        return Outcome.UNREACHABLE, str(error)
    if isinstance(error, h11.RemoteProtocolError):
        return Outcome.GARBAGE, f"its reply is not HTTP: {quoted(str(error))}"
    if isinstance(error, Garbage):
        return Outcome.GARBAGE, quoted(str(error))
    number = getattr(error, "errno", None)
    return Outcome.UNREACHABLE, os.strerror(number).lower() if number else str(error)


def from_reply(head: Head, body: bytes, what: str, where: str, *, write: bool) -> ApiError:
    """The failure that a reply with a status other than 2xx stands for."""
    outcome = BY_STATUS.get(head.status, _by_class(head.status))
    status = _status_object(body)
    said = str(status.get("message") or body[:MAX_QUOTED].decode("utf-8", "replace"))
    if outcome is Outcome.GARBAGE:
        said = f"a redirect to {head.headers.get('location', 'nowhere')}, which is not followed"
    return ApiError(
        outcome,
        f"{what}: {outcome.value} ({head.status} from {where}: {quoted(said)})",
        status=head.status,
        reason=str(status.get("reason") or ""),
        retry_after_seconds=_retry_after(head),
        may_be_done=write and outcome in (Outcome.SERVER_ERROR, Outcome.GARBAGE),
    )


def quoted(text: str) -> str:
    """Foreign text, fit for one line of a log."""
    line = " ".join(text.split())
    clean = "".join(character if character.isprintable() else "?" for character in line)
    return clean if len(clean) <= MAX_QUOTED else clean[:MAX_QUOTED] + "..."


def _by_class(status: int) -> Outcome:
    if status < 400:
        return Outcome.GARBAGE
    return Outcome.INVALID if status < 500 else Outcome.SERVER_ERROR


def _status_object(body: bytes) -> dict[str, Any]:
    try:
        status = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return status if isinstance(status, dict) and status.get("kind") == "Status" else {}


def _retry_after(head: Head) -> float | None:
    value = head.headers.get("retry-after", "")
    return float(value) if value.isdecimal() and len(value) < 6 else None
