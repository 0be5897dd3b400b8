"""The API on a socket: HTTP/1.1 over TLS, one asyncio protocol a connection, and watches on their way to clients."""

from __future__ import annotations

import asyncio
import json
import ssl
from abc import abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Callable, cast

import h11

from pp_hostd.embedded.api import Api, Reply, Request, Stream
from pp_hostd.embedded.history import Event
from pp_hostd.embedded.status import StatusError
from pp_hostd.embedded.store import Store
from pp_hostd.errors import UserError

_CHUNK_BYTES = 65536
_HINT = "They must be readable PEM files, and the key that of the certificate."


class TlsProtocol(asyncio.Protocol):
    """One connection; subclasses see and send plain bytes."""

    def __init__(self, tls_context: ssl.SSLContext) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = tls_context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._shaken = False
        self.hung_up = False

    @abstractmethod
    def plain_received(self, data: bytes) -> None:
        """The client has sent something."""

    def send(self, data: bytes) -> None:
        """Encrypt and send."""
        self.tls.write(data)
        self._flush()

    def hang_up(self) -> None:
        """Send nothing more, and drop what still comes until the client leaves: a reset could overtake the answer."""
        self.hung_up = True
        self.transport.write_eof()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self.hung_up:
            return
        self._incoming.write(data)
        try:
            if not self._shaken:
                self.tls.do_handshake()
                self._shaken = True
            while not (self.hung_up or self.transport.is_closing()):
                plain = self.tls.read(_CHUNK_BYTES)
                if not plain:
                    self.transport.close()  # the client has said goodbye
                    return
                self.plain_received(plain)
        except ssl.SSLWantReadError:
            self._flush()
        except ssl.SSLError:
            self._flush()  # the alert that says why
            self.transport.close()

    def eof_received(self) -> None:
        self.transport.abort()

    def _flush(self) -> None:
        self.transport.write(self._outgoing.read())


def tls_context(cert: str, key: str, client_ca: str) -> ssl.SSLContext:
    """Returns the context by which the server shows its certificate; clients show one of that authority, or none."""
    tls_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls_context.verify_mode = ssl.CERT_OPTIONAL
    try:
        tls_context.load_cert_chain(cert, key)
    except OSError as error:
        raise UserError(f"certificate {cert} and key {key} cannot be used: {error}", _HINT) from None
    try:
        tls_context.load_verify_locations(client_ca)
    except OSError as error:
        raise UserError(f"the clients' authority {client_ca} cannot be used: {error}", _HINT) from None
    return tls_context


BOOKMARK_SECONDS = 60


class Watching:
    """Events as they come, bookmarks in between, an end by the clock."""

    def __init__(self, store: Store, send: Callable[..., None], finished: Callable[[], None]) -> None:
        """`send` writes parts of an answer; `finished` is called after the last one."""
        self._store = store
        self._send_parts = send
        self._finished = finished
        self._timers: list[asyncio.TimerHandle] = []
        self._awake = False
        self.paused = False

    def start(self, stream: Stream) -> None:
        """Send the head of the answer and what there is to tell already."""
        self._stream = stream
        headers = [("content-type", "application/json"), ("cache-control", "no-cache, private")]
        self._send_parts(h11.Response(status_code=200, headers=headers))
        self._timers = [asyncio.get_running_loop().call_later(stream.timeout_seconds, self._finish)]
        if stream.bookmarks:
            # As the real one: regularly, and shortly before the end, so that a resumed watch has little to catch up.
            self._bookmark_later(min(BOOKMARK_SECONDS, max(stream.timeout_seconds - 2, 1)))
        self.pump()

    def stop(self) -> None:
        """The client is gone."""
        self._stream.subscription.close()
        for timer in self._timers:
            timer.cancel()

    def wake(self) -> None:
        """There is something to take. Once for all that happens before the loop comes round."""
        if not self._awake:
            self._awake = True
            asyncio.get_running_loop().call_soon(self.pump)

    def pump(self) -> None:
        """Send what there is, unless the client does not keep up."""
        self._awake = False
        if self.paused or self._stream.subscription.closed:
            return
        try:
            self._send(self._stream.subscription.take())
        except StatusError as cut_off:
            self._send([Event("ERROR", json.dumps(cut_off.body()))])
            self._finish()

    def _send(self, events: list[Event]) -> None:
        if events:
            lines = "".join(f'{{"type":"{event.type}","object":{event.text}}}\n' for event in events)
            self._send_parts(h11.Data(lines.encode()))

    def _bookmark_later(self, seconds: float) -> None:
        self._timers[1:] = [asyncio.get_running_loop().call_later(seconds, self._bookmark, seconds)]

    def _bookmark(self, seconds: float) -> None:
        self.pump()
        if self._stream.subscription.closed:
            return
        if not self.paused:
            self._send([self._store.bookmark(self._stream.resource)])
        self._bookmark_later(seconds)

    def _finish(self) -> None:
        self.stop()
        self._send_parts(h11.EndOfMessage())
        self._finished()


