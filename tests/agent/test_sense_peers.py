"""A round of the inquiry asks all its peers at once, tells each answer as it comes, and is over in time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from pp_hostd.agent.peer_server import PeerServer, Read
from pp_hostd.agent.sense.peers import Round
from pp_hostd.agent.witness import ReadOutcome, Unread, Witness
from pp_hostd.model.answer import Health
from pp_hostd.model.evidence import PeerAnswered
from pp_hostd.model.roster import Member
from pp_hostd.model.settings import Peers, Settings
from pp_hostd.peers.message import MachineReference
from pp_hostd.service.http_port import LIMITS, HttpPort
from tests.agent.objects import boottime, running, until
from tests.kube.sockets import sockets_of_this_process
from tests.peers.talk import KEYRING, QUESTION, healthy_read

PATIENT_SECONDS = 20.0


def peer(number: int) -> Member:
    return Member(f"peer-{number}", None, f"127.0.0.{10 + number}", "uid", 1, None)


async def failed_read(_about: MachineReference, _seconds: float) -> ReadOutcome:
    return Unread.FAILED


class HeldRead:
    """A read that takes until it is let go."""

    def __init__(self) -> None:
        self.let_go = asyncio.Event()
        self.begun = 0

    async def __call__(self, about: MachineReference, seconds: float) -> ReadOutcome:
        self.begun += 1
        await self.let_go.wait()
        return await healthy_read(about, seconds)


@asynccontextmanager
async def peers_that(*reads: Read) -> AsyncIterator[int]:
    """The peers 0, 1, ..., each with its read, on the one port that is theirs."""
    port = 0
    async with AsyncExitStack() as stack:
        for number, read in enumerate(reads):
            witness = Witness("token")
            witness.listed()
            server = PeerServer(peer(number).name, KEYRING, witness, read, boottime, PATIENT_SECONDS, "openshift")
            http = HttpPort(server.respond, LIMITS)
            stack.push_async_callback(http.close)
            port = await http.listen(peer(number).address, port)
        yield port


@dataclass
class Asked:
    """A round, and what it has told."""

    port: int
    round_seconds: float = PATIENT_SECONDS
    max_open: int = 100
    answers: list[PeerAnswered] = field(default_factory=list)

    async def ask(self, count: int) -> None:
        settings = Settings(peers=Peers(port=self.port, round_seconds=self.round_seconds))
        asking = Round(settings, KEYRING, boottime, self.answers.append, self.max_open)
        await asking.ask([peer(number) for number in range(count)], QUESTION)

    def said(self) -> dict[str, Health | None]:
        return {each.peer: each.answer.health if each.answer else None for each in self.answers}


def whom(answers: Sequence[PeerAnswered]) -> list[str]:
    return [each.peer for each in answers]


async def test_every_peer_is_told_once_with_what_it_said() -> None:
    before = boottime()
    async with peers_that(healthy_read, failed_read) as port:
        asked = Asked(port)
        await asked.ask(3)  # nobody listens at the third
    assert asked.said() == {"peer-0": Health.HEALTHY, "peer-1": Health.API_ERROR, "peer-2": None}
    assert sorted(whom(asked.answers)) == ["peer-0", "peer-1", "peer-2"]
    for each in asked.answers:
        assert before < each.began_at < each.ended_at < boottime()
        assert bool(each.silence) == (each.answer is None)


async def test_an_answer_is_told_while_others_are_still_awaited() -> None:
    held = HeldRead()
    async with peers_that(held, healthy_read) as port:
        asked = Asked(port)
        async with running_to_its_end(asked, 2):
            await until(lambda: asked.answers, "the first answer is told")
            assert asked.said() == {"peer-1": Health.HEALTHY}
            held.let_go.set()
    assert asked.said() == {"peer-1": Health.HEALTHY, "peer-0": Health.HEALTHY}


@asynccontextmanager
async def running_to_its_end(asked: Asked, count: int) -> AsyncIterator[None]:
    task = asyncio.ensure_future(asked.ask(count))
    yield
    await task


async def test_who_has_not_answered_by_the_end_of_the_round_is_silent() -> None:
    held = HeldRead()
    async with peers_that(held, healthy_read) as port:
        asked = Asked(port, round_seconds=0.3)
        began_at = boottime()
        await asked.ask(2)
        assert 0.3 <= boottime() - began_at < 5
        held.let_go.set()
    assert asked.said() == {"peer-1": Health.HEALTHY, "peer-0": None}


async def test_with_too_few_sockets_the_rest_is_silent_and_the_round_still_ends_in_time() -> None:
    held = HeldRead()
    async with peers_that(held, held, held) as port:
        asked = Asked(port, round_seconds=0.3, max_open=2)
        await asked.ask(3)
        assert held.begun == 2
        held.let_go.set()
    rest = next(each for each in asked.answers if each.peer == "peer-2")
    assert (rest.answer, rest.silence) == (None, "the round was over before it could be asked")
    assert rest.began_at == rest.ended_at


async def test_a_socket_that_has_become_free_serves_the_next_peer() -> None:
    async with peers_that(healthy_read, healthy_read, healthy_read) as port:
        asked = Asked(port, max_open=1)
        await asked.ask(3)
    assert whom(asked.answers) == ["peer-0", "peer-1", "peer-2"]
    assert set(asked.said().values()) == {Health.HEALTHY}


async def test_a_round_that_is_cancelled_leaves_nothing_open() -> None:
    held = HeldRead()
    async with peers_that(held, held) as port:
        asked = Asked(port)
        before = sockets_of_this_process()
        async with running(asked.ask(2)):
            await until(lambda: held.begun == 2, "both are asked")
            assert len(sockets_of_this_process() - before) >= 2
        held.let_go.set()
        await until(lambda: not sockets_of_this_process() - before, "all sockets are closed")
    assert asked.answers == []
