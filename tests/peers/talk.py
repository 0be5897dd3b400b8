"""A peer port on loopback, questions to it, and raw conversations with it."""

from __future__ import annotations

import asyncio
import itertools
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

from pp_hostd.agent.peer_server import PeerServer, Read
from pp_hostd.agent.witness import ReadOutcome, Witness
from pp_hostd.model.condemnation import NotRequested
from pp_hostd.model.machine import Machine
from pp_hostd.peers.message import Exchange, MachineReference, Question
from pp_hostd.peers.signing import Keyring
from pp_hostd.service.http_port import LIMITS, HttpPort, Limits

KEYRING = Keyring((b"k" * 32,))
ABOUT = MachineReference("metal", "worker-1", "uid-1")
QUESTION = Question(ABOUT, "worker-1")
_nonces = itertools.count(1)


def exchange(question: Question = QUESTION, asked_of: str = "peer") -> Exchange:
    return Exchange(question, asked_of, f"nonce-{next(_nonces)}")


def request(asked: Exchange, keyring: Keyring = KEYRING) -> bytes:
    """The question as it goes over the wire."""
    lines = [b"%b: %b" % header for header in asked.headers(keyring)]
    return b"\r\n".join([f"GET {asked.question.about.path} HTTP/1.1".encode(), b"Host: peer", *lines, b"", b""])


async def healthy_read(about: MachineReference, _seconds: float) -> ReadOutcome:
    return Machine(about.namespace, about.name, about.uid, "1", NotRequested(0), None)


@dataclass(frozen=True)
class Neighbour:
    """A peer to ask."""

    name: str = "peer"
    address: str = "127.0.0.1"


@dataclass(frozen=True)
class Listening:
    number: int
    server: PeerServer
    http: HttpPort
    witness: Witness


@asynccontextmanager
async def peer_port(
    read: Read = healthy_read,
    *,
    keyring: Keyring = KEYRING,
    limits: Limits = LIMITS,
    address: str = "127.0.0.1",
    read_seconds: float = 1.5,
    machines: str = "openshift",
) -> AsyncIterator[Listening]:
    """The port of the node `peer`, whose agent has listed the condemned."""
    witness = Witness("token")
    witness.listed()
    server = PeerServer("peer", keyring, witness, read, time.monotonic, read_seconds, machines)
    http = HttpPort(server.respond, limits)
    number = await http.listen(address, 0)
    try:
        yield Listening(number, server, http, witness)
    finally:
        await http.close()


async def say(number: int, *pieces: bytes, end: bool = False) -> bytes:
    """Everything that the port says to these pieces, one after the other, until it closes; "" stands for a reset."""
    reader, writer = await asyncio.open_connection("127.0.0.1", number)
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        if end:
            writer.write_eof()
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.transport.abort()
        await asyncio.sleep(0)


async def one_reply(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Status and body of the next reply on a connection that stays open."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0])
    return int(head.split(b" ")[1]), await reader.readexactly(length)


FILLING = 4
"""More connections than an accept queue of the least length takes."""


@contextmanager
def silent_port(address: str = "127.0.0.1") -> Iterator[int]:
    """A port whose accept queue is full for good: the kernel drops whatever connection is tried next."""
    with socket.socket() as listener:
        listener.bind((address, 0))
        listener.listen(0)
        number = listener.getsockname()[1]
        filling = [socket.socket() for _ in range(FILLING)]
        try:
            for each in filling:
                each.setblocking(False)
                each.connect_ex((address, number))
            yield number
        finally:
            for each in filling:
                each.close()


@contextmanager
def refusing_port(address: str = "127.0.0.1") -> Iterator[int]:
    """A port that is taken and where nobody listens: the kernel refuses connections."""
    with socket.socket() as bound:
        bound.bind((address, 0))
        yield bound.getsockname()[1]
