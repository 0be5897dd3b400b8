"""Of several API servers a good one is found, remembered, and left again when it fails."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator

import pytest

from pp_hostd.kube.outcome import ApiError, Outcome
from pp_hostd.kube.resources import NODES
from tests.harness.trouble import TroubleServer
from tests.kube.conftest import Dial, outcome_of


@pytest.fixture
def refusing() -> Iterator[str]:
    """The URL of a port where nobody listens."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield f"https://127.0.0.1:{reserved.getsockname()[1]}"


@pytest.mark.parametrize("dead", ["refusing", "black hole", "silent before TLS", "not TLS", "closed in the handshake"])
async def test_a_server_that_cannot_be_reached_is_followed_by_the_next_within_the_deadline(
    trouble: TroubleServer, dial: Dial, refusing: str, dead: str
) -> None:
    first, second = refusing if dead == "refusing" else trouble.listen(dead).url, trouble.listen("good, then closed")
    client = dial(first, second.url, deadline_seconds=3)
    loop = asyncio.get_running_loop()
    assert await outcome_of(client) is None
    begun_at = loop.time()
    assert await outcome_of(client) is None
    assert loop.time() - begun_at < 1.5, "the good one was forgotten, and half of the time spent on the dead one again"
    assert second.connections == 2


@pytest.mark.parametrize("bad", ["silent", "503", "no answer", "reset", "not HTTP", "not JSON", "other name"])
async def test_a_server_that_answers_badly_is_followed_by_the_next_at_the_next_exchange(
    trouble: TroubleServer, dial: Dial, bad: str
) -> None:
    first, second = trouble.listen(bad), trouble.listen("good")
    client = dial(first.url, second.url, deadline_seconds=2)
    assert await outcome_of(client) is not None
    assert [await outcome_of(client), await outcome_of(client)] == [None, None]
    assert (len(first.requests), len(second.requests)) == (1, 2)


async def test_exchanges_that_fail_together_do_not_skip_the_good_server(trouble: TroubleServer, dial: Dial) -> None:
    first, second = trouble.listen("silent"), trouble.listen("good")
    client = dial(first.url, second.url, deadline_seconds=1)
    assert set(await asyncio.gather(outcome_of(client), outcome_of(client))) == {Outcome.TIMED_OUT}
    assert await outcome_of(client) is None


async def test_a_refusal_that_every_server_would_repeat_is_no_reason_to_turn_to_another(
    trouble: TroubleServer, dial: Dial
) -> None:
    first, second = trouble.listen("403", "404", "409", "429", "good"), trouble.listen("good")
    client = dial(first.url, second.url)
    outcomes = [await outcome_of(client) for _ in range(5)]
    assert outcomes == [Outcome.FORBIDDEN, Outcome.NOT_FOUND, Outcome.CONFLICT, Outcome.THROTTLED, None]
    assert second.connections == 0


async def test_the_turn_comes_round_again(trouble: TroubleServer, dial: Dial) -> None:
    first, second = trouble.listen("503", "good"), trouble.listen("good", "503")
    client = dial(first.url, second.url)
    outcomes = [await outcome_of(client) for _ in range(4)]
    assert outcomes == [Outcome.SERVER_ERROR, None, Outcome.SERVER_ERROR, None]


async def test_a_host_name_that_leads_nowhere_is_named_with_each_of_its_addresses(dial: Dial, refusing: str) -> None:
    url = refusing.replace("127.0.0.1", "localhost")
    with pytest.raises(ApiError) as caught:
        await dial(url).get(NODES, "worker")
    assert f"{url} at 127.0.0.1: connection refused" in caught.value.sentence


async def test_when_no_server_can_be_reached_each_is_named_with_its_reason(
    trouble: TroubleServer, dial: Dial, refusing: str
) -> None:
    strange = trouble.listen("not TLS").url
    with pytest.raises(ApiError) as caught:
        await dial(refusing, strange).patch(NODES, "worker", {})
    assert caught.value.sentence == (
        f"patching Node worker: refused by TLS ({refusing}: connection refused; {strange}: "
        "TLS failed: wrong version number)"
    )
    assert not caught.value.may_be_done
