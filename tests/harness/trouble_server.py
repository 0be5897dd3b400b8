"""The process behind TroubleServer: listens where it is told to, and behaves as badly as it is told to.

It speaks JSON lines with whoever started it, and ends when that pipe does.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import socket
import ssl
import sys
import threading
from typing import Any

from tests.harness.misbehaviour import AFTER_TLS, BEFORE_TLS, BLACK_HOLE, Client, Json, Over, behave, leave


class Listener:
    """A port with a script: each request (before TLS: each connection) gets the next behaviour, the last for ever."""

    def __init__(self, host: str, script: list[str], context: ssl.SSLContext) -> None:
        black_hole = script == [BLACK_HOLE]
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, 0), family=family, backlog=0 if black_hole else 1024)
        self.port: int = self._socket.getsockname()[1]
        self._script, self._context = script, context
        self._turns = itertools.count()
        self.connections, self.requests = 0, list[Json]()
        if black_hole:
            self._fillers = [self._fill() for _ in range(4)]
        else:
            threading.Thread(target=self._accept, daemon=True).start()

    def _fill(self) -> socket.socket:
        """Nobody accepts, so the queue is soon full, and then the kernel answers no SYN any more."""
        filler = socket.socket(self._socket.family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        filler.connect_ex(self._socket.getsockname())
        return filler

    def _accept(self) -> None:
        while True:
            sock, _ = self._socket.accept()
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connections += 1
            threading.Thread(target=self._serve, args=(sock, self.connections), daemon=True).start()

    def _serve(self, sock: socket.socket, number: int) -> None:
        with sock, contextlib.suppress(OSError, Over):
            if self._script[0] in BEFORE_TLS:
                behave(Client(sock, self._context), BEFORE_TLS[self._next()])
                return
            with self._context.wrap_socket(sock, server_side=True) as tls:
                client = Client(tls, self._context)
                while True:
                    self._read_request(client, tls, number)
                    behave(client, AFTER_TLS[self._next()])

    def _next(self) -> str:
        return self._script[min(next(self._turns), len(self._script) - 1)]

    def _read_request(self, client: Client, tls: ssl.SSLSocket, number: int) -> None:
        data = b""
        while b"\r\n\r\n" not in data:
            data += tls.recv(65536) or leave(client)
        head, _, client.body = data.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        while len(client.body) < int(headers["content-length"]):
            client.body += tls.recv(65536) or leave(client)
        client.method, client.target, _version = first.split(" ")
        certificate: Any = tls.getpeercert() or {}
        subject = dict(field for part in certificate.get("subject", ()) for field in part)
        self.requests.append(
            {
                "connection": number,
                "method": client.method,
                "target": client.target,
                "token": headers.get("authorization", "").partition(" ")[2],
                "user": subject.get("commonName", ""),
            }
        )


def _context(authority: str, certificate: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_verify_locations(cadata=authority)
    descriptor = os.memfd_create("server")
    os.write(descriptor, certificate.encode())
    context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    os.close(descriptor)
    return context


def main() -> None:
    setup = json.loads(sys.stdin.readline())
    contexts = {name: _context(setup["authority"], pem) for name, pem in setup["certificates"].items()}
    listeners: dict[int, Listener] = {}
    for line in sys.stdin:
        asked = json.loads(line)
        if "script" in asked:
            listener = Listener(asked["host"], asked["script"], contexts[asked["certificate"]])
            listeners[listener.port] = listener
            answer: Any = listener.port
        else:
            seen = listeners[asked["seen"]]
            answer = {"connections": seen.connections, "requests": seen.requests}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
    os._exit(0)  # whatever the threads are busy with
