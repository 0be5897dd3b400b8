"""The peer port's answers: each rests on a read begun after its question arrived, and never comes late."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone

import pytest

from pp_hostd.agent.fresh_reads import MAX_READS, MAX_WAITING
from pp_hostd.agent.peer_server import MAX_NONCES, PeerServer
from pp_hostd.agent.witness import ReadOutcome, Unread, Witness
from pp_hostd.model.answer import Answer, Health
from pp_hostd.model.condemnation import Condemned, NotRequested
from pp_hostd.model.machine import Machine
from pp_hostd.peers.client import Silence, ask
from pp_hostd.peers.message import MachineReference, Question, Refusal
from pp_hostd.peers.signing import UNSIGNED
from pp_hostd.service.http_port import Request
from tests.peers.talk import (
    ABOUT,
    KEYRING,
    QUESTION,
    Listening,
    Neighbour,
    exchange,
    healthy_read,
    one_reply,
    peer_port,
    request,
    say,
)

SINCE = datetime(2026, 3, 1, tzinfo=timezone.utc)
CONDEMNED = Machine("metal", "worker-1", "uid-1", "1", Condemned(7, SINCE), None)
FREE = Machine("metal", "worker-1", "uid-1", "1", NotRequested(0), None)


@dataclass
class SlowApi:
    """Reads that end when the test says so."""

    begun: list[tuple[MachineReference, asyncio.Future[ReadOutcome]]] = field(default_factory=list)
    given_seconds: list[float] = field(default_factory=list)

    async def read(self, about: MachineReference, deadline_seconds: float) -> ReadOutcome:
        ending: asyncio.Future[ReadOutcome] = asyncio.get_running_loop().create_future()
        self.begun.append((about, ending))
        self.given_seconds.append(deadline_seconds)
        return await ending

    async def until(self, count: int) -> None:
        """So many reads have begun."""
        while len(self.begun) < count:  # noqa: ASYNC110  (pytest-timeout bounds it)
            await asyncio.sleep(0.001)


async def put(port: Listening, question: Question = QUESTION) -> Answer | Silence:
    return await ask(Neighbour(), port.number, question, KEYRING, deadline_seconds=10)


def asking(port: Listening, question: Question = QUESTION) -> asyncio.Task[Answer | Silence]:
    return asyncio.create_task(put(port, question))


async def health(answer: Awaitable[Answer | Silence]) -> Health:
    given = await answer
    assert isinstance(given, Answer), given
    return given.health


def server_of(api: SlowApi, read_seconds: float = 60) -> PeerServer:
    witness = Witness("token")
    witness.listed()
    return PeerServer("peer", UNSIGNED, witness, api.read, time.monotonic, read_seconds, "openshift")


def as_request(about: MachineReference = ABOUT) -> Request:
    asked = exchange(Question(about, "worker-1"))
    return Request(b"GET", about.path.encode(), dict(asked.headers(UNSIGNED)))


async def test_a_condemned_machine_is_acknowledged_and_remembered() -> None:
    outcomes: list[ReadOutcome] = [CONDEMNED, Unread.FAILED, FREE]

    async def read(_about: MachineReference, _seconds: float) -> ReadOutcome:
        return outcomes.pop(0)

    async with peer_port(read) as port:
        first, second = await put(port), await put(port)
        assert isinstance(first, Answer) and isinstance(second, Answer)
        assert (first.health, first.id) == (second.health, second.id) == (Health.UNHEALTHY, 7)
        assert first.token == second.token
        assert await health(put(port)) is Health.HEALTHY


async def test_a_machine_with_another_uid_is_not_found() -> None:
    async def read(_about: MachineReference, _seconds: float) -> ReadOutcome:
        return replace(FREE, uid="another")

    async with peer_port(read) as port:
        assert await health(put(port)) is Health.NOT_FOUND


@pytest.mark.parametrize(
    ("machines", "about"), [("node", ABOUT), ("openshift", MachineReference(None, "worker-1", "uid-1"))]
)
async def test_about_a_machine_of_another_kind_nothing_is_said(machines: str, about: MachineReference) -> None:
    """It would say "api-error" for a condemned host that asks amiss, or "not-found" of every healthy one."""
    async with peer_port(machines=machines) as port:
        said = await put(port, Question(about, "worker-1"))
        assert isinstance(said, Silence) and "the setting api.machines differs" in said.reason
        assert port.server.refusals[Refusal.ANOTHER_KIND] == 1


async def test_a_read_that_does_not_end_is_answered_as_failed_in_time() -> None:
    api = SlowApi()
    async with peer_port(api.read, read_seconds=0.2) as port:
        assert await health(put(port)) is Health.API_ERROR
        port.witness.learned(ABOUT.machine_key, ABOUT.uid, 7, time.monotonic())
        assert await health(put(port)) is Health.UNHEALTHY
        api.begun[0][1].set_result(FREE)


async def test_a_question_never_joins_a_read_under_way() -> None:
    """The condemnation lies between the first read's beginning and the second question (rule 1)."""
    api = SlowApi()
    async with peer_port(api.read) as port:
        first = asking(port)
        await api.until(1)
        second = asking(port)
        api.begun[0][1].set_result(FREE)
        assert await health(first) is Health.HEALTHY
        await api.until(2)
        api.begun[1][1].set_result(CONDEMNED)
        assert await health(second) is Health.UNHEALTHY


