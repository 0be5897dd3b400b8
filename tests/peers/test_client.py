"""Asking a peer over real sockets: whatever is at the other end, there is an answer or a silence in time."""

from __future__ import annotations

import asyncio
import gc
import socket
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from types import FrameType
from typing import Callable

import pytest

from pp_hostd.model.answer import Answer, Health
from pp_hostd.peers import client
from pp_hostd.peers.client import Silence, ask
from pp_hostd.peers.message import NONCE, Exchange, MachineReference, Question
from pp_hostd.peers.signing import UNSIGNED, Keyring
from tests.peers.talk import ABOUT, KEYRING, QUESTION, Neighbour, peer_port

NEW = Keyring((b"n" * 32,))
Conversation = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def put(number: int, *, keyring: Keyring = KEYRING, seconds: float = 5, peer: Neighbour | None = None) -> object:
    return await ask(peer or Neighbour(), number, QUESTION, keyring, deadline_seconds=seconds)


@asynccontextmanager
async def impostor(conversation: Conversation) -> AsyncIterator[int]:
    """A server that does what it likes with each connection, and then closes it."""

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await conversation(reader, writer)
        except ConnectionError:
            pass
        finally:
            writer.transport.abort()

    server = await asyncio.start_server(converse, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
    await asyncio.sleep(0)


def says(*pieces: bytes, pause_seconds: float = 0) -> Conversation:
    async def conversation(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause_seconds)

    return conversation


def answering(change: Callable[[Exchange], tuple[Exchange, Keyring, str]]) -> Conversation:
    """Answers "healthy" for the exchange, with the keys and by the name that `change` gives for the real one."""

    async def conversation(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        nonce = head.partition(NONCE + b": ")[2].partition(b"\r\n")[0].decode()
        exchange, keyring, name = change(Exchange(QUESTION, "peer", nonce))
        about = exchange.question.about.machine_key
        answer = Answer(Health.HEALTHY, None, "t.0", exchange.nonce, name, exchange.question.asked_by, about)
        body = answer.render().encode()
        signature = exchange.answer_signature(body, keyring).encode()
        head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nPP-Hostd-Signature: %b\r\n\r\n" % (len(body), signature)
        writer.write(head + body)
        await writer.drain()

    return conversation


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
async def test_a_peer_answers_over_ipv4_and_ipv6(address: str) -> None:
    async with peer_port(address="") as port:
        answer = await put(port.number, peer=Neighbour(address=address))
    assert isinstance(answer, Answer)
    assert (answer.health, answer.answered_by, answer.asked_by) == (Health.HEALTHY, "peer", "worker-1")
    assert answer.about == ABOUT.machine_key


async def test_a_node_without_a_machine_is_asked_about_too() -> None:
    async with peer_port(machines="node") as port:
        question = Question(MachineReference(None, "worker-1", "a/b"), "worker-1")
        answer = await ask(Neighbour(), port.number, question, KEYRING, deadline_seconds=5)
    assert isinstance(answer, Answer) and answer.about == "worker-1"


async def test_without_authentication_nothing_is_signed() -> None:
    async with peer_port(keyring=UNSIGNED) as port:
        assert isinstance(await put(port.number, keyring=UNSIGNED), Answer)
        assert isinstance(await put(port.number), Silence)  # who wants a signature does not believe it


async def test_a_key_is_changed_without_a_silence() -> None:
    old, new = KEYRING.keys, NEW.keys
    stages = [Keyring(old), Keyring(old + new), Keyring(new + old), Keyring(new)]
    for before, after in zip(stages, stages[1:]):  # some hosts are a step ahead of others
        async with peer_port(keyring=before) as port:
            assert isinstance(await put(port.number, keyring=after), Answer)
            port.server.keyring = after
            assert isinstance(await put(port.number, keyring=before), Answer)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda real: (real, NEW, "peer"), "signature"),
        (lambda real: (real, UNSIGNED, "peer"), "signature"),
        (lambda _: (Exchange(QUESTION, "peer", "yesterday"), KEYRING, "peer"), "signature"),
        (lambda real: (Exchange(QUESTION, "other-peer", real.nonce), KEYRING, "other-peer"), "signature"),
        (lambda real: (real, KEYRING, "other-peer"), "another question"),
        (
            lambda real: (
                Exchange(Question(MachineReference("metal", "worker-2", "uid-1"), "worker-1"), "peer", real.nonce),
                KEYRING,
                "peer",
            ),
            "signature",
        ),
    ],
    ids=["forged", "unsigned", "replayed", "by another peer", "under another name", "for another machine"],
)
async def test_an_answer_that_is_not_this_peers_to_this_question_is_silence(
    change: Callable[[Exchange], tuple[Exchange, Keyring, str]], reason: str
) -> None:
    async with impostor(answering(change)) as number:
        silence = await put(number)
    assert isinstance(silence, Silence) and reason in silence.reason


