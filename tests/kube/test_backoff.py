"""Servers that answer nobody are not flooded with connections, and are found again when they answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Callable

import pytest

from pp_hostd.kube.backoff import LONGEST_PAUSE_SECONDS, Backoff
from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.outcome import ApiError, Outcome
from pp_hostd.kube.resources import NODES
from tests.harness.trouble import TroubleServer
from tests.kube.conftest import Dial
from tests.kube.jumping_loop import StandingLoop

UNANSWERED = ["closed in the handshake", "reset in the handshake", "not TLS", "no answer", "reset", "not HTTP"]


def in_standing_time(story: Callable[[StandingLoop], Awaitable[None]]) -> None:
    loop = StandingLoop()

    async def told() -> None:
        await story(loop)

    try:
        loop.run_until_complete(told())
    finally:
        loop.close()


async def read(client: ApiClient, *, may_rest: bool) -> ApiError | None:
    try:
        await client.get(NODES, "worker", may_rest=may_rest)
    except ApiError as error:
        return error
    return None


@pytest.mark.parametrize("behaviour", UNANSWERED)
def test_reads_that_may_rest_make_no_connection_while_nobody_answers(
    trouble: TroubleServer, dial: Dial, behaviour: str
) -> None:
    async def story(loop: StandingLoop) -> None:
        port = trouble.listen(behaviour)
        client = dial(port.url)
        first = [await read(client, may_rest=True) for _ in range(3)]
        rested = await asyncio.gather(*(read(client, may_rest=True) for _ in range(50)))
        assert port.connections == 3
        assert {error.outcome for error in (*first, *rested) if error} == {first[0].outcome if first[0] else None}
        assert all(error and "not tried again so soon after reading Node worker" in error.sentence for error in rested)
        loop.now += LONGEST_PAUSE_SECONDS
        await asyncio.gather(*(read(client, may_rest=True) for _ in range(50)))
        assert port.connections == 4

    in_standing_time(story)


def test_a_read_that_may_not_rest_is_tried_always_and_its_success_ends_the_rest(
    trouble: TroubleServer, dial: Dial
) -> None:
    async def story(_: StandingLoop) -> None:
        port = trouble.listen("no answer", "no answer", "no answer", "no answer", "good")
        client = dial(port.url)
        assert all([await read(client, may_rest=False) for _ in range(4)])
        assert await read(client, may_rest=True) is not None
        assert port.connections == 4
        assert await read(client, may_rest=False) is None
        assert await read(client, may_rest=True) is None

    in_standing_time(story)


@pytest.mark.parametrize("status", ["500", "503"])
def test_a_server_that_says_it_is_ill_is_left_in_peace(trouble: TroubleServer, dial: Dial, status: str) -> None:
    async def story(loop: StandingLoop) -> None:
        port = trouble.listen(status)
        client = dial(port.url)
        found = [await read(client, may_rest=True) for _ in range(9)]
        assert [error and error.outcome for error in found] == [Outcome.SERVER_ERROR] * 9
        assert len(port.requests) == 3
        loop.now += LONGEST_PAUSE_SECONDS
        await asyncio.gather(*(read(client, may_rest=True) for _ in range(9)))
        assert len(port.requests) == 4

    in_standing_time(story)


@pytest.mark.parametrize(("status", "outcome"), [("401", Outcome.UNAUTHORIZED), ("404", Outcome.NOT_FOUND)])
def test_a_server_that_answers_is_asked_again_whatever_it_says(
    trouble: TroubleServer, dial: Dial, status: str, outcome: Outcome
) -> None:
    async def story(_: StandingLoop) -> None:
        port = trouble.listen(status)
        client = dial(port.url)
        found = [await read(client, may_rest=True) for _ in range(9)]
        assert [error and error.outcome for error in found] == [outcome] * 9
        assert (port.connections, len(port.requests)) == (1, 9)

    in_standing_time(story)


def test_pauses_double_up_to_the_longest_and_are_short_again_after_a_success() -> None:
    backoff = Backoff()
    whole = [0.25, 0.5, 1, 2, 4, 8, 8, 8]
    for _ in range(2):
        pauses = [backoff.after_failure() for _ in whole]
        assert all(full / 2 <= pause <= full for pause, full in zip(pauses, whole))
        backoff.reset()