async def test_questions_join_the_one_read_that_waits() -> None:
    api = SlowApi()
    server = server_of(api)
    tasks = [asyncio.create_task(server.respond(as_request())) for _ in range(10)]
    await api.until(1)
    for _ in range(5):
        await asyncio.sleep(0)
    assert len(api.begun) == 1
    api.begun[0][1].set_result(FREE)
    await api.until(2)
    assert [task.done() for task in tasks].count(True) == 1
    api.begun[1][1].set_result(CONDEMNED)
    replies = [json.loads((await task).body)["answer"] for task in tasks]
    assert replies.count("healthy") == 1 and replies.count("unhealthy") == 9
    assert len(api.begun) == 2


async def test_a_read_gets_the_time_that_is_left_since_the_question_arrived() -> None:
    api = SlowApi()
    server = server_of(api, read_seconds=0.5)
    first = asyncio.create_task(server.respond(as_request()))
    await api.until(1)
    second = asyncio.create_task(server.respond(as_request()))
    await asyncio.sleep(0.3)
    api.begun[0][1].set_result(FREE)
    await api.until(2)
    assert api.given_seconds[0] > 0.45 and 0 < api.given_seconds[1] <= 0.2
    api.begun[1][1].set_result(FREE)
    await asyncio.gather(first, second)


async def test_an_acknowledgement_does_not_spoil_the_read_that_follows_it() -> None:
    """Or a machine whose condemnation was lifted could stay "unhealthy" for as long as it is asked about."""
    api = SlowApi()
    server = server_of(api)
    first = asyncio.create_task(server.respond(as_request()))
    await api.until(1)
    second = asyncio.create_task(server.respond(as_request()))
    await asyncio.sleep(0)
    api.begun[0][1].set_result(CONDEMNED)
    await api.until(2)
    api.begun[1][1].set_result(FREE)
    answers = [json.loads(reply.body)["answer"] for reply in await asyncio.gather(first, second)]
    assert answers == ["unhealthy", "healthy"]


async def test_reads_at_once_and_waiting_are_bounded_and_the_rest_is_answered_at_once() -> None:
    api = SlowApi()
    server = server_of(api)
    abouts = [replace(ABOUT, name=f"worker-{number}") for number in range(MAX_READS + MAX_WAITING + 5)]
    tasks = [asyncio.create_task(server.respond(as_request(about))) for about in abouts]
    await api.until(MAX_READS)
    for _ in range(5):
        await asyncio.sleep(0)
    assert len(api.begun) == MAX_READS
    done = [task for task in tasks if task.done()]
    assert len(done) == 5
    assert all(json.loads(task.result().body)["answer"] == "api-error" for task in done)
    while not all(task.done() for task in tasks):
        for about, ending in api.begun:
            if not ending.done():
                ending.set_result(Machine(about.namespace, about.name, about.uid, "1", NotRequested(0), None))
        await asyncio.sleep(0)
    assert server.answers[Health.HEALTHY] == MAX_READS + MAX_WAITING


async def test_a_client_that_leaves_takes_no_answer_from_others() -> None:
    api = SlowApi()
    server = server_of(api)
    running = asyncio.create_task(server.respond(as_request()))
    await api.until(1)
    leaving, staying = (asyncio.create_task(server.respond(as_request())) for _ in range(2))
    await asyncio.sleep(0)
    leaving.cancel()
    api.begun[0][1].set_result(FREE)
    await api.until(2)
    api.begun[1][1].set_result(FREE)
    assert json.loads((await staying).body)["answer"] == json.loads((await running).body)["answer"] == "healthy"


async def test_a_nonce_is_taken_once() -> None:
    async with peer_port() as port:
        asked = request(exchange())
        assert (await say(port.number, asked, end=True)).startswith(b"HTTP/1.1 200 ")
        assert (await say(port.number, asked, end=True)).startswith(b"HTTP/1.1 409 ")
        assert port.server.refusals[Refusal.REPLAYED] == 1


async def test_remembered_nonces_are_bounded() -> None:
    witness = Witness("token")
    witness.listed()
    server = PeerServer("peer", UNSIGNED, witness, healthy_read, time.monotonic, 1.5, "openshift")
    first = as_request()
    await server.respond(first)
    for _ in range(MAX_NONCES - 1):
        await server.respond(as_request())
    assert (await server.respond(first)).status == 409
    await server.respond(as_request())
    assert (await server.respond(first)).status == 200


async def test_a_refused_question_burns_no_nonce() -> None:
    async with peer_port() as port:
        asked = exchange()
        assert (await say(port.number, request(asked, UNSIGNED), end=True)).startswith(b"HTTP/1.1 403 ")
        assert (await say(port.number, request(asked), end=True)).startswith(b"HTTP/1.1 200 ")


async def test_a_connection_carries_many_questions_in_order() -> None:
    async with peer_port() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port.number)
        asked = [exchange() for _ in range(50)]
        writer.write(b"".join(request(each) for each in asked))
        for each in asked:
            status, body = await one_reply(reader)
            assert status == 200 and json.loads(body)["nonce"] == each.nonce
        writer.close()
        await writer.wait_closed()


async def test_answers_and_refusals_are_counted() -> None:
    async with peer_port() as port:
        await put(port)
        await ask(Neighbour("stranger"), port.number, QUESTION, KEYRING, deadline_seconds=5)
        samples = {
            (metric.name, *labels.values()): value
            for metric in (*port.server.metrics(), *port.http.metrics("pp_hostd_peer"))
            for labels, value in metric.samples
        }
    assert samples["pp_hostd_peer_answers_total", "healthy"] == 1
    assert samples["pp_hostd_peer_answers_total", "api-error"] == 0
    assert samples["pp_hostd_peer_refusals_total", "not-me"] == 1
    assert samples["pp_hostd_peer_connections_ended_total", "evicted"] == 0
    assert ("pp_hostd_peer_connections",) in samples
