"""Rule 10's questions: peers answer the leader about somebody else, and only "unhealthy" with an id acknowledges."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import pytest

from pp_hostd.agent.peer_server import PeerServer, Read
from pp_hostd.agent.witness import ReadOutcome, Witness
from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.kubeconfig import Kubeconfig
from pp_hostd.leader.apply import MAX_OPEN
from pp_hostd.leader.remedies.poison_pill.steps import AskPeers
from pp_hostd.leader.steps.port import Acknowledged, NotAcknowledged
from pp_hostd.model.condemnation import Condemned
from pp_hostd.model.machine import Machine
from pp_hostd.model.roster import Member
from pp_hostd.model.settings import Peers, Settings
from pp_hostd.model.step import Written
from pp_hostd.peers.message import MachineReference
from pp_hostd.service.http_port import LIMITS, HttpPort
from tests.agent.objects import SINCE, Home, boottime, until
from tests.leader.applying import Actuators
from tests.peers.talk import KEYRING, healthy_read


def peer(number: int) -> Member:
    return Member(f"peer-{number}", None, f"127.0.0.{10 + number}", "uid", 1, None)


async def condemned_read(about: MachineReference, _seconds: float) -> ReadOutcome:
    return Machine(about.namespace, about.name, about.uid, "1", Condemned(7, SINCE), None)


async def another_machine(about: MachineReference, _seconds: float) -> ReadOutcome:
    return Machine(about.namespace, about.name, "another", "1", Condemned(7, SINCE), None)


@asynccontextmanager
async def peers_that(*reads: Read, machines: str = "node") -> AsyncIterator[int]:
    """The peers 0, 1, ..., each with its read, on the one port that is theirs."""
    port = 0
    async with AsyncExitStack() as stack:
        for number, read in enumerate(reads):
            witness = Witness(f"token-{number}")
            witness.listed()
            server = PeerServer(peer(number).name, KEYRING, witness, read, boottime, 20.0, machines)
            http = HttpPort(server.respond, LIMITS)
            stack.push_async_callback(http.close)
            port = await http.listen(peer(number).address, port)
        yield port


def asking(kubeconfig: Kubeconfig, port: int, round_seconds: float = 20.0) -> Actuators:
    client = ApiClient(kubeconfig, deadline_seconds=1.0)  # nobody asks the API here
    return Actuators(Home(client, "node", ""), settings=Settings(peers=Peers(port=port, round_seconds=round_seconds)))


@pytest.mark.parametrize(("machines", "machine_key"), [("openshift", "metal/worker"), ("node", "worker")])
async def test_each_peer_is_told_once_with_what_it_said(
    kubeconfig: Kubeconfig, machines: str, machine_key: str
) -> None:
    before = boottime()
    async with peers_that(condemned_read, healthy_read, another_machine, machines=machines) as port:
        actuators = asking(kubeconfig, port)
        ended = await actuators.do(
            AskPeers(machine_key, "uid", tuple(map(peer, range(4))))
        )  # nobody listens at the last
    assert (ended.written, ended.sentence) == (Written.DONE, "")
    told = {each.peer: each for each in actuators.news if isinstance(each, (Acknowledged, NotAcknowledged))}
    assert len(told) == len(actuators.news) - 1 == 4
    assert all(each.node == "worker" and before < each.asked_at < boottime() for each in told.values())
    yes = told["peer-0"]
    assert isinstance(yes, Acknowledged)
    assert (yes.id, yes.token) == (7, "token-0.1")
    others = [told[f"peer-{number}"] for number in (1, 2, 3)]
    assert [(each.answered, each.sentence) for each in others if isinstance(each, NotAcknowledged)] == [
        (True, "it says healthy"),
        (True, "it says not-found"),
        (False, "connection refused"),
    ]


async def test_an_answer_with_another_key_is_none(kubeconfig: Kubeconfig) -> None:
    async with peers_that(condemned_read) as port:
        actuators = asking(kubeconfig, port)
        actuators.apply.keyring = replace(KEYRING, keys=(b"x" * 32,))
        await actuators.done(AskPeers("worker", "uid", (peer(0),)))
    [said, _] = actuators.news
    assert isinstance(said, NotAcknowledged)
    assert not said.answered
    assert "403" in said.sentence


async def test_a_peer_that_is_silent_lets_its_time_pass_and_so_many_are_asked_at_once(kubeconfig: Kubeconfig) -> None:
    connected: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _reader, writer: connected.append(writer), "127.0.0.1", 0)
    actuators = asking(kubeconfig, server.sockets[0].getsockname()[1], round_seconds=1.0)
    many = tuple(replace(peer(0), name=f"peer-{number}", address="127.0.0.1") for number in range(MAX_OPEN + 6))
    actuators.apply.start("worker", AskPeers("worker", "uid", many))
    await until(lambda: len(connected) == MAX_OPEN, "as many are asked as may be at once")
    assert actuators.news == []
    await until(lambda: len(actuators.news) == len(many) + 1, "all were asked, and the step has ended")
    assert len(connected) == len(many)
    assert all(isinstance(each, NotAcknowledged) and not each.answered for each in actuators.news[:-1])
    for writer in connected:
        writer.transport.abort()
    server.close()
    await server.wait_closed()
