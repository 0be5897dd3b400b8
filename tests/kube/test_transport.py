"""Connections are kept, checked and replaced, and a write never goes out twice."""

from __future__ import annotations

import asyncio
import os
import socket
import threading

import pytest

from pp_hostd.kube.outcome import ApiError, Outcome
from pp_hostd.kube.resources import NODES
from tests.harness.eventually import eventually
from tests.harness.trouble import TroubleServer
from tests.kube.conftest import Dial, outcome_of
from tests.kube.sockets import has_heard_from, is_closed_by, our_socket_to, sockets_of_this_process


async def test_one_connection_serves_many_exchanges(trouble: TroubleServer, dial: Dial) -> None:
    port = trouble.listen("good", "404", "good", "409", "good")
    client = dial(port.url)
    outcomes = [await outcome_of(client) for _ in range(6)]
    assert outcomes == [None, Outcome.NOT_FOUND, None, Outcome.CONFLICT, None, None]
    assert [seen.connection for seen in port.requests] == [1] * 6


async def test_exchanges_at_the_same_time_have_connections_of_their_own_and_two_are_kept(
    trouble: TroubleServer, dial: Dial
) -> None:
    port = trouble.listen("good")
    client = dial(port.url)
    await asyncio.gather(*(client.get(NODES, f"worker-{number}") for number in range(5)))
    assert port.connections == 5
    await asyncio.gather(*(client.get(NODES, f"worker-{number}") for number in range(3)))
    assert port.connections == 6


@pytest.mark.parametrize("behaviour", ["half a body", "length too short", "not HTTP"])
async def test_a_connection_in_disorder_is_not_used_again(trouble: TroubleServer, dial: Dial, behaviour: str) -> None:
    port = trouble.listen(behaviour, "good")
    client = dial(port.url)
    assert await outcome_of(client) in (Outcome.UNREACHABLE, Outcome.GARBAGE)
    assert await outcome_of(client) is None
    assert [seen.connection for seen in port.requests] == [1, 2]


async def test_a_read_on_a_connection_that_the_server_closes_is_sent_once_more(
    trouble: TroubleServer, dial: Dial
) -> None:
    port = trouble.listen("good, then closed at the next request", "good")
    client = dial(port.url)
    assert [await outcome_of(client), await outcome_of(client)] == [None, None]
    assert port.connections == 2


async def test_a_read_is_sent_once_more_and_not_twice(trouble: TroubleServer, dial: Dial) -> None:
    port = trouble.listen("good, then closed at the next request", "no answer")
    client = dial(port.url)
    assert [await outcome_of(client), await outcome_of(client)] == [None, Outcome.UNREACHABLE]
    assert port.connections == 2


async def test_a_read_whose_answer_has_begun_is_not_sent_again(trouble: TroubleServer, dial: Dial) -> None:
    port = trouble.listen("good", "half a head", "good")
    client = dial(port.url)
    assert [await outcome_of(client), await outcome_of(client)] == [None, Outcome.UNREACHABLE]
    assert len(port.requests) == 2


async def test_a_write_on_a_connection_that_the_server_closes_is_never_sent_again(
    trouble: TroubleServer, dial: Dial
) -> None:
    port = trouble.listen("good, then closed at the next request", "good")
    client = dial(port.url)
    await client.get(NODES, "worker")
    with pytest.raises(ApiError) as caught:
        await client.patch(NODES, "worker", {})
    assert (caught.value.outcome, caught.value.may_be_done) == (Outcome.UNREACHABLE, True)
    assert port.connections == 1


async def test_a_write_goes_out_once_on_a_new_connection_when_the_old_one_is_known_to_be_closed(
    trouble: TroubleServer, dial: Dial
) -> None:
    port = trouble.listen("good, then closed", "good")
    client = dial(port.url)
    await client.get(NODES, "worker")
    eventually(lambda: is_closed_by(port.url), "the server has closed the connection")
    await client.patch(NODES, "worker", {})
    assert [(seen.connection, seen.method) for seen in port.requests] == [(1, "GET"), (2, "PATCH")]


async def test_a_connection_on_which_the_server_chatters_is_given_up(trouble: TroubleServer, dial: Dial) -> None:
    port = trouble.listen("good, then chatter", "good")
    client = dial(port.url)
    await client.get(NODES, "worker")
    eventually(lambda: has_heard_from(port.url), "the server chatters")
    await client.patch(NODES, "worker", {})
    assert [(seen.connection, seen.method) for seen in port.requests] == [(1, "GET"), (2, "PATCH")]


async def test_ipv6_works(trouble: TroubleServer, dial: Dial) -> None:
    port = trouble.listen("good", host="::1")
    assert port.url.startswith("https://[::1]:")
    assert await outcome_of(dial(port.url)) is None


async def test_a_host_name_is_resolved_and_each_of_its_addresses_tried_without_a_thread(
    trouble: TroubleServer, dial: Dial
) -> None:
    """`localhost` is ::1 as well on most machines, where nobody listens here."""
    threads = threading.active_count(), len(os.listdir("/proc/self/task"))
    port = trouble.listen("good")
    client = dial(port.url.replace("127.0.0.1", "localhost"))
    assert await outcome_of(client) is None
    assert (threading.active_count(), len(os.listdir("/proc/self/task"))) == threads


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_deadline_of_nothing_is_over_at_once_and_the_sentence_still_names_the_server(
    trouble: TroubleServer, dial: Dial, host: str
) -> None:
    url = trouble.listen("good").url.replace("127.0.0.1", host)
    for deadline_seconds in (0, -1):
        with pytest.raises(ApiError, match=f"^reading Node worker: timed out \\({url}") as caught:
            await dial(url, deadline_seconds=deadline_seconds).get(NODES, "worker")
        assert caught.value.outcome is Outcome.TIMED_OUT


async def test_an_exchange_cancelled_at_any_moment_leaves_no_connection_behind(
    trouble: TroubleServer, dial: Dial
) -> None:
    client = dial(trouble.listen("silent").url)
    sockets = sockets_of_this_process()
    for turns in (0, 1, 2, 3, 4, 5, 10, 100, 1000, 5000):
        exchange = asyncio.create_task(client.get(NODES, "worker"))
        for _ in range(turns):
            await asyncio.sleep(0)
        exchange.cancel()
        with pytest.raises(asyncio.CancelledError):
            await exchange
        assert sockets_of_this_process() == sockets


async def test_the_far_side_of_an_idle_connection_is_probed_within_seconds(trouble: TroubleServer, dial: Dial) -> None:
    port = trouble.listen("good")
    await dial(port.url).get(NODES, "worker")
    with our_socket_to(port.url) as kept:
        assert kept.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        options = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT, socket.TCP_USER_TIMEOUT)
        idle, interval, probes, user_timeout_milliseconds = (
            kept.getsockopt(socket.IPPROTO_TCP, option) for option in options
        )
    assert idle + interval * probes <= 11
    assert user_timeout_milliseconds == 11000
