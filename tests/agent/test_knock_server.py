"""Doors tried for others: the peer calls where its roster says, and nowhere else; a few at a time, and no more."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pp_hostd.agent.peer_server import MAX_KNOCKS, MAX_PER_SECOND, KnockServer, PeerServer
from pp_hostd.agent.witness import Witness
from pp_hostd.model.answer import Answer
from pp_hostd.model.roster import Member
from pp_hostd.peers.client import Heard, Silence, ask, ask_reach, knock_at
from pp_hostd.peers.knock import Call, Knock, Reach, Reached
from pp_hostd.peers.message import Question
from pp_hostd.peers.signing import Keyring
from pp_hostd.service.http_port import HttpPort, Request
from tests.peers.talk import ABOUT, KEYRING, Neighbour, healthy_read, silent_port

NOBODY_THERE = "127.0.0.77"


def server(address: str, port: int, clock: float = 0.0) -> KnockServer:
    """The node `peer`, whose roster has worker-1 at that address."""
    witness = Witness("token")
    witness.listed()
    questions = PeerServer("peer", KEYRING, witness, healthy_read, time.monotonic, 1.5, "openshift")
    members = {"worker-1": Member("worker-1", None, address, "uid", 1, None)}
    return KnockServer("peer", questions, members.get, port, lambda: clock, time.time)


@asynccontextmanager
async def listening(address: str = "127.0.0.1") -> AsyncIterator[int]:
    """A peer's port; worker-1 is at that address, on the same port."""
    port = HttpPort(lambda request: knocks.respond(request))
    number = await port.listen("127.0.0.1", 0)
    knocks = server(address, number)
    try:
        yield number
    finally:
        await port.close()


async def knock(number: int, me: str = "worker-1", keyring: Keyring = KEYRING) -> Heard | Silence:
    return await knock_at(Neighbour(), number, me, keyring, deadline_seconds=10)


async def reach(number: int, node: str = "worker-1", keyring: Keyring = KEYRING) -> Reached | Silence:
    return await ask_reach(Neighbour(), number, node, "leader-1", keyring, deadline_seconds=10)


KNOCK, REACH = Knock("worker-1", "peer", "nonce"), Reach("leader-1", "peer", "nonce", "worker-1")


def as_request(call: Call = KNOCK) -> Request:
    return Request(b"GET", call.path.encode(), dict(call.headers(KEYRING)))


async def test_who_knocks_is_called_back_and_told_the_time() -> None:
    async with listening() as number:
        heard = await knock(number)
    assert isinstance(heard, Heard)
    assert (heard.knocked.reached, heard.knocked.why) == (True, "")
    moments = [heard.sent_wallclock, heard.knocked.arrived_wallclock, heard.knocked.left_wallclock]
    assert moments == sorted(moments) and moments[-1] <= heard.received_wallclock


async def test_who_can_not_be_reached_is_told_why() -> None:
    async with listening(NOBODY_THERE) as number:
        heard = await knock(number)
    assert isinstance(heard, Heard)
    assert (heard.knocked.reached, heard.knocked.why) == (False, "connection refused")


@pytest.mark.parametrize(
    ("me", "keyring", "why"),
    [
        ("stranger", KEYRING, "the roster lists no node of that name"),
        ("worker-1", Keyring((b"o" * 32,)), "both nodes need the same peer key"),
    ],
)
async def test_strangers_are_not_called_back(me: str, keyring: Keyring, why: str) -> None:
    async with listening() as number:
        refused = await knock(number, me, keyring)
    assert isinstance(refused, Silence) and why in refused.reason


async def test_questions_are_answered_as_ever() -> None:
    async with listening() as number:
        said = await ask(Neighbour(), number, Question(ABOUT, "worker-1"), KEYRING, deadline_seconds=10)
    assert isinstance(said, Answer)


@pytest.mark.parametrize("address", ["127.0.0.1", NOBODY_THERE])
async def test_a_host_that_takes_or_refuses_the_connection_is_reached_for_the_leader(address: str) -> None:
    async with listening(address) as number:
        assert await reach(number) == Reached(True, "" if address == "127.0.0.1" else "connection refused")


async def test_a_silent_host_is_silent_for_the_leader_too() -> None:
    with silent_port() as silent:
        reply = await server("127.0.0.1", silent).respond(as_request(REACH))
    assert reply.status == 200
    assert b'"reached":false' in reply.body


@pytest.mark.parametrize(
    ("node", "keyring", "why"),
    [
        ("stranger", KEYRING, "status 403, 'the roster lists no node of that name"),
        ("worker-1", Keyring((b"o" * 32,)), "both nodes need the same peer key"),
    ],
)
async def test_no_door_is_tried_that_the_roster_does_not_list(node: str, keyring: Keyring, why: str) -> None:
    async with listening() as number:
        refused = await reach(number, node, keyring)
    assert isinstance(refused, Silence) and why in refused.reason


async def test_a_host_that_can_not_try_says_so_and_not_that_the_other_is_silent() -> None:
    reply = await server("no-address", 9).respond(as_request(REACH))
    assert reply.status == 503


@pytest.mark.parametrize("call", [KNOCK, REACH])
async def test_no_more_doors_are_tried_in_a_second_than_a_few(call: Call) -> None:
    knocks = server(NOBODY_THERE, 9)
    statuses = [(await knocks.respond(as_request(call))).status for _ in range(MAX_PER_SECOND + 3)]
    assert statuses == [200] * MAX_PER_SECOND + [429] * 3
    assert (await server(NOBODY_THERE, 9).respond(as_request(call))).status == 200


@pytest.mark.parametrize("call", [KNOCK, REACH])
async def test_no_more_doors_are_tried_at_once_than_a_few(call: Call) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=64) as with_backlog:
        knocks = server("127.0.0.1", with_backlog.getsockname()[1])
        replies = await asyncio.gather(*(knocks.respond(as_request(call)) for _ in range(MAX_KNOCKS + 2)))
    assert sorted(reply.status for reply in replies) == [200] * MAX_KNOCKS + [429] * 2
