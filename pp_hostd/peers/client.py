"""Asking one peer, and knocking at its door: a fresh connection, one question, and the reply within the deadline."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from typing import Protocol

import h11

from pp_hostd.frozen import frozen
from pp_hostd.kube.connection import Broken, from_exception
from pp_hostd.kube.deadline import Deadline, TimedOut
from pp_hostd.kube.outcome import Garbage
from pp_hostd.model.answer import Answer
from pp_hostd.model.endpoint import is_address
from pp_hostd.model.record import Unreadable
from pp_hostd.peers.knock import Call, Knock, Knocked, Reach, Reached, parse_knocked, parse_reached
from pp_hostd.peers.message import Exchange, Question, parse_reply
from pp_hostd.peers.signing import Keyring

CHUNK_BYTES = 4096
MAX_HEAD_BYTES = 8192
MAX_REPLY_BYTES = 32768
Reply = tuple[int, dict[bytes, bytes], bytes]


class Peer(Protocol):
    """A peer to ask: a roster's Member is one."""

    @property
    def name(self) -> str: ...
    @property
    def address(self) -> str: ...


@frozen
class Silence:
    """The peer gave no answer that can be relied on, and why."""

    reason: str


async def ask(
    peer: Peer, port: int, question: Question, keyring: Keyring, *, deadline_seconds: float
) -> Answer | Silence:
    """The peer's answer. Connect, question and answer together end by the deadline; nothing is raised."""
    if not is_address(peer.address):  # asyncio would look a name up, in a thread and without a deadline
        return Silence(f"{peer.address!a} is not an address")
    exchange = Exchange(question, peer.name, os.urandom(16).hex())
    try:
        with Deadline(deadline_seconds):
            path, lines = exchange.question.about.path, exchange.headers(keyring)
            status, headers, body = await exchanged(peer.address, port, path, lines)
    except (TimedOut, OSError, h11.RemoteProtocolError, Garbage) as error:
        error.__traceback__ = None  # its frames hold asyncio's future, which holds the error: a cycle
        return Silence(from_exception(error)[1])
    answer = parse_reply(exchange, status, headers, body, keyring)
    return Silence(str(answer)) if isinstance(answer, Unreadable) else answer


async def exchanged(address: str, port: int, target: str, headers: list[tuple[bytes, bytes]]) -> Reply:
    """One request and its reply, over a connection of their own. The caller keeps a deadline."""
    loop = asyncio.get_running_loop()
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as sock:
        await loop.sock_connect(sock, (address, port))
        http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)
        host = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        lines = [(b"Host", host.encode()), (b"Connection", b"close"), *headers]
        request = h11.Request(method="GET", target=target, headers=lines)
        await loop.sock_sendall(sock, (http.send(request) or b"") + (http.send(h11.EndOfMessage()) or b""))
        return await _reply(loop, sock, http)


async def _reply(loop: asyncio.AbstractEventLoop, sock: socket.socket, http: h11.Connection) -> Reply:
    head: h11.Response | None = None
    body, received_bytes = bytearray(), 0
    while True:
        try:
            event = http.next_event()
        except ValueError:  # h11 before 0.15 lets a length of thousands of digits through
            raise Garbage("its reply is not HTTP: bad Content-Length") from None
        if event is h11.NEED_DATA:
            data = await loop.sock_recv(sock, CHUNK_BYTES)
            if not data:
                raise Broken("it closed the connection before its answer was whole")
            received_bytes += len(data)
            if received_bytes > MAX_REPLY_BYTES:
                raise Garbage(f"its reply is larger than {MAX_REPLY_BYTES} bytes, the most that is taken")
            http.receive_data(data)
        elif isinstance(event, h11.Response):
            head = event
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage) and head is not None:
            return head.status_code, dict(head.headers), bytes(body)
        elif event is h11.PAUSED:
            raise Garbage("it wants to speak something else than HTTP")


@frozen
class Heard:
    """A peer's answer, and this host's clock when it knocked and when the answer had come."""

    knocked: Knocked
    sent_wallclock: float
    received_wallclock: float


async def knock_at(peer: Peer, port: int, me: str, keyring: Keyring, *, deadline_seconds: float) -> Heard | Silence:
    """Returns the peer's answer to a knock, or Silence. Ends by the deadline; raises nothing."""
    knock = Knock(me, peer.name, os.urandom(16).hex())
    sent_wallclock = time.time()
    reply = await _called(peer.address, port, knock, keyring, deadline_seconds)
    received_wallclock = time.time()
    if isinstance(reply, Silence):
        return reply
    knocked = parse_knocked(knock, *reply, keyring)
    if isinstance(knocked, Unreadable):
        return Silence(str(knocked))
    return Heard(knocked, sent_wallclock, received_wallclock)


async def ask_reach(
    peer: Peer, port: int, node: str, me: str, keyring: Keyring, *, deadline_seconds: float
) -> Reached | Silence:
    """Returns the peer's finding whether it reaches that node, or Silence. Ends by the deadline; raises nothing.

    The peer tries for up to reachability.SILENT_AFTER_SECONDS, and the deadline must leave it more than that.
    """
    reach = Reach(me, peer.name, os.urandom(16).hex(), node)
    reply = await _called(peer.address, port, reach, keyring, deadline_seconds)
    if isinstance(reply, Silence):
        return reply
    reached = parse_reached(reach, *reply, keyring)
    return Silence(str(reached)) if isinstance(reached, Unreadable) else reached


async def _called(address: str, port: int, call: Call, keyring: Keyring, deadline_seconds: float) -> Reply | Silence:
    if not is_address(address):
        return Silence(f"{address!a} is not an address")
    try:
        with Deadline(deadline_seconds):
            return await exchanged(address, port, call.path, call.headers(keyring))
    except (TimedOut, OSError, h11.RemoteProtocolError, Garbage) as error:
        error.__traceback__ = None  # its frames hold asyncio's future, which holds the error: a cycle
        return Silence(from_exception(error)[1])
