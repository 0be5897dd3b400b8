"""Stands between hosts and their API: ends their TLS with a certificate that they trust, and may do as it likes.

It knows who speaks by the client certificate, and asks the API itself as an administrator.
"""

from __future__ import annotations

import http.client
import ssl
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from tests.harness.cluster import Cluster, token_of
from tests.harness.pki import LOOPBACK

CHUNK_BYTES = 65536

SomeGoBetween = TypeVar("SomeGoBetween", bound="GoBetween")


class Asked(NamedTuple):
    """A request of a host."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class Answer(NamedTuple):
    """A whole reply."""

    status: int
    content_type: str
    body: bytes


class GoBetween(ABC):
    """Listens on `port` of 127.0.0.1 inside of its `with`. Watches pass through untouched."""

    def __init__(self, cluster: Cluster) -> None:
        self._upstream = urlsplit(cluster.server).netloc
        self._trust = ssl.create_default_context(cadata=cluster.authority.certificate_pem.decode())
        self._server = _Server(self, _context(cluster))
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever)

    @abstractmethod
    def answer(self, user: str, asked: Asked) -> Answer | None:
        """Returns the answer to this user, in a thread of each connection; None ends the connection without a word."""

    def ask(self, asked: Asked) -> Answer:
        """Returns the API's answer to this request."""
        upstream = self.connect()
        try:
            upstream.request(asked.method, asked.path, asked.body, asked.headers)
            answer = upstream.getresponse()
            return Answer(answer.status, answer.headers["Content-Type"], answer.read())
        finally:
            upstream.close()

    def connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self._upstream, context=self._trust, timeout=60)

    def __enter__(self: SomeGoBetween) -> SomeGoBetween:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        assert not self._server.mistakes, f"the go-between dropped connections by mistake: {self._server.mistakes!r}"


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, between: GoBetween, context: ssl.SSLContext) -> None:
        super().__init__(("127.0.0.1", 0), _Conversation)
        self.between = between
        self.mistakes: list[BaseException | None] = []
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def handle_error(self, *_: object) -> None:
        """Hosts that die leave in the middle of a sentence, and so do APIs; anything else is a mistake in a test."""
        error = sys.exc_info()[1]
        if not isinstance(error, (OSError, http.client.HTTPException)):
            self.mistakes.append(error)


class _Conversation(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    connection: ssl.SSLSocket

    def _pass_on(self) -> None:
        headers = {"Authorization": f"Bearer {token_of('admin')}"}
        headers.update({name: self.headers[name] for name in ("Content-Type", "Accept") if name in self.headers})
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        asked = Asked(self.command, self.path, headers, body)
        if "watch=" in self.path:
            self._stream(asked)
            return
        answer = self.server.between.answer(self._user(), asked)
        if answer is None:
            self.close_connection = True
            return
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    do_GET = do_PATCH = do_POST = do_PUT = do_DELETE = _pass_on  # noqa: N815  (http.server's names)

    def _stream(self, asked: Asked) -> None:
        upstream = self.server.between.connect()
        try:
            upstream.request(asked.method, asked.path, asked.body, asked.headers)
            answer = upstream.getresponse()
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.headers["Content-Type"])
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            while data := answer.read1(CHUNK_BYTES):
                self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
            self.wfile.write(b"0\r\n\r\n")
        finally:
            upstream.close()

    def _user(self) -> str:
        certificate: Any = self.connection.getpeercert()
        subject = dict(field for part in certificate["subject"] for field in part)
        return str(subject["commonName"])

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


def _context(cluster: Cluster) -> ssl.SSLContext:
    issued = cluster.authority.issue("go-between", sans=LOOPBACK)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=cluster.authority.certificate_pem.decode())
    context.verify_mode = ssl.CERT_REQUIRED
    path = cluster.directory / "go-between.pem"
    path.write_bytes(issued.cert_pem + issued.key_pem)
    context.load_cert_chain(path)
    return context
