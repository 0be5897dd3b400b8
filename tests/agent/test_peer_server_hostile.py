"""Hostile clients on the peer port: a short error at most, bounded cost, and peers are answered all the while."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from pp_hostd.agent.witness import ReadOutcome
from pp_hostd.errors import UserError
from pp_hostd.model.answer import Answer
from pp_hostd.peers.client import ask
from pp_hostd.peers.message import MachineReference, Refusal
from pp_hostd.peers.probe import Contact, probe
from pp_hostd.peers.signing import Keyring
from pp_hostd.service.http_port import BACKLOG, HttpPort, Limits, Parting, Reply, Request
from tests.peers.talk import (
    KEYRING,
    QUESTION,
    Listening,
    Neighbour,
    exchange,
    healthy_read,
    one_reply,
    peer_port,
    request,
    say,
)

GET = b"GET / HTTP/1.1\r\nHost: peer\r\n"
SHORT_BYTES = 400


async def is_answered(port: Listening) -> bool:
    return isinstance(await ask(Neighbour(), port.number, QUESTION, KEYRING, deadline_seconds=5), Answer)


def status(reply: bytes) -> int:
    """The status of the one reply there is; 0 if the connection was only closed."""
    assert reply.count(b"HTTP/1.1") <= 1 and len(reply) < SHORT_BYTES, reply
    return int(reply[9:12]) if reply else 0


@contextlib.contextmanager
def connected(number: int, count: int, said: bytes = GET[:1]) -> Iterator[list[socket.socket]]:
    """Clients that have begun a request: the port hears of nobody who says nothing."""
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(socket.create_connection(("127.0.0.1", number))) for _ in range(count)]
        for client in clients:
            client.sendall(said)
        yield clients


async def until_open(port: Listening, count: int) -> None:
    while port.http.open_connections != count:  # noqa: ASYNC110  (pytest-timeout bounds it)
        await asyncio.sleep(0.005)


def nonblocking(sock: socket.socket) -> socket.socket:
    sock.setblocking(False)
    return sock


def is_closed(sock: socket.socket) -> bool:
    try:
        return nonblocking(sock).recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ([b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 500], 400),
        ([b"\r\n" * 5000], 400),
        ([b"GET / HTTP/x.y\r\nHost: peer\r\n\r\n"], 400),
        ([b"GET / HTTP/1.1\r\n\r\n"], 400),
        ([b"GET " + b"/ " * 1000 + b"\r\n\r\n"], 400),
        ([GET + b"No colon\r\n\r\n"], 400),
        ([GET + b"A: b\x00c\r\n\r\n"], 400),
        ([GET + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n"], 400),
        ([GET + b"Content-Length: -1\r\n\r\n"], 400),
        ([GET + b"Content-Length: " + b"1" * 5000 + b"\r\n\r\n"], 400),
        ([b"GET / HTTP/1.1\r\n" + b"A: " + b"b" * 10000], 431),
        ([b"GET /" + b"a" * 10000], 431),
        ([GET, *[b"A: b\r\n"] * 2000], 431),
        ([GET + b"Content-Length: 5\r\n\r\nhello"], 413),
        ([GET + b"Content-Length: 99999999999999999999\r\n\r\n"], 413),
        ([GET + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nnot chunks"], 413),
        ([GET + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"], 413),
        ([GET + b"Transfer-Encoding: gzip\r\n\r\n"], 501),
        ([b"POST / HTTP/1.1\r\nHost: peer\r\n\r\n"], 405),
        ([b"CONNECT peer:22 HTTP/1.1\r\nHost: peer\r\n\r\n"], 405),
        ([GET + b"Upgrade: websocket\r\nConnection: upgrade\r\n\r\n"], 404),
        ([GET + b"\r\n" + b"\xff" * 100_000], 404),
    ],
)
async def test_garbage_gets_one_short_error_and_a_close(sent: list[bytes], expected: int) -> None:
    async with peer_port() as port:
        assert status(await say(port.number, *sent)) == expected
        assert await is_answered(port)


@pytest.mark.parametrize("keyring", [Keyring((b"x" * 32,)), Keyring(())])
async def test_a_wrong_or_missing_signature_ends_the_connection(keyring: Keyring) -> None:
    async with peer_port() as port:
        reply = await say(port.number, request(exchange(), keyring), request(exchange()))
        assert status(reply) == 403 and b"peer key" in reply
        assert port.server.refusals == {Refusal.WRONG_SIGNATURE: 1}


async def test_pipelined_garbage_after_a_question_gets_its_own_error() -> None:
    async with peer_port() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port.number)
        writer.write(request(exchange()) + b"\x00garbage\r\n\r\n" + request(exchange()))
        assert (await one_reply(reader))[0] == 200
        assert (await one_reply(reader))[0] == 400
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()


async def test_a_question_with_an_end_still_gets_its_answer() -> None:
    async with peer_port() as port:
        assert (await say(port.number, request(exchange()), end=True)).startswith(b"HTTP/1.1 200 ")


async def test_half_a_question_and_an_end_gets_nothing() -> None:
    async with peer_port() as port:
        assert await say(port.number, request(exchange())[:-5], end=True) == b""
        await until_open(port, 0)


async def test_a_question_may_come_a_byte_at_a_time() -> None:
    async with peer_port() as port:
        asked = request(exchange())
        pieces = [asked[index : index + 1] for index in range(len(asked))]
        assert (await say(port.number, *pieces, end=True)).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("closing", [b"GET / HTTP/1.0\r\n", GET + b"Connection: close\r\n"])
async def test_a_client_that_wants_no_more_is_left(closing: bytes) -> None:
    async with http_port(lambda _: Reply(200, b"fine")) as (_, number):
        assert (await say(number, closing + b"\r\n")).endswith(b"\r\n\r\nfine")


@asynccontextmanager
async def http_port(respond: object, limits: Limits = Limits()) -> AsyncIterator[tuple[HttpPort, int]]:  # noqa: B008
    async def answer(request: Request) -> Reply:
        reply: Reply = respond(request)  # type: ignore[operator]
        return reply

    http = HttpPort(answer, limits)
    try:
        yield http, await http.listen("127.0.0.1", 0)
    finally:
        await http.close()


async def test_a_slow_loris_is_dropped_though_it_keeps_sending() -> None:
    async with peer_port(limits=Limits(request_seconds=0.3)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port.number)
        writer.write(GET)
        gone = asyncio.create_task(reader.read())
        while not gone.done():
            writer.write(b"A: b\r\n")
            await asyncio.wait([gone], timeout=0.05)
        with contextlib.suppress(ConnectionError):
            assert gone.result() == b""
        assert port.http.partings == {Parting.SLOW: 1}
        writer.transport.abort()


async def test_a_slow_second_question_is_dropped_too() -> None:
    async with peer_port(limits=Limits(request_seconds=0.1, idle_seconds=60)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port.number)
        writer.write(request(exchange()) + GET)
        assert (await one_reply(reader))[0] == 200
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        assert port.http.partings == {Parting.SLOW: 1}
        writer.transport.abort()


async def test_a_client_that_says_no_more_is_dropped() -> None:
    async with peer_port(limits=Limits(request_seconds=0.1)) as port:
        with connected(port.number, 50):
            await until_open(port, 50)
            await until_open(port, 0)
        assert port.http.partings == {Parting.SLOW: 50}


async def test_a_client_that_says_nothing_reaches_nobody() -> None:
    async with peer_port(limits=Limits(connections=3)) as port:
        with connected(port.number, 50, b""):
            assert await is_answered(port)
        assert not port.http.partings, "silent clients have taken the port's few connections"


async def test_peers_are_answered_though_more_say_nothing_than_the_kernel_keeps() -> None:
    async with peer_port() as port:
        with connected(port.number, 2 * BACKLOG, b""):
            assert await is_answered(port)


async def test_an_idle_client_is_dropped_later() -> None:
    async with peer_port(limits=Limits(request_seconds=60, idle_seconds=0.1)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port.number)
        writer.write(request(exchange()))
        assert (await one_reply(reader))[0] == 200
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        assert port.http.partings == {Parting.IDLE: 1}
        writer.transport.abort()


async def test_a_refused_client_that_keeps_sending_is_dropped() -> None:
    async with peer_port() as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port.number)
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(b"\x00" * 10000)
                await writer.drain()
                await asyncio.sleep(0.01)
        await until_open(port, 0)
        assert port.http.partings == {Parting.REFUSED: 1, Parting.LINGERED: 1}
        writer.transport.abort()


async def test_a_client_that_takes_no_answers_gets_no_more_of_them_and_is_dropped() -> None:
    responded = 0

    def respond(_: Request) -> Reply:
        nonlocal responded
        responded += 1
        return Reply(200, b"x" * 1_000_000)

    async with http_port(respond, Limits(idle_seconds=0.3)) as (http, number):
        with connected(number, 1, b"") as (sock,):
            nonblocking(sock)
            while not http.partings:
                with contextlib.suppress(BlockingIOError, ConnectionError):
                    sock.send(GET + b"\r\n")
                await asyncio.sleep(0.005)
                assert responded < 50
        assert http.partings == {Parting.IDLE: 1}


async def test_nothing_more_is_read_while_a_question_is_answered() -> None:
    never: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

    async def respond(_: Request) -> Reply:
        return await never

    http = HttpPort(respond)
    number = await http.listen("127.0.0.1", 0)
    with connected(number, 1, b"") as (sock,):
        nonblocking(sock).send(GET + b"\r\n")
        sent_bytes, stuck = 0, 0
        while stuck < 20:
            try:
                sent_bytes += sock.send(b"\x00" * 65536)
                assert sent_bytes < 16 << 20, "somebody reads all this"
                stuck = 0
            except BlockingIOError:
                stuck += 1
            await asyncio.sleep(0.005)
    await http.close()


async def test_at_the_cap_the_one_whose_last_question_is_longest_ago_goes() -> None:
    async with peer_port(limits=Limits(connections=3)) as port:
        with connected(port.number, 3) as (first, second, third):
            await until_open(port, 3)
            first.sendall(request(exchange())[1:])
            assert (await asyncio.get_running_loop().sock_recv(nonblocking(first), 4096)).startswith(b"HTTP/1.1 200 ")
            with connected(port.number, 1):
                await asyncio.get_running_loop().sock_recv(nonblocking(second), 1)
                assert not is_closed(third) and not is_closed(first)
        assert port.http.partings[Parting.EVICTED] == 1


async def test_newcomers_do_not_cut_off_a_question_that_is_being_answered() -> None:
    begun, released = asyncio.Event(), asyncio.Event()

    async def read(about: MachineReference, seconds: float) -> ReadOutcome:
        begun.set()
        await released.wait()
        return await healthy_read(about, seconds)

    async with peer_port(read, limits=Limits(connections=3)) as port:
        asked = asyncio.create_task(is_answered(port))
        await begun.wait()
        with connected(port.number, 20):
            while port.http.partings[Parting.EVICTED] < 18:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
            released.set()
            assert await asked


async def test_peers_are_answered_through_a_flood_of_connections() -> None:
    async with peer_port(limits=Limits(connections=20)) as port:
        with connected(port.number, 10):
            for _ in range(30):
                with connected(port.number, 30):
                    assert await is_answered(port)
            assert port.http.open_connections <= 20
        assert port.http.partings[Parting.EVICTED] > 100


async def test_a_probe_wakes_nobody() -> None:
    async with peer_port(limits=Limits(connections=1)) as port:
        with connected(port.number, 1) as (client,):
            await until_open(port, 1)
            assert [(await probe("127.0.0.1", port.number)).contact for _ in range(20)] == [Contact.REACHED] * 20
            assert not is_closed(client), "a probe was taken for a client, and has evicted this one"


async def test_clients_that_reset_the_connection_cost_nothing() -> None:
    async with peer_port() as port:
        for sent in (b"", b"GET /", b"\x00", request(exchange()), request(exchange()) * 10) * 20:
            with socket.create_connection(("127.0.0.1", port.number)) as sock:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                sock.sendall(sent)
                await asyncio.sleep(0)
        assert await is_answered(port)
        await until_open(port, 0)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
async def test_one_address_of_either_kind_can_be_chosen(address: str) -> None:
    async with peer_port(address=address) as port:
        answer = await ask(Neighbour(address=address), port.number, QUESTION, KEYRING, deadline_seconds=5)
        assert isinstance(answer, Answer)


async def test_a_port_that_is_taken_is_named() -> None:
    async with peer_port() as port:
        with pytest.raises(UserError) as caught:
            await HttpPort(port.server.respond).listen("127.0.0.1", port.number)
    assert f"port {port.number}" in caught.value.message and "in use" in caught.value.message
