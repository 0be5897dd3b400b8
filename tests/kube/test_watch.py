"""A watch outlives whatever its server does: every interruption is reported, and it resumes or begins again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import pytest

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.outcome import Outcome
from pp_hostd.kube.resources import NODES
from pp_hostd.kube.watch import (
    INACTIVITY_SECONDS,
    TIMEOUT_SECONDS,
    Bookmark,
    Change,
    ChangeKind,
    Event,
    Interrupted,
    Snapshot,
    watch,
)
from tests.harness.trouble import Trouble, TroubleServer
from tests.kube.conftest import Dial
from tests.kube.jumping_loop import JumpingLoop
from tests.kube.sockets import sockets_of_this_process

HANG_SECONDS = 10.0


@asynccontextmanager
async def watching(client: ApiClient, **options: Any) -> AsyncIterator[AsyncGenerator[Event, None]]:
    events = cast("AsyncGenerator[Event, None]", watch(client, NODES, **options))
    try:
        yield events
    finally:
        await events.aclose()


async def take(client: ApiClient, count: int, **options: Any) -> list[Event]:
    """The first events of a watch, which each must come in time."""
    async with watching(client, **options) as events:
        return [await asyncio.wait_for(events.__anext__(), HANG_SECONDS) for _ in range(count)]


def told(event: Event) -> object:
    """An event in short."""
    if isinstance(event, Interrupted):
        return event.error.outcome
    if isinstance(event, Change):
        return event.kind, int(event.resource_version)
    return type(event), event.resource_version


SNAPSHOT, NEWS = (Snapshot, "10"), (ChangeKind.ADDED, 11)


def asked(port: Trouble) -> list[str]:
    """The requests, in order: `list`, or the version that a watch was to begin with."""
    queries = [parse_qs(urlsplit(seen.target).query) for seen in port.requests]
    return [query["resourceVersion"][0] if "watch" in query else "list" for query in queries]


async def test_a_list_comes_first_and_then_every_change(trouble: TroubleServer, dial: Dial) -> None:
    port = trouble.listen("good", "watch that stalls")
    snapshot, change = await take(dial(port.url), 2)
    assert [told(snapshot), told(change)] == [SNAPSHOT, NEWS]
    assert isinstance(snapshot, Snapshot)
    assert [item["metadata"]["name"] for item in snapshot.items] == ["first"]
    assert asked(port) == ["list", "10"]


async def test_a_watch_from_a_known_version_needs_no_list(trouble: TroubleServer, dial: Dial) -> None:
    port = trouble.listen("watch that stalls")
    assert list(map(told, await take(dial(port.url), 1, resource_version="7"))) == [NEWS]
    assert asked(port) == ["7"]


async def test_what_is_kept_of_each_object_is_all_that_is_told_of_it(trouble: TroubleServer, dial: Dial) -> None:
    port = trouble.listen("good", "watch that breaks in a line", "watch that stalls")
    snapshot, change, _, again = await take(dial(port.url), 4, keep=lambda found: found["metadata"]["name"])
    assert snapshot == Snapshot(["first"], "10")
    assert change == again == Change(ChangeKind.ADDED, "node-11", "11")
    assert asked(port) == ["list", "10", "11"]


async def test_a_watch_that_breaks_goes_on_after_the_last_event_that_was_whole(
    trouble: TroubleServer, dial: Dial
) -> None:
    port = trouble.listen("good", "watch that breaks in a line", "watch that stalls")
    events = await take(dial(port.url), 4)
    assert list(map(told, events)) == [SNAPSHOT, NEWS, Outcome.UNREACHABLE, NEWS]
    assert asked(port) == ["list", "10", "11"]


@pytest.mark.parametrize("end", ["watch of one", "watch that ends in a line"])
async def test_a_watch_that_the_server_ends_goes_on_without_a_word(
    trouble: TroubleServer, dial: Dial, end: str
) -> None:
    port = trouble.listen("good", end, "watch that stalls")
    assert list(map(told, await take(dial(port.url), 3))) == [SNAPSHOT, NEWS, NEWS]
    assert asked(port) == ["list", "10", "11"]


async def test_a_bookmark_moves_the_version_on(trouble: TroubleServer, dial: Dial) -> None:
    port = trouble.listen("good", "watch of a bookmark", "watch that stalls")
    assert list(map(told, await take(dial(port.url), 3))) == [SNAPSHOT, (Bookmark, "99"), NEWS]
    assert asked(port) == ["list", "10", "99"]


async def test_a_version_that_is_gone_is_answered_by_a_new_list(trouble: TroubleServer, dial: Dial) -> None:
    port = trouble.listen("good", "watch that is gone", "good", "410", "good", "watch that stalls")
    events = await take(dial(port.url), 7)
    assert list(map(told, events)) == [SNAPSHOT, NEWS, Outcome.GONE, SNAPSHOT, Outcome.GONE, SNAPSHOT, NEWS]
    assert asked(port) == ["list", "10", "list", "10", "list", "10"]
    assert isinstance(events[2], Interrupted)
    assert events[2].error.sentence == f"watching nodes: gone ({port.url}: too old resource version)"
    assert events[2].error.reason == "Expired"


async def test_a_watch_that_is_quiet_for_long_is_opened_again_and_that_is_no_trouble(
    trouble: TroubleServer, dial: Dial
) -> None:
    port = trouble.listen("good", "watch that stalls")
    assert list(map(told, await take(dial(port.url), 4, inactivity_seconds=0.2))) == [SNAPSHOT, NEWS, NEWS, NEWS]
    assert asked(port) == ["list", "10", "11", "11"]


def test_bookmarks_that_take_two_minutes_come_in_time() -> None:
    assert 120 < INACTIVITY_SECONDS < TIMEOUT_SECONDS


async def test_an_event_that_does_not_become_whole_in_time_interrupts_the_watch(
    trouble: TroubleServer, dial: Dial
) -> None:
    port = trouble.listen("good", "watch that trickles")
    snapshot, change, interruption, again = await take(dial(port.url), 4, inactivity_seconds=3)
    assert [told(snapshot), told(change), told(again)] == [SNAPSHOT, NEWS, NEWS]
    assert isinstance(interruption, Interrupted)
    reason = "an event that was not whole after 3 s"
    assert interruption.error.sentence == f"watching nodes: timed out ({port.url}: {reason})"
    assert asked(port) == ["list", "10", "11"]


@pytest.mark.parametrize(
    ("behaviour", "outcome"),
    [
        ("watch of garbage", Outcome.GARBAGE),
        ("watch of an unknown type", Outcome.GARBAGE),
        ("watch of another kind", Outcome.GARBAGE),
        ("watch of no version", Outcome.GARBAGE),
        ("watch of no object", Outcome.GARBAGE),
        ("watch of an endless line", Outcome.GARBAGE),
        ("watch that fails", Outcome.SERVER_ERROR),
        ("403", Outcome.FORBIDDEN),
        ("half a head", Outcome.UNREACHABLE),
        ("not HTTP", Outcome.GARBAGE),
    ],
)
async def test_nonsense_interrupts_a_watch_and_it_goes_on_from_the_last_good_version(
    trouble: TroubleServer, dial: Dial, behaviour: str, outcome: Outcome
) -> None:
    port = trouble.listen("good", behaviour, "watch that stalls")
    snapshot, interruption, change = await take(dial(port.url), 3)
    assert [told(snapshot), told(interruption), told(change)] == [SNAPSHOT, outcome, NEWS]
    assert asked(port) == ["list", "10", "10"]
    assert isinstance(interruption, Interrupted)
    sentence = interruption.error.sentence
    assert sentence.startswith(f"watching nodes: {outcome.value} (") and port.url in sentence
    assert sentence.isprintable() and len(sentence) < 500


async def test_a_list_that_fails_is_an_interruption_too(trouble: TroubleServer, dial: Dial) -> None:
    port = trouble.listen("503", "good", "watch that stalls")
    assert list(map(told, await take(dial(port.url), 3))) == [Outcome.SERVER_ERROR, SNAPSHOT, NEWS]


async def test_the_server_says_when_to_come_back(trouble: TroubleServer, dial: Dial) -> None:
    port = trouble.listen("429", "good")
    loop = asyncio.get_running_loop()
    async with watching(dial(port.url)) as events:
        assert told(await events.__anext__()) is Outcome.THROTTLED
        throttled_at = loop.time()
        assert told(await events.__anext__()) == SNAPSHOT
        assert 0.99 <= loop.time() - throttled_at < HANG_SECONDS


def test_nobody_is_sent_away_for_a_day(trouble: TroubleServer, dial: Dial) -> None:
    loop = JumpingLoop()

    async def come_back() -> Event:
        async with watching(dial(trouble.listen("429 for a day", "good").url)) as events:
            assert told(await events.__anext__()) is Outcome.THROTTLED
            following = asyncio.ensure_future(events.__anext__())
            await asyncio.sleep(0)
            loop.jumped_seconds += 60
            return await asyncio.wait_for(following, HANG_SECONDS)

    try:
        assert told(loop.run_until_complete(come_back())) == SNAPSHOT
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


async def test_the_pauses_between_failures_grow(trouble: TroubleServer, dial: Dial) -> None:
    """From a quarter of a second on, each twice the last and shortened at random by at most a half."""
    client = dial(trouble.listen("500").url)
    loop = asyncio.get_running_loop()
    interrupted_at = []
    async with watching(client) as events:
        for _ in range(4):
            assert told(await events.__anext__()) is Outcome.SERVER_ERROR
            interrupted_at.append(loop.time())
    pauses_seconds = [later - earlier for earlier, later in zip(interrupted_at, interrupted_at[1:])]
    for pause_seconds, at_least in zip(pauses_seconds, [0.125, 0.25, 0.5]):
        assert at_least * 0.99 <= pause_seconds < HANG_SECONDS


async def test_the_pauses_are_short_again_after_an_event(trouble: TroubleServer, dial: Dial) -> None:
    """Eight interruptions in a row without an event would take 12 seconds and more."""
    client = dial(trouble.listen("good", "watch that breaks in a line").url)
    begun_at = asyncio.get_running_loop().time()
    events = await take(client, 1 + 2 * 9)
    assert list(map(told, events[1:])) == [NEWS, Outcome.UNREACHABLE] * 9
    assert asyncio.get_running_loop().time() - begun_at < 12


async def test_a_flood_of_events_comes_whole_and_in_order_and_leaves_others_their_turns(
    trouble: TroubleServer, dial: Dial
) -> None:
    client = dial(trouble.listen("watch of 100,000").url)
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    other = asyncio.create_task(take_turns())
    async with watching(client, resource_version="0") as events:
        await events.__anext__()
        turns = 0
        for version in range(2, 100_001):
            assert told(await events.__anext__()) == (ChangeKind.ADDED, version)
    other.cancel()
    assert turns > 100


async def test_a_consumer_that_stops_leaves_no_connection_and_no_task_behind(
    trouble: TroubleServer, dial: Dial
) -> None:
    sockets = sockets_of_this_process()
    client = dial(trouble.listen("good", "watch that stalls").url)
    await take(client, 2)
    client.close()
    assert sockets_of_this_process() == sockets
    consumer = asyncio.create_task(take(client, 2))
    await asyncio.sleep(0)
    consumer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await consumer
    for _ in range(3):  # the loop closes the inner generators in its next turns
        await asyncio.sleep(0)
    assert len(asyncio.all_tasks()) == 1
    assert sockets_of_this_process() == sockets
