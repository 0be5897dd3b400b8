"""Replies that go on: a reader gets each part once it has taken the one before, and whoever leaves ends the stream."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pp_hostd.service.http_port import HttpPort, Limits, Parting, Reply, Request
from tests.peers.talk import say

ASK = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
LONG = b"x" * 1_000_000


class Source:
    """Gives out so many parts, or parts for ever, and knows how many were taken and whether somebody still reads."""

    def __init__(self, part: bytes = b"part", count: float = float("inf")) -> None:
        self.part, self.count, self.given = part, count, 0
        self.begun, self.ended = asyncio.Event(), asyncio.Event()

    async def parts(self) -> AsyncGenerator[bytes, None]:
        self.begun.set()
        try:
            while self.given < self.count:
                self.given += 1
                yield self.part
                await asyncio.sleep(0)
        finally:
            self.ended.set()


class Silent(Source):
    """Gives out one part, and then waits for ever."""

    async def parts(self) -> AsyncGenerator[bytes, None]:
        try:
            yield self.part
            await asyncio.get_running_loop().create_future()
        finally:
            self.ended.set()


@asynccontextmanager
async def streaming(source: Source, limits: Limits = Limits()) -> AsyncIterator[tuple[HttpPort, int]]:  # noqa: B008
    async def respond(_: Request) -> Reply:
        return Reply(200, b"", b"text/event-stream", b"A: b\r\n", source.parts())

    http = HttpPort(respond, limits)
    try:
        yield http, await http.listen("127.0.0.1", 0)
    finally:
        await http.close()


async def test_a_stream_has_no_length_and_ends_with_its_connection() -> None:
    async with streaming(Source(count=3)) as (http, number):
        reply = await say(number, ASK)
    head, _, body = reply.partition(b"\r\n\r\n")
    assert head.splitlines() == [
        b"HTTP/1.1 200 OK",
        b"Content-Type: text/event-stream",
        b"Connection: close",
        b"A: b",
    ]
    assert body == b"partpartpart" and not http.partings


@pytest.mark.parametrize("source", [Source, Silent])
@pytest.mark.parametrize("how", ["end", "abort"])
async def test_a_reader_that_leaves_ends_the_stream(source: type[Source], how: str) -> None:
    async with streaming(given := source()) as (http, number):
        reader, writer = await asyncio.open_connection("127.0.0.1", number)
        writer.write(ASK)
        await reader.readuntil(b"part")
        writer.write_eof() if how == "end" else writer.transport.abort()
        await given.ended.wait()
        while http.open_connections:  # noqa: ASYNC110  (pytest-timeout bounds it)
            await asyncio.sleep(0)
        writer.transport.abort()


async def test_a_reader_that_takes_nothing_holds_one_part_and_is_dropped() -> None:
    async with streaming(given := Source(LONG), Limits(idle_seconds=0.3)) as (http, number):
        with socket.create_connection(("127.0.0.1", number)) as client:
            client.sendall(ASK)
            await given.ended.wait()
        assert http.partings == {Parting.IDLE: 1}
        assert given.given < 20, "more was made than the kernel's buffers hold"


async def test_a_reader_that_takes_its_time_gets_all_of_it() -> None:
    async with streaming(Source(LONG, 8), Limits(idle_seconds=60)) as (http, number):
        reader, writer = await asyncio.open_connection("127.0.0.1", number, limit=1024)
        writer.write(ASK)
        await reader.readuntil(b"\r\n\r\n")
        body = 0
        while chunk := await reader.read(4096):
            body += len(chunk)
            await asyncio.sleep(0)
        assert body == 8 * len(LONG) and not http.partings
        writer.close()


async def test_a_reader_that_still_speaks_is_dropped() -> None:
    async with streaming(given := Silent()) as (http, number):
        reader, writer = await asyncio.open_connection("127.0.0.1", number)
        writer.write(ASK)
        await reader.readuntil(b"part")
        writer.write(ASK)
        await given.ended.wait()
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        assert http.partings == {Parting.REFUSED: 1}
        writer.transport.abort()


async def test_newcomers_cut_off_no_stream_before_all_are_streams() -> None:
    async with streaming(given := Silent(), Limits(connections=2)) as (http, number):
        reader, writer = await asyncio.open_connection("127.0.0.1", number)
        writer.write(ASK)
        await reader.readuntil(b"part")
        with contextlib.ExitStack() as stack:
            for _ in range(5):
                stack.enter_context(socket.create_connection(("127.0.0.1", number))).sendall(ASK[:5])
            while http.partings[Parting.EVICTED] < 4:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        assert not given.ended.is_set()
        writer.transport.abort()


async def test_a_head_has_the_length_and_not_the_body() -> None:
    async def respond(_: Request) -> Reply:
        return Reply(200, b"four")

    http = HttpPort(respond)
    number = await http.listen("127.0.0.1", 0)
    reply = await say(number, b"HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert b"Content-Length: 4\r\n" in reply and reply.endswith(b"\r\n\r\n")
    await http.close()
