"""One HTTP/1.1 connection to an API server: a request, the head of its reply, and the body piece by piece."""

from __future__ import annotations

import ssl

import h11

from pp_hostd.frozen import frozen
from pp_hostd.kube.outcome import Garbage
from pp_hostd.kube.stream import Stream
from pp_hostd.model.endpoint import Endpoint

MAX_HEAD_BYTES = 65536


class Broken(OSError):
    """The connection ended before the reply did."""


@frozen
class Head:
    """What a reply says before its body."""

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

    async def request(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Head:
        """Send a whole request and read the head of the reply."""
        if self._http.our_state is h11.DONE:
            self._http.start_next_cycle()
        self.request_sent, self.received_bytes = False, 0
        lines = [("Host", self.endpoint.authority), *headers.items(), ("Content-Length", str(len(body)))]
        parts = [
            self._http.send(h11.Request(method=method, target=self.endpoint.prefix + target, headers=lines)),
            self._http.send(h11.Data(data=body)) if body else b"",
            self._http.send(h11.EndOfMessage()),
        ]
        self.request_sent = True  # from here on the server may have it, whatever send() says
        await self._stream.send(b"".join(part for part in parts if part))
        while True:
            event = await self._next_event()
            if isinstance(event, h11.Response):
                return Head(event.status_code, {n.decode(): v.decode("latin-1") for n, v in event.headers})

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
            if isinstance(event, h11.Event):
                return event
            data = await self._stream.receive()
            self.received_bytes += len(data)
            self._ended = not data
            self._http.receive_data(data)

    def _how_far(self) -> str:
        return f"after {self.received_bytes} bytes of its reply" if self.received_bytes else "without an answer"
