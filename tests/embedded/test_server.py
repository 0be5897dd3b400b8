"""The server on a real socket: nothing that a client sends, or does not send, costs more than it should."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pp_hostd.embedded.access import Access, User
from pp_hostd.embedded.api import Api, Reply, Request
from pp_hostd.embedded.history import Subscription
from pp_hostd.embedded.server import BODY_LIMIT, HEAD_LIMIT, serving, tls_context
from pp_hostd.embedded.store import Store
from pp_hostd.kube.resources import CONFIG_MAPS
from tests.embedded.conftest import EXAMPLES, VirtualTime, config_map, new_store
from tests.harness.pki import LOOPBACK, CertificateAuthority

ACCESS = Access({"secret": User("admin", ("system:masters",))}, [])
CONFIG_MAPS_PATH = "/api/v1/namespaces/default/configmaps"
DEADLINE_SECONDS = 10


class Tls(NamedTuple):
    server: ssl.SSLContext
    client: ssl.SSLContext


@pytest.fixture(scope="module")
def contexts(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    directory: Path = tmp_path_factory.mktemp("tls")
    authority = CertificateAuthority("test")
    issued = authority.issue("server", sans=LOOPBACK)
    for name, pem in (("ca", authority.certificate_pem), ("cert", issued.cert_pem), ("key", issued.key_pem)):
        (directory / name).write_bytes(pem)
    server = tls_context(str(directory / "cert"), str(directory / "key"), str(directory / "ca"))
    return Tls(server, ssl.create_default_context(cafile=str(directory / "ca")))


class Client:
    """Bytes to and from the server, each step under a deadline."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, method: str, path: str, body: bytes = b"", *headers: str) -> None:
        lines = [f"{method} {path} HTTP/1.1", "Host: x", "Authorization: Bearer secret", *headers]
        self.writer.write("\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body)

    async def status(self) -> int:
        """The status of the next answer."""
        head = await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), DEADLINE_SECONDS)
        self.head = head.decode().lower()
        return int(head.split()[1])

    async def body(self) -> dict[str, Any]:
        """The body of that answer."""
        length = int(self.head.partition("content-length: ")[2].split("\r\n")[0])
        read: dict[str, Any] = json.loads(await asyncio.wait_for(self.reader.readexactly(length), DEADLINE_SECONDS))
        return read

    async def events(self) -> list[dict[str, Any]]:
        """The events in the next chunk of a watch; none at its end."""
        size = int(await asyncio.wait_for(self.reader.readline(), DEADLINE_SECONDS), 16)
        chunk = await asyncio.wait_for(self.reader.readexactly(size + 2), DEADLINE_SECONDS)
        return [json.loads(line) for line in chunk.splitlines() if line]

    async def ended(self) -> bool:
        """Waits for the server to close the connection."""
        with suppress(ConnectionResetError):
            await asyncio.wait_for(self.reader.read(), DEADLINE_SECONDS)
        return True


@asynccontextmanager
async def running(store: Store, contexts: Tls, **limits: float) -> AsyncIterator[int]:
    """A server; gives its port."""
    async with serving(Api(store, ACCESS), contexts.server, **limits) as url:  # type: ignore[arg-type]
        yield int(url.rpartition(":")[2])


@asynccontextmanager
async def connected(port: int, contexts: Tls) -> AsyncIterator[Client]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=contexts.client)
    try:
        yield Client(reader, writer)
    finally:
        writer.transport.abort()


async def test_one_connection_serves_many_requests(store: Store, contexts: Tls) -> None:
    async with running(store, contexts) as port, connected(port, contexts) as client:
        for number in range(3):
            body = json.dumps(config_map(f"c{number}")).encode()
            client.send("POST", CONFIG_MAPS_PATH, body, "Content-Type: application/json")
            assert await client.status() == 201
            assert (await client.body())["metadata"]["name"] == f"c{number}"


async def test_requests_sent_at_once_are_answered_in_order(store: Store, contexts: Tls) -> None:
    store.create(CONFIG_MAPS, "default", config_map("a"))
    async with running(store, contexts) as port, connected(port, contexts) as client:
        for name in ("a", "nothing", "a"):
            client.send("GET", f"{CONFIG_MAPS_PATH}/{name}")
        for wanted in (200, 404, 200):
            assert await client.status() == wanted
            await client.body()