async def test_the_impostor_itself_could_be_believed() -> None:
    async with impostor(answering(lambda real: (real, KEYRING, "peer"))) as number:
        assert isinstance(await put(number), Answer)


OK = b"HTTP/1.1 200 OK\r\n"
TROUBLE = {
    "closes at once": says(),
    "not HTTP": says(b"SSH-2.0-OpenSSH\r\n\r\n"),
    "half a head": says(OK + b"Content-Le"),
    "a length of thousands of digits": says(OK + b"Content-Length: " + b"1" * 5000 + b"\r\n\r\n"),
    "half a body": says(OK + b"Content-Length: 100\r\n\r\nhalf"),
    "no length": says(OK + b"\r\nnothing"),
    "endless head": says(OK, *[b"X: %b\r\n" % (b"y" * 1000)] * 100),
    "endless body": says(OK + b"Content-Length: 1000000\r\n\r\n", *[b"y" * 10000] * 100),
    "endless interim replies": says(*[b"HTTP/1.1 100 Continue\r\n\r\n" * 100] * 100),
    "bad chunks": says(OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"),
    "not JSON": says(OK + b"Content-Length: 4\r\n\r\nnope"),
    "another status": says(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\nContent-Length: 0\r\n\r\n"),
    "switching protocols": says(b"HTTP/1.1 101 Switching Protocols\r\n\r\n" + b"\x00" * 100),
}


@pytest.mark.parametrize("name", TROUBLE)
async def test_a_server_that_is_no_peer_is_silent_and_leaves_no_cycles(name: str) -> None:
    async with impostor(TROUBLE[name]) as number:
        for keyring in (KEYRING, UNSIGNED):
            silence = await put(number, keyring=keyring)
            assert isinstance(silence, Silence) and silence.reason
        await no_cycles(lambda: put(number))


@pytest.mark.parametrize("name", ["endless body", "endless interim replies"])
async def test_a_reply_is_not_read_past_its_limit(name: str) -> None:
    async with impostor(TROUBLE[name]) as number:
        silence = await put(number)
    assert isinstance(silence, Silence) and "larger than 32768 bytes" in silence.reason


@pytest.mark.parametrize(
    "conversation",
    [says(b"", pause_seconds=60), says(*[b"X"] * 600, pause_seconds=0.1)],
    ids=["never speaks", "trickles"],
)
async def test_a_slow_server_is_silent_at_the_deadline_and_leaves_no_cycles(conversation: Conversation) -> None:
    async with impostor(conversation) as number:
        begun = time.monotonic()
        assert await put(number, seconds=0.3) == Silence("no whole answer in time")
        assert 0.25 < time.monotonic() - begun < 5
        await no_cycles(lambda: put(number, seconds=0.1))
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()


async def test_a_refused_connection_is_silence_and_leaves_no_cycles() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        number = bound.getsockname()[1]
        assert await put(number) == Silence("connection refused")
        await no_cycles(lambda: put(number))


async def test_a_name_is_never_looked_up() -> None:
    assert await put(80, peer=Neighbour(address="localhost")) == Silence("'localhost' is not an address")


async def no_cycles(fail: Callable[[], Awaitable[object]]) -> None:
    """Checks that a failure leaves no cycles of the client's own objects; those of the tests' servers do not count."""
    await fail()
    await asyncio.sleep(0.05)
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        for _ in range(3):
            assert isinstance(await fail(), Silence)
        await asyncio.sleep(0.05)
        gc.collect()
        assert not [each for each in gc.garbage if _is_ours(each)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def _is_ours(garbage: object) -> bool:
    if isinstance(garbage, FrameType):
        return garbage.f_code.co_filename == client.__file__
    return type(garbage).__module__.startswith(("pp_hostd", "h11"))
