"""Of several API servers a good one is found, remembered, and left again when it fails."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator

import pytest

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.outcome import ApiError, Outcome, is_missing
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


async def test_an_answer_that_every_server_would_repeat_is_no_reason_to_turn_to_another(
    trouble: TroubleServer, dial: Dial
) -> None:
    first, second = trouble.listen("404", "409", "good"), trouble.listen("good")
    client = dial(first.url, second.url)
    outcomes = [await outcome_of(client) for _ in range(3)]
    assert outcomes == [Outcome.NOT_FOUND, Outcome.CONFLICT, None]
    assert second.connections == 0


@pytest.mark.parametrize("refusal", ["401", "403", "404", "429"])
async def test_a_read_of_every_server_that_one_refuses_is_answered_by_the_next(
    trouble: TroubleServer, dial: Dial, refusal: str
) -> None:
    first, second = trouble.listen(refusal), trouble.listen("good")
    client = dial(first.url, second.url)
    for _ in range(2):
        assert (await client.get(NODES, "worker", every_server=True))["metadata"]["name"] == "worker"
    assert (len(first.requests), len(second.requests)) == (1, 2)


async def refusal_of(client: ApiClient) -> ApiError:
    with pytest.raises(ApiError) as caught:
        await client.get(NODES, "worker", every_server=True)
    return caught.value


@pytest.mark.parametrize("other", ["refusing", "closed in the handshake", "missing"])
async def test_what_is_missing_for_all_servers_that_answer_is_missing(
    trouble: TroubleServer, dial: Dial, refusing: str, other: str
) -> None:
    second = refusing if other == "refusing" else trouble.listen(other).url
    assert is_missing(await refusal_of(dial(trouble.listen("missing").url, second)))


@pytest.mark.parametrize("other", ["401", "403", "404", "429", "503", "no answer", "not JSON"])
async def test_what_is_missing_for_one_server_alone_is_a_failed_read(
    trouble: TroubleServer, dial: Dial, other: str
) -> None:
    """Whichever of the two is asked first."""
    for script in (("missing", other), (other, "missing")):
        client = dial(*(trouble.listen(each).url for each in script))
        assert not is_missing(await refusal_of(client))


async def test_every_server_is_asked_once_within_one_deadline(trouble: TroubleServer, dial: Dial) -> None:
    ports = [trouble.listen("403"), trouble.listen("401"), trouble.listen("429")]
    error = await refusal_of(dial(*(port.url for port in ports)))
    assert error.outcome is Outcome.FORBIDDEN
    assert [len(port.requests) for port in ports] == [1, 1, 1]
    client = dial(trouble.listen("403").url, trouble.listen("silent").url, deadline_seconds=1)
    assert (await asyncio.wait_for(refusal_of(client), 10)).outcome is Outcome.FORBIDDEN


async def test_a_write_goes_to_one_server_and_the_next_one_to_another(trouble: TroubleServer, dial: Dial) -> None:
    first, second = trouble.listen("403"), trouble.listen("good")
    client = dial(first.url, second.url)
    with pytest.raises(ApiError):
        await client.patch(NODES, "worker", {})
    assert second.connections == 0
    await client.patch(NODES, "worker", {})
    assert (len(first.requests), len(second.requests)) == (1, 1)


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