async def test_a_head_beyond_the_limit_is_refused(store: Store, contexts: Tls) -> None:
    async with running(store, contexts) as port, connected(port, contexts) as client:
        client.send("GET", CONFIG_MAPS_PATH, b"", "X-Padding: " + "x" * 2 * HEAD_LIMIT)
        assert await client.status() == 431
        assert await client.ended()


async def test_a_body_beyond_the_limit_is_refused_and_the_client_gets_to_know(store: Store, contexts: Tls) -> None:
    async with running(store, contexts) as port, connected(port, contexts) as client:
        client.send("POST", CONFIG_MAPS_PATH, b"x" * (8 * BODY_LIMIT), "Content-Type: application/json")
        assert await client.status() == 413
        assert (await client.body())["reason"] == "RequestEntityTooLarge"


async def test_garbage_is_refused(store: Store, contexts: Tls) -> None:
    async with running(store, contexts) as port, connected(port, contexts) as client:
        client.writer.write(b"\x00\x01\x02 what is this\r\n\r\n")
        assert await client.status() == 400
        assert await client.ended()


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "TRACE", "BREW"])
async def test_a_method_that_is_not_served_is_not_allowed(store: Store, contexts: Tls, method: str) -> None:
    async with running(store, contexts) as port, connected(port, contexts) as client:
        client.send(method, CONFIG_MAPS_PATH)
        assert await client.status() == 405


async def test_a_dry_run_of_a_creation_is_refused_and_not_run_in_earnest(store: Store, contexts: Tls) -> None:
    async with running(store, contexts) as port, connected(port, contexts) as client:
        body = json.dumps(config_map("dry")).encode()
        client.send("POST", f"{CONFIG_MAPS_PATH}?dryRun=All", body, "Content-Type: application/json")
        assert await client.status() == 400
        assert store.list(CONFIG_MAPS)["items"] == []


async def test_a_body_that_is_nested_too_deeply_is_a_bad_request(store: Store, contexts: Tls) -> None:
    async with running(store, contexts) as port, connected(port, contexts) as client:
        client.send("POST", CONFIG_MAPS_PATH, b"[" * 500_000, "Content-Type: application/json")
        assert await client.status() == 400


async def test_a_client_that_trickles_its_request_is_dropped(store: Store, contexts: Tls) -> None:
    async with running(store, contexts, request_seconds=0.3) as port, connected(port, contexts) as client:

        async def trickle() -> None:
            for byte in b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 10_000:
                client.writer.write(bytes([byte]))
                await asyncio.sleep(0.05)

        task = asyncio.ensure_future(trickle())
        assert await client.ended()
        task.cancel()


async def test_a_client_that_has_nothing_more_to_ask_is_dropped_in_time(store: Store, contexts: Tls) -> None:
    async with running(store, contexts, idle_seconds=0.3) as port, connected(port, contexts) as client:
        client.send("GET", CONFIG_MAPS_PATH)
        assert await client.status() == 200
        assert await client.ended()


async def test_a_client_that_says_goodbye_is_let_go(store: Store, contexts: Tls) -> None:
    async with running(store, contexts) as port, connected(port, contexts) as client:
        client.send("GET", CONFIG_MAPS_PATH)
        assert await client.status() == 200
        client.writer.close()  # with a TLS closure alert
        await asyncio.wait_for(client.writer.wait_closed(), DEADLINE_SECONDS)
        async with connected(port, contexts) as another:
            another.send("GET", CONFIG_MAPS_PATH)
            assert await another.status() == 200


async def test_a_client_that_never_shakes_hands_is_dropped(store: Store, contexts: Tls) -> None:
    async with running(store, contexts, idle_seconds=0.3) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await Client(reader, writer).ended()
        writer.close()
        await writer.wait_closed()


async def test_a_watch_sends_events_when_they_happen(store: Store, contexts: Tls) -> None:
    async with running(store, contexts) as port, connected(port, contexts) as client:
        client.send("GET", f"{CONFIG_MAPS_PATH}?watch=1")
        assert await client.status() == 200
        store.create(CONFIG_MAPS, "default", config_map("a"))
        (event,) = await client.events()
        assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "a")


