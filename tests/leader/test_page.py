"""The leader's page on its port: who may read it, what it sends, and that nothing is read while nobody looks."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from importlib import resources
from typing import Any

import pytest

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.kubeconfig import load
from pp_hostd.leader.page import live
from pp_hostd.leader.page.live import Live
from pp_hostd.leader.page.server import EVENTS, FILES, LIMITS, MAX_READERS, PageServer, promise_of
from pp_hostd.model.settings import Settings
from pp_hostd.service.http_port import HttpPort
from tests.harness.embedded import EmbeddedCluster
from tests.page.painted import Painted, ago, course, node
from tests.peers.talk import say

STRICT = [
    "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'",
    "x-content-type-options: nosniff",
    "referrer-policy: no-referrer",
    "x-frame-options: deny",
    "cross-origin-resource-policy: same-origin",
    "cross-origin-opener-policy: same-origin",
    "cache-control: no-store",
]


@pytest.fixture(scope="module")
def painted() -> Iterator[Painted]:
    with EmbeddedCluster.start() as cluster, contextlib.closing(Painted(cluster, map(node, ("w-1", "w-2")))) as painted:
        yield painted


class Page:
    """The page of a leader in this process, and raw requests to it."""

    def __init__(self, client: ApiClient) -> None:
        self.client = client
        self.live = Live(client, promise_of(Settings(), "here"))
        self.http = HttpPort(PageServer(self.live).respond, LIMITS)
        self.number = 0

    async def head(self, target: str = "/", method: str = "GET", host: str = "localhost", more: str = "") -> list[str]:
        """The lines of the reply's head, in lower case."""
        asked = f"{method} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}\r\n"
        if target == EVENTS.decode() and method == "GET":
            reader, writer = await asyncio.open_connection("127.0.0.1", self.number)
            writer.write(asked.encode())
            reply = await reader.readuntil(b"\r\n\r\n")
            writer.transport.abort()
        else:
            reply = await say(self.number, asked.encode())
        return reply.partition(b"\r\n\r\n")[0].decode().lower().splitlines()

    async def nobody_reads(self) -> None:
        while self.live.readers:  # noqa: ASYNC110  (pytest-timeout bounds it)
            await asyncio.sleep(0.005)


@asynccontextmanager
async def serving(painted: Painted) -> AsyncIterator[Page]:
    client = ApiClient(load(str(painted.cluster.kubeconfig())), deadline_seconds=10)
    page = Page(client)
    try:
        page.number = await page.http.listen("127.0.0.1", 0)
        yield page
    finally:
        await page.http.close()
        client.close()


@asynccontextmanager
async def following(page: Page) -> AsyncIterator[asyncio.StreamReader]:
    reader, writer = await asyncio.open_connection("127.0.0.1", page.number, limit=1 << 20)
    writer.write(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    try:
        yield reader
    finally:
        writer.transport.abort()
        await asyncio.sleep(0)


async def part(reader: asyncio.StreamReader, name: str) -> Any:
    """The content of the next part of that name."""
    while True:
        event = (await reader.readuntil(b"\n\n")).decode()
        if event.startswith(f"event: {name}\ndata: "):
            return json.loads(event.split("data: ", 1)[1])


@pytest.mark.parametrize(
    ("target", "method", "status"),
    [
        *((each.decode(), "GET", 200) for each in FILES),
        ("/", "HEAD", 200),
        ("/events", "GET", 200),
        ("/events", "HEAD", 200),
        ("/page.js?v=1", "GET", 200),
        ("/metrics", "GET", 404),
        ("/assets/../server.py", "GET", 404),
        ("/", "POST", 405),
        ("/", "PUT", 405),
        ("/", "DELETE", 405),
        ("/", "OPTIONS", 405),
        ("/events", "POST", 405),
    ],
)
async def test_every_reply_is_strict_and_the_page_can_only_be_read(
    painted: Painted, target: str, method: str, status: int
) -> None:
    async with serving(painted) as page:
        head = await page.head(target, method)
    assert head[0].split()[1] == str(status)
    assert [line for line in STRICT if line not in head] == []
    assert ("allow: get, head" in head) == (status == 405)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:9999", 200),
        ("127.0.0.1:9481", 200),
        ("[::1]:9481", 200),
        ("[::1]", 200),
        ("127.0.0.1.evil.example", 421),
        ("evil.example:9481", 421),
        ("localhost.evil.example:80", 421),
        ("localhost@evil.example", 421),
        ("", 421),
    ],
)
async def test_a_name_that_was_made_to_point_here_shows_nothing(painted: Painted, host: str, status: int) -> None:
    async with serving(painted) as page:
        for target in ("/", "/events"):
            assert (await page.head(target, "HEAD", host))[0].split()[1] == str(status)


@pytest.mark.parametrize(("site", "status"), [("same-origin", 200), ("none", 200), ("cross-site", 403)])
async def test_another_site_can_not_make_a_browser_follow_the_events(painted: Painted, site: str, status: int) -> None:
    async with serving(painted) as page:
        head = await page.head("/events", more=f"Sec-Fetch-Site: {site}\r\n")
    assert head[0].split()[1] == str(status)


