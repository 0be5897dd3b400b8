"""Knocks on the peer port: the peer calls back where its roster says, and nowhere else; a few, and no more."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pp_hostd.agent.peer_server import CALL_BACK_SECONDS, MAX_KNOCKS, MAX_PER_SECOND, KnockServer, PeerServer
from pp_hostd.agent.witness import Witness
from pp_hostd.model.answer import Answer
from pp_hostd.model.roster import Member
from pp_hostd.peers.client import Heard, Silence, ask, call_back, knock_at
from pp_hostd.peers.knock import PATH, Knock
from pp_hostd.peers.message import Question
from pp_hostd.peers.signing import Keyring
from pp_hostd.service.http_port import HttpPort, Request
from tests.peers.talk import ABOUT, KEYRING, Neighbour, healthy_read

NOBODY_THERE = "127.0.0.77"
SILENT = "192.0.2.1"
"""Of a network for documentation: whoever connects there waits."""


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


def as_request(me: str = "worker-1") -> Request:
    return Request(b"GET", PATH.encode(), dict(Knock(me, "peer", "nonce").headers(KEYRING)))


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


async def test_no_more_are_called_back_in_a_second_than_a_few() -> None:
    knocks = server(NOBODY_THERE, 9)
    statuses = [(await knocks.respond(as_request())).status for _ in range(MAX_PER_SECOND + 3)]
    assert statuses == [200] * MAX_PER_SECOND + [429] * 3
    assert (await server(NOBODY_THERE, 9).respond(as_request())).status == 200


async def test_no_more_are_called_back_at_once_than_a_few() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=16) as with_backlog:
        knocks = server("127.0.0.1", with_backlog.getsockname()[1])
        replies = await asyncio.gather(*(knocks.respond(as_request()) for _ in range(MAX_KNOCKS + 2)))
    assert sorted(reply.status for reply in replies) == [200] * MAX_KNOCKS + [429] * 2


async def test_a_call_back_ends_in_time() -> None:
    began_at = time.monotonic()
    assert await call_back(SILENT, 9, 0.2) != ""
    assert time.monotonic() - began_at < CALL_BACK_SECONDS