async def test_a_watch_from_a_version_that_is_too_old_tells_410_in_the_stream(store: Store, contexts: Tls) -> None:
    store.compact()
    async with running(store, contexts) as port, connected(port, contexts) as client:
        client.send("GET", f"{CONFIG_MAPS_PATH}?watch=1&resourceVersion=1")
        assert await client.status() == 200
        (event,) = await client.events()
        assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")


async def test_a_watch_with_bookmarks_gets_one_before_its_end_and_then_the_connection_serves_on(
    store: Store, contexts: Tls
) -> None:
    async with running(store, contexts) as port, connected(port, contexts) as client:
        client.send("GET", f"{CONFIG_MAPS_PATH}?watch=1&allowWatchBookmarks=true&timeoutSeconds=2")
        assert await client.status() == 200
        assert [event["type"] for event in await client.events()] == ["BOOKMARK"]
        assert await client.events() == []
        client.send("GET", CONFIG_MAPS_PATH)
        assert await client.status() == 200


async def test_a_watcher_that_does_not_read_is_cut_off_with_410(clock: VirtualTime, contexts: Tls) -> None:
    store = new_store(clock, watch_limit=10)
    store.create(CONFIG_MAPS, "default", config_map("a"))
    async with running(store, contexts) as port, connected(port, contexts) as client:
        transport = cast("asyncio.Transport", client.writer.transport)
        transport.pause_reading()
        client.send("GET", f"{CONFIG_MAPS_PATH}?watch=1")
        for number in range(400):  # much more than the kernel's buffers hold
            store.patch(CONFIG_MAPS, "default", "a", {"data": {"key": f"{number:100000}"}})
            await asyncio.sleep(0)
        transport.resume_reading()
        assert await client.status() == 200
        seen = []
        while chunk := await client.events():
            seen += chunk
        assert (seen[-1]["type"], seen[-1]["object"]["code"]) == ("ERROR", 410)
        assert len(seen) < 400


class RememberingStore(Store):
    """Keeps what it gave to watchers."""

    subscriptions: list[Subscription]

    def watch(self, *arguments: Any, **more: Any) -> Subscription:
        self.subscriptions = [super().watch(*arguments, **more)]
        return self.subscriptions[0]


async def test_a_watcher_that_leaves_is_forgotten(contexts: Tls, clock: VirtualTime) -> None:
    store = RememberingStore(clock, lambda: "uid")
    async with running(store, contexts) as port:
        async with connected(port, contexts) as client:
            client.send("GET", f"{CONFIG_MAPS_PATH}?watch=1")
            assert await client.status() == 200
        async with connected(port, contexts) as another:  # by the time that is served, the first is gone
            another.send("GET", CONFIG_MAPS_PATH)
            assert await another.status() == 200
        (subscription,) = store.subscriptions
        assert subscription.closed


METHODS = st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "X"])
SEGMENTS = st.sampled_from(["", "api", "apis", "v1", "namespaces", "default", "pods", "a", "status", "%2F", "%ff"])
TARGETS = st.lists(SEGMENTS, max_size=8).map(lambda parts: "/" + "/".join(parts))
PARAMETERS = st.sampled_from(["", "?watch=1", "?limit=x", "?continue=eyJ9", "?resourceVersion=-1", "?fieldSelector=a"])
BODIES = st.sampled_from([b"", b"{}", b"[]", b"null", b'{"kind":1}', b'{"metadata":{"name":[]}}', b"\xff", b'"x"'])
TYPES = st.sampled_from(["", "application/json", "application/merge-patch+json", "text/plain", ";;"])


@EXAMPLES
@given(METHODS, TARGETS, PARAMETERS, BODIES, TYPES, st.sampled_from(["", "Bearer secret", "Bearer", "Basic x"]))
def test_any_request_gets_an_answer(
    method: str, target: str, parameters: str, body: bytes, content_type: str, authorization: str
) -> None:
    api = Api(new_store(VirtualTime()), ACCESS)
    headers = {"content-type": content_type, "authorization": authorization}
    answer = api.answer(Request(method, target + parameters, headers, body, None), lambda: None)
    if isinstance(answer, Reply):
        assert 200 <= answer.status < 600 and (answer.content_type == "text/plain" or json.loads(answer.body))
