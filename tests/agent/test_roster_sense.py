"""The agent's roster only ever gets newer; what can't be relied on is reported, and the last good one stays."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress
from typing import Callable

import pytest

from pp_hostd.agent.sense.watches import RosterWatch
from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.kubeconfig import Kubeconfig
from pp_hostd.kube.outcome import ApiError
from pp_hostd.kube.resources import CONFIG_MAPS
from pp_hostd.model.keys import NAMESPACE, ROSTER
from pp_hostd.model.roster import Member, Roster
from tests.agent.interrupted import BROKEN_OFF, Interrupted
from tests.agent.objects import create_our_namespace, running, until

ClientOf = Callable[[str], ApiClient]
UID = "7d3b1c1e-6f0b-4a8e-9f57-0c4f1b2a3d4e"


def roster(version: int, *names: str) -> Roster:
    return Roster.of(version, 1, [Member(name, None, "192.0.2.1", UID, 1, None) for name in names])


class Seen(RosterWatch):
    """A watch that remembers what it stored."""

    def __init__(self, known: Roster | None = None) -> None:
        self.stored: list[Roster] = []
        super().__init__(known, self.stored.append)


async def write(client: ApiClient, text: str) -> None:
    await client.patch(CONFIG_MAPS, ROSTER, {"data": {ROSTER: text}}, namespace=NAMESPACE)


@pytest.fixture
def published(client: ApiClient) -> Callable[[Roster], Awaitable[None]]:
    async def publish(first: Roster) -> None:
        """The roster, in a cluster where another test may have left one."""
        await create_our_namespace(client)
        await remove(client)
        body = {"metadata": {"name": ROSTER}, "data": {ROSTER: first.render()}}
        await client.create(CONFIG_MAPS, body, namespace=NAMESPACE)

    return publish


Publish = Callable[[Roster], Awaitable[None]]


async def remove(client: ApiClient) -> None:
    with suppress(ApiError):
        await client.delete(CONFIG_MAPS, ROSTER, namespace=NAMESPACE)


@asynccontextmanager
async def watching(client: ApiClient, known: Roster | None = None) -> AsyncIterator[Seen]:
    seen = Seen(known)
    async with running(seen.run(client)):
        yield seen


async def test_each_newer_roster_is_taken_and_stored(client: ApiClient, published: Publish) -> None:
    first, second = roster(1, "a"), roster(2, "a", "b")
    await published(first)
    async with watching(client) as seen:
        assert seen.trouble == "ConfigMap pp-hostd/roster has not been read yet"
        await until(lambda: seen.roster == first, "the first is read")
        await write(client, second.render())
        await until(lambda: seen.roster == second, "the second is read")
        assert seen.stored == [first, second]
        assert seen.trouble == ""


async def test_a_roster_that_is_known_already_is_no_change(client: ApiClient, published: Publish) -> None:
    known, newer = roster(4, "a", "b"), roster(5, "a")
    await published(known)
    async with watching(client, known) as seen:
        await write(client, newer.render())
        await until(lambda: seen.roster == newer, "the newer one is read")
        assert seen.stored == [newer]


@pytest.mark.parametrize("other", [roster(3, "a", "b"), roster(4, "b")])
async def test_an_older_one_or_another_one_of_the_same_version_is_reported_and_ignored(
    client: ApiClient, published: Publish, other: Roster
) -> None:
    known = roster(4, "a")
    await published(other)
    async with watching(client, known) as seen:
        await until(lambda: seen.trouble, "it is reported")
        assert seen.trouble == (
            f"ConfigMap pp-hostd/roster is of version {other.version}, and this host knows another one of version 4"
        )
        assert (seen.roster, seen.stored) == (known, [])


@pytest.mark.parametrize("text", ["", "[]", '{"v": 2}', roster(9, "a").render()[:-5]])
async def test_an_unreadable_one_is_reported_and_the_last_good_one_stays(
    client: ApiClient, published: Publish, text: str
) -> None:
    good = roster(4, "a")
    await published(good)
    async with watching(client) as seen:
        await until(lambda: seen.roster == good, "the good one is read")
        await write(client, text)
        await until(lambda: seen.trouble, "the bad one is reported")
        assert seen.trouble.startswith("ConfigMap pp-hostd/roster: the roster is unreadable: ")
        assert (seen.roster, seen.stored) == (good, [good])
        await write(client, good.render())
        await until(lambda: not seen.trouble, "the good one is back")
        assert seen.stored == [good]


async def test_where_there_is_none_or_none_any_more_the_known_one_stays(client: ApiClient, published: Publish) -> None:
    known = roster(4, "a")
    await create_our_namespace(client)
    await remove(client)
    async with watching(client, known) as seen:
        await until(lambda: seen.trouble, "its absence is reported")
        assert seen.trouble == "there is no ConfigMap pp-hostd/roster: pp-leader writes it"
        await published(known)
        await until(lambda: not seen.trouble, "it is there")
        await remove(client)
        await until(lambda: seen.trouble, "its absence is reported again")
        assert (seen.roster, seen.stored) == (known, [])


async def test_a_config_map_without_a_roster_is_unreadable(client: ApiClient, published: Publish) -> None:
    await published(roster(4, "a"))
    await client.patch(CONFIG_MAPS, ROSTER, {"data": None}, namespace=NAMESPACE)
    async with watching(client) as seen:
        await until(lambda: "unreadable" in seen.trouble, "it is reported")
        assert seen.roster is None


async def test_whoever_may_not_watch_is_told_why(client_of: ClientOf) -> None:
    async with watching(client_of("nobody")) as seen:
        await until(lambda: "forbidden" in seen.trouble, "it is reported")


@pytest.mark.parametrize(
    ("text", "then"), [(roster(4, "a").render(), ""), ("", "ConfigMap pp-hostd/roster: the roster is unreadable: ")]
)
async def test_a_watch_that_goes_on_after_an_interruption_is_no_trouble_and_hides_none(
    kubeconfig: Kubeconfig, text: str, then: str
) -> None:
    client = Interrupted(kubeconfig, {"data": {ROSTER: text}})
    async with watching(client) as seen:
        await until(lambda: seen.trouble == BROKEN_OFF, "the interruption is reported")
        client.going_on.set()
        await until(lambda: seen.trouble != BROKEN_OFF, "it is over")
        assert seen.trouble.startswith(then) and bool(seen.trouble) == bool(then)
