"""A liar between hosts and their API: ends their TLS with a certificate that they trust, and rewrites what it likes.

It knows a host by its client certificate, and asks the API itself as an administrator.
"""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable
from urllib.parse import urlsplit

from pp_hostd.kube.resources import NODES
from tests.harness.cluster import Cluster, token_of
from tests.harness.pki import LOOPBACK

Json = dict[str, Any]
Lie = Callable[[Json], bytes]
"""From the object that the API shows to what the host gets instead."""
CHUNK_BYTES = 65536


class LyingApi:
    """`lies` says, by the name of a host, what it gets for its Node; whoever is not in there is told the truth."""

    def __init__(self, cluster: Cluster) -> None:
        self.lies: dict[str, Lie] = {}
        self.upstream = urlsplit(cluster.server).netloc
        self.trust = ssl.create_default_context(cadata=cluster.authority.certificate_pem.decode())
        self._server = _Server(self, _context(cluster))
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever)

    def reply(self, host: str, method: str, path: str, body: bytes) -> bytes:
        """What this host gets."""
        lie = self.lies.get(host)
        told = method == "GET" and path == NODES.path(name=host)
        return lie(json.loads(body)) if lie is not None and told else body

    def __enter__(self) -> LyingApi:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, liar: LyingApi, context: ssl.SSLContext) -> None:
        super().__init__(("127.0.0.1", 0), _Conversation)
        self.liar = liar
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def handle_error(self, *_: object) -> None:
        """Hosts that die leave in the middle of a sentence."""


class _Conversation(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    connection: ssl.SSLSocket

    def _pass_on(self) -> None:
        liar = self.server.liar
        upstream = http.client.HTTPSConnection(liar.upstream, context=liar.trust, timeout=60)
        try:
            headers = {"Authorization": f"Bearer {token_of('admin')}"}
            headers.update({name: self.headers[name] for name in ("Content-Type", "Accept") if name in self.headers})
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            upstream.request(self.command, self.path, body, headers)
            self._answer(upstream.getresponse())
        finally:
            upstream.close()

    do_GET = do_PATCH = do_POST = _pass_on  # noqa: N815  (http.server's names)

    def _answer(self, answer: http.client.HTTPResponse) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.headers["Content-Type"])
        if "watch=" in self.path:
            self._stream(answer)
            return
        body = self.server.liar.reply(self._host(), self.command, self.path, answer.read())
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, answer: http.client.HTTPResponse) -> None:
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while data := answer.read1(CHUNK_BYTES):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.write(b"0\r\n\r\n")

    def _host(self) -> str:
        certificate: Any = self.connection.getpeercert()
        subject = dict(field for part in certificate["subject"] for field in part)
        return str(subject["commonName"]).rpartition(":")[2]

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


def _context(cluster: Cluster) -> ssl.SSLContext:
    issued = cluster.authority.issue("liar", sans=LOOPBACK)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=cluster.authority.certificate_pem.decode())
    context.verify_mode = ssl.CERT_REQUIRED
    path = cluster.directory / "liar.pem"
    path.write_bytes(issued.cert_pem + issued.key_pem)
    context.load_cert_chain(path)
    return context