HEAD_LIMIT = 32 * 1024
BODY_LIMIT = 3 * 1024 * 1024
REQUEST_SECONDS = 30
IDLE_SECONDS = 90


class Connection(TlsProtocol):
    """One client. At any time it sends a request, or is being answered, or watches."""

    def __init__(
        self,
        api: Api,
        context: ssl.SSLContext,
        connections: set[Connection],
        idle_seconds: float,
        request_seconds: float,
    ) -> None:
        """While it lasts it is among the `connections`."""
        super().__init__(context)
        self._api = api
        self._connections = connections
        self._idle_seconds = idle_seconds
        self._request_seconds = request_seconds
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_LIMIT)
        self._idle = True
        self._bodiless = False
        self._watching: Watching | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._connections.add(self)
        self._deadline = self._abort_after(self._idle_seconds)

    def connection_lost(self, _: Exception | None) -> None:
        self._connections.discard(self)
        self._deadline.cancel()
        if self._watching:
            self._watching.stop()

    def plain_received(self, data: bytes) -> None:
        if self._watching:
            self.transport.abort()  # nobody who watches has anything to say
            return
        if self._idle:
            self._idle = False
            self._restart_deadline(self._request_seconds)
        self._http.receive_data(data)
        try:
            self._read_requests()
        except h11.RemoteProtocolError as error:
            self._refuse(error.error_status_hint, "BadRequest", str(error))

    def pause_writing(self) -> None:
        self.transport.pause_reading()  # a client that does not take answers gets no more of them
        if self._watching:
            self._watching.paused = True

    def resume_writing(self) -> None:
        self.transport.resume_reading()
        if self._watching:
            self._watching.paused = False
            self._watching.pump()

    def _read_requests(self) -> None:
        while not (self.hung_up or self.transport.is_closing()):
            event = self._http.next_event()
            if event is h11.NEED_DATA or event is h11.PAUSED:
                return
            if isinstance(event, h11.Request):
                self._request = event
                self._body = bytearray()
                self._bodiless = event.method == b"HEAD"
            elif isinstance(event, h11.Data):
                self._body += event.data
                if len(self._body) > BODY_LIMIT:
                    self._refuse(413, "RequestEntityTooLarge", f"Request entity too large: limit is {BODY_LIMIT}")
            elif isinstance(event, h11.EndOfMessage):
                self._answer()

    def _answer(self) -> None:
        method, target = self._request.method.decode(), self._request.target.decode()
        headers = {key.decode(): value.decode("latin-1") for key, value in self._request.headers}
        watching = Watching(self._api.store, self._send_parts, self._next_request)
        request = Request(method, target, headers, bytes(self._body), self.tls.getpeercert())
        answer = self._api.answer(request, watching.wake)
        if isinstance(answer, Stream):
            self._deadline.cancel()
            self._watching = watching
            watching.start(answer)
        else:
            self._send_reply(answer)
            self._next_request()

    def _next_request(self) -> None:
        """The answer is complete: wait for the next request, or part."""
        self._watching = None
        if self._http.our_state is h11.MUST_CLOSE:
            self.hang_up()
            return
        self._http.start_next_cycle()
        self._idle = True
        self._restart_deadline(self._idle_seconds)

    def _send_reply(self, reply: Reply, *extra: tuple[str, str]) -> None:
        headers = [("content-type", reply.content_type), ("content-length", str(len(reply.body))), *extra]
        head = h11.Response(status_code=reply.status, headers=headers)
        self._send_parts(head, h11.Data(b"" if self._bodiless else reply.body), h11.EndOfMessage())

    def _refuse(self, code: int, reason: str, message: str) -> None:
        """Answer a request without reading it to its end, and part."""
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = json.dumps(StatusError(code, reason, message).body()).encode()
            self._send_reply(Reply(code, body), ("connection", "close"))
        self.hang_up()

    def _send_parts(self, *parts: h11.Event) -> None:
        self.send(b"".join(self._http.send(part) or b"" for part in parts))

    def _abort_after(self, seconds: float) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(seconds, self.transport.abort)

    def _restart_deadline(self, seconds: float) -> None:
        self._deadline.cancel()
        self._deadline = self._abort_after(seconds)


@asynccontextmanager
async def serving(
    api: Api,
    context: ssl.SSLContext,
    port: int = 0,
    *,
    idle_seconds: float = IDLE_SECONDS,
    request_seconds: float = REQUEST_SECONDS,
) -> AsyncIterator[str]:
    """Listen on loopback (port 0 picks a free one) until the end of the block, and give the URL."""
    connections: set[Connection] = set()
    server = await asyncio.get_running_loop().create_server(
        lambda: Connection(api, context, connections, idle_seconds, request_seconds), "127.0.0.1", port
    )
    try:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for connection in connections:
            connection.transport.abort()
        await asyncio.sleep(0)  # that takes effect when the loop comes round
