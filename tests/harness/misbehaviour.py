"""Everything a server can do wrong, by name. A behaviour is a row of steps: bytes are sent, anything else is done."""

from __future__ import annotations

import contextlib
import itertools
import json
import socket
import ssl
import struct
from collections.abc import Iterable
from typing import Any, Callable, NoReturn, Union

CHUNK = b" " * 65536
HUGE_BYTES = 100 * 1024 * 1024
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


class Client:
    """One connection as the behaviours see it, and the request that is being answered."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext) -> None:
        self.sock, self.context = sock, context
        self.method, self.target, self.body = "", "", b""


Step = Union[bytes, Callable[[Client], None]]
Json = dict[str, Any]


class Over(Exception):
    """The client has gone, or is to be left."""


def behave(client: Client, steps: Iterable[Step]) -> None:
    for step in steps:
        if isinstance(step, bytes):
            client.sock.sendall(step)
        else:
            step(client)


def hold(client: Client, seconds: float | None = None) -> None:
    """Say nothing for so long, or for as long as the client stays."""
    client.sock.settimeout(seconds)
    with contextlib.suppress(socket.timeout):
        while client.sock.recv(65536):
            pass
        raise Over
    client.sock.settimeout(None)


def leave(_client: Client) -> NoReturn:
    raise Over


def reset(client: Client) -> NoReturn:
    client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    raise Over


def listen(client: Client) -> None:
    """Take what the client says next."""
    client.sock.recv(65536)


def present_certificate(client: Client) -> None:
    """Our side of the handshake, and no ear for the client's."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    incoming.write(client.sock.recv(65536))
    with contextlib.suppress(ssl.SSLWantReadError):
        client.context.wrap_bio(incoming, outgoing, server_side=True).do_handshake()
    client.sock.sendall(outgoing.read())


def trickle(data: bytes, size: int = 1) -> Step:
    """A byte a second, or so many at once."""

    def step(client: Client) -> None:
        for start in range(0, len(data), size):
            client.sock.sendall(data[start : start + size])
            hold(client, 1)

    return step


def repeat(data: bytes, times: int | None = None) -> Step:
    """The same over and over, as fast as the client takes it."""

    def step(client: Client) -> None:
        for _ in itertools.count() if times is None else range(times):
            client.sock.sendall(data)

    return step