async def test_a_reader_sees_the_fleet_and_each_change_of_it(painted: Painted) -> None:
    painted.says()
    async with serving(painted) as page, following(page) as reader:
        promise = await part(reader, "promise")
        assert promise["host"] == "here" and promise["acts_seconds"] == 44
        fleet = await part(reader, "fleet")
        assert (fleet["leads"], fleet["counts"]["protected"], fleet["ongoing"]) == (True, 2, [])
        assert [host["name"] for host in await part(reader, "hosts")] == ["w-1", "w-2"]
        painted.says(course("w-1", "waiting", "half of\nthe nodes know", 3))
        told = (await part(reader, "fleet"))["ongoing"][0]
        assert (told["node"], told["stage"], told["sentence"]) == ("w-1", "waiting", "half of\nthe nodes know")
        painted.changes(node("w-2", ("Unarmed", "it has no watchdog")))
        while (await part(reader, "hosts"))[1]["reason"] != "Unarmed":
            pass


async def test_nothing_is_read_before_somebody_looks_and_all_reads_end_once_nobody_does(painted: Painted) -> None:
    async with serving(painted) as page:
        await page.head("/")
        assert page.client.requests == 0
        before = asyncio.all_tasks()
        async with following(page) as one, following(page) as other:
            await part(one, "hosts")
            await part(other, "hosts")
            assert page.live.readers == 2
            begun = {getattr(task.get_coro(), "__qualname__", "") for task in asyncio.all_tasks() - before}
            assert {name for name in begun if name.startswith("Reading.")} == {
                "Reading._follow",
                "Reading._follow_lease",
                "Reading._make_parts",
            }
        while asyncio.all_tasks() - before:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        assert page.live.readers == 0


async def test_readers_share_what_is_read(painted: Painted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "LEASE_SECONDS", 3600)
    async with serving(painted) as page, following(page) as one:
        await part(one, "hosts")
        requests = page.client.requests
        async with following(page) as other:
            await part(other, "hosts")
        assert page.client.requests == requests


async def test_more_readers_than_allowed_are_refused_until_one_leaves(painted: Painted) -> None:
    async with serving(painted) as page:
        async with contextlib.AsyncExitStack() as stack:
            for _ in range(MAX_READERS):
                await part(await stack.enter_async_context(following(page)), "promise")
            assert (await page.head("/events"))[0].split()[1] == "503"
            assert (await page.head("/"))[0].split()[1] == "200"
        await page.nobody_reads()
        assert (await page.head("/events"))[0].split()[1] == "200"


async def test_a_slow_reader_gets_the_newest_version_alone(painted: Painted) -> None:
    painted.says()
    async with serving(painted) as page:
        stream, other = page.live.stream(), page.live.stream()
        slow = await until(stream, b"event: hosts")
        assert b'"ongoing":[]' in slow
        seen = await until(other, b"event: hosts")
        for number in range(3):
            painted.says(course("w-1", "waiting", f"sentence {number}", 3))
            seen = await until(other, f"sentence {number}".encode())
        assert b"sentence 2" in seen
        newest = await stream.__anext__()
        assert b"sentence 2" in newest and newest.count(b"event: fleet") == 1
        await stream.aclose()
        await other.aclose()


async def test_only_beats_are_sent_while_reads_show_nothing_new(
    painted: Painted, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LEASE_SECONDS", "BEAT_SECONDS", "LEAST_PAUSE_SECONDS"):
        monkeypatch.setattr(live, name, 0.01)
    painted.says()
    async with serving(painted) as page:
        stream = page.live.stream()
        await until(stream, b"event: hosts")
        begun = page.client.requests
        while page.client.requests < begun + 5:
            beat = await stream.__anext__()
            assert (beat.count(b"event: "), beat[:12]) == (1, b"event: beat\n")
        await stream.aclose()


async def test_a_change_soon_after_another_waits_so_that_the_leader_has_time_left(
    painted: Painted, monkeypatch: pytest.MonkeyPatch
) -> None:
    painted.says()
    async with serving(painted) as page:
        stream = page.live.stream()
        await until(stream, b"event: hosts")
        monkeypatch.setattr(live, "LEAST_PAUSE_SECONDS", 1.0)
        began_at = asyncio.get_running_loop().time()
        for number in range(2):
            painted.says(course("w-1", "waiting", f"sentence {number}", 3))
            await until(stream, f"sentence {number}".encode())
        assert asyncio.get_running_loop().time() - began_at >= 1.0
        await stream.aclose()


async def until(stream: Any, words: bytes) -> bytes:
    """The next part that holds these words, with all before it."""
    found = b""
    while words not in found:
        found += await stream.__anext__()
    return found


async def test_a_stream_ends_in_time_and_its_reader_may_come_again(
    painted: Painted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "STREAM_SECONDS", 0.0)
    async with serving(painted) as page:
        for _ in range(2):
            async with following(page) as reader:
                assert b"event: promise" in await reader.read()


async def test_a_reader_is_told_when_the_api_can_not_be_read() -> None:
    with EmbeddedCluster.start() as cluster, contextlib.closing(Painted(cluster, [node("w-1")])) as painted:
        async with serving(painted) as page, following(page) as reader:
            await part(reader, "hosts")
            cluster.supervisor.kill("embedded")
            trouble = await part(reader, "trouble")
            assert "unreachable" in trouble["sentence"] and trouble["since"] >= ago(600).timestamp()


def test_the_files_use_no_markup_from_data_and_nothing_from_elsewhere() -> None:
    for name, _ in FILES.values():
        text = (resources.files("pp_hostd.leader.page") / "assets" / name).read_text()
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "https://", "//cdn"):
            assert word not in text, (name, word)