def reply(body: bytes | Json, status: str = "200 OK", *headers: str) -> bytes:
    """A whole and proper answer."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status}", "Content-Type: application/json", f"Content-Length: {len(data)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + data


def refusal(code: int, *headers: str, reason: str = "") -> bytes:
    why = reason or f"Because{code}"
    status = {"kind": "Status", "apiVersion": "v1", "code": code, "reason": why, "message": "as you asked"}
    return reply(status, f"{code} Refused", *headers)


def node(name: str, version: object = 1) -> Json:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "resourceVersion": str(version)}}


def node_list(items: Any, more: str = "") -> Json:
    metadata = {"resourceVersion": "10", "continue": more}
    return {"apiVersion": "v1", "kind": "NodeList", "metadata": metadata, "items": items}


def good(client: Client) -> None:
    """Answers requests about nodes as an API server would."""
    name = client.target.partition("?")[0].rpartition("/")[2]
    if client.method == "POST":
        name = json.loads(client.body)["metadata"]["name"]
    client.sock.sendall(reply(node_list([node("first")]) if name == "nodes" else node(name)))


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def event(kind: str, thing: Any) -> bytes:
    return json.dumps({"type": kind, "object": thing}).encode() + b"\n"


def added(version: int) -> bytes:
    return event("ADDED", node(f"node-{version}", version))


def flood(client: Client) -> None:
    """The versions 1 to 100,000, as fast as the client takes them."""
    hundreds = [chunk(b"".join(map(added, range(first, first + 100)))) for first in range(1, 100_000, 100)]
    client.sock.sendall(b"".join(hundreds))


def watch(*events: bytes, then: Iterable[Step] = (b"0\r\n\r\n",)) -> list[Step]:
    """A watch that has begun with these events, then goes on; unless told how, the server ends it."""
    return [CHUNKED, *map(chunk, events), *then]


GONE = event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"})
ILL = event("ERROR", {"kind": "Status", "code": 500, "reason": "InternalError", "message": "etcd\nis ill " * 1000})
HALF_AN_EVENT = added(12)[:40]

BLACK_HOLE = "black hole"  # not even a SYN is answered; the listener sees to that

BEFORE_TLS: dict[str, list[Step]] = {
    BLACK_HOLE: [],
    "silent before TLS": [hold],
    "trickled TLS": [trickle(b"\x16\x03\x03\x7f\xff" + CHUNK)],
    "not TLS": [b"SSH-2.0-OpenSSH_9.2\r\n", hold],
    "reset after the certificate": [present_certificate, reset],
    "plain HTTP": [listen, refusal(400), leave],
    "closed in the handshake": [listen, leave],
    "reset in the handshake": [listen, reset],
}

AFTER_TLS: dict[str, list[Step]] = {
    "good": [good],
    "good, then closed": [good, leave],
    "good, then closed at the next request": [good, listen, leave],
    "good, then closed a moment after the next request": [good, listen, lambda client: hold(client, 0.2), leave],
    "good, then chatter": [good, repeat(CHUNK)],
    "silent": [hold],
    "trickled head": [trickle(HEAD)],
    "trickled body": [HEAD, b"Content-Length: 1000\r\n\r\n", trickle(CHUNK)],
    "not HTTP": [b"\x00\xffSSH-2.0-OpenSSH_9.2\r\n\r\n", hold],
    "length of thousands of digits": [HEAD, b"Content-Length: " + b"1" * 5000 + b"\r\n\r\n", hold],
    "head without end": [HEAD, repeat(b"X-Filler: " + b"x" * 1000 + b"\r\n")],
    "endless 1xx": [repeat(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 1000)],
    "switching protocols": [b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", hold],
    "no answer": [leave],
    "half a head": [HEAD, leave],
    "half a body": [HEAD, b'Content-Length: 1000\r\n\r\n{"apiVersion', leave],
    "length too short": [HEAD, b"Content-Length: 5\r\n\r\n", json.dumps(node("worker")).encode()],
    "two lengths": [HEAD, b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n{}", hold],
    "100 MB": [HEAD, b"Content-Length: %d\r\n\r\n" % HUGE_BYTES, repeat(CHUNK, HUGE_BYTES // len(CHUNK))],
    "100 MB in chunks": [CHUNKED, repeat(chunk(CHUNK), HUGE_BYTES // len(CHUNK)), b"0\r\n\r\n"],
    "100 MB until closed": [HEAD, b"\r\n", repeat(CHUNK, HUGE_BYTES // len(CHUNK)), leave],
    "tiny chunks": [CHUNKED, repeat(chunk(b"  ") * 10000)],
    "redirect": [reply(b"", "302 Found", "Location: https://elsewhere.example/")],
    "reset": [reset],
    "reset midway": [HEAD, b"Content-Length: 1000\r\n\r\n{", reset],
    "closed in a chunk": [CHUNKED, b"ff\r\n{", leave],
    "not a chunk": [CHUNKED, b"what?\r\n", hold],
    "not JSON": [reply(b"<html>It works!</html>")],
    "not UTF-8": [reply(b'{"kind": "\xff"}')],
    "nothing": [reply(b"")],
    "no object": [reply(b"[]")],
    "deep nesting": [reply(b"[" * 1_000_000)],
    "wrong kind": [reply({**node("worker"), "kind": "ConfigMap"})],
    "long-winded kind": [reply({**node("worker"), "kind": "Con\nfig\nMap " * 10000})],
    "other name": [reply(node("somebody-else"))],
    "other namespace": [reply({**node("worker"), "metadata": {"name": "worker", "namespace": "elsewhere"}})],
    "metadata is no object": [reply({**node("worker"), "metadata": []})],
    "items is no list": [reply(node_list({}))],
    "items are no objects": [reply(node_list([1]))],
    "list without end": [reply(node_list([], more="again"))],
    **{str(code): [refusal(code)] for code in (400, 401, 403, 404, 409, 410, 422, 500, 503)},
    "missing": [refusal(404, reason="NotFound")],
    "429": [refusal(429, "Retry-After: 1")],
    "429 for a day": [refusal(429, "Retry-After: 86400")],
    "500 of 100 MB": [b"HTTP/1.1 500 Oops\r\nContent-Length: %d\r\n\r\n" % HUGE_BYTES, repeat(CHUNK)],
    "403 in HTML": [reply(b"<html>\nno\x07</html>" * 1000, "403 Forbidden")],
    "watch of nothing": watch(),
    "watch of one": watch(added(11)),
    "watch of a bookmark": watch(event("BOOKMARK", node("", 99))),
    "watch that stalls": watch(added(11), then=[hold]),
    "watch that trickles": watch(added(11), then=[trickle(chunk(b"x") * 1000, len(chunk(b"x")))]),
    "watch that breaks in a line": watch(added(11), then=[chunk(HALF_AN_EVENT), leave]),
    "watch that ends in a line": watch(added(11), HALF_AN_EVENT),
    "watch of an unknown type": watch(event("RENAMED", node("worker"))),
    "watch of garbage": watch(b"garbage\n"),
    "watch of another kind": watch(event("ADDED", {**node("worker"), "kind": "Pod"})),
    "watch of no version": watch(event("ADDED", {**node("worker"), "metadata": {"name": "worker"}})),
    "watch of no object": watch(event("ADDED", "worker")),
    "watch that is gone": watch(added(11), GONE),
    "watch that fails": watch(ILL),
    "watch of an endless line": [CHUNKED, repeat(chunk(b"x" * 65536))],
    "watch of 100,000": watch(then=[flood, hold]),
}
