"""One term on a real API: one roster at a time, no hammering while the watch is late, and few at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Callable

from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.connection import Connection
from pp_hostd.kube.kubeconfig import load
from pp_hostd.kube.outcome import ApiError, Outcome
from pp_hostd.kube.resources import CONFIG_MAPS, LEASES, NAMESPACES, NODES, Resource
from pp_hostd.leader.apply import MAX_OPEN, MAX_OPEN_IN_ALL, MAX_UNDER_WAY
from pp_hostd.leader.election import Election
from pp_hostd.leader.leader_term import LeaderTerm
from pp_hostd.leader.remedies.poison_pill.steps import AskPeers
from pp_hostd.leader.steps.machines import Inspect
from pp_hostd.leader.steps.own_objects import WriteRoster
from pp_hostd.leader.steps.port import StepEnded
from pp_hostd.model.keys import CORDONED, ENROLLED, LEADER, NAMESPACE, ROSTER
from pp_hostd.model.lease import LEASE
from pp_hostd.model.roster import Member, Roster, parse_roster
from pp_hostd.model.settings import Api, Peers, Settings
from pp_hostd.service.journal import Journal
from tests.agent.objects import Home, boottime, running, until
from tests.contract.objects import sample
from tests.harness.embedded import EmbeddedCluster
from tests.harness.eventually import HANGS_SECONDS
from tests.harness.trouble import TroubleServer
from tests.kube.conftest import Dial
from tests.leader.applying import Actuators, read
from tests.leader.campaign import GIVEN_UP
from tests.peers.talk import KEYRING

ADDRESSED = {"status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.1"}]}}
SETTINGS = Settings(api=Api(machines="node"))


class Watched(ApiClient):
    """Counts the writes of the roster, which last while `held`; once `late`, it shows nothing new of the Nodes."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        super().__init__(load(str(cluster.kubeconfig())), deadline_seconds=10.0)
        self.writes = 0
        self.held, self.late = asyncio.Event(), False
        self.held.set()

    async def create(self, resource: Resource, body: Json, **options: Any) -> Json:
        await self._begins(resource, body)
        return await super().create(resource, body, **options)

    async def update(self, resource: Resource, body: Json, **options: Any) -> Json:
        await self._begins(resource, body)
        return await super().update(resource, body, **options)

    async def open_watch(self, resource: Resource, *rest: Any) -> Connection:
        if self.late and resource is NODES:
            await asyncio.Event().wait()
        return await super().open_watch(resource, *rest)

    async def _begins(self, resource: Resource, body: Json) -> None:
        if (resource, body["metadata"]["name"]) == (CONFIG_MAPS, ROSTER):
            self.writes += 1
            await self.held.wait()


@asynccontextmanager
async def cluster(leaders_client: type[Watched] = Watched) -> AsyncIterator[tuple[Watched, ApiClient]]:
    """The leader's client, and one for everybody else."""
    with EmbeddedCluster.start() as cluster:
        client, other = leaders_client(cluster), ApiClient(load(str(cluster.kubeconfig())), deadline_seconds=10.0)
        await other.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        await other.create(LEASES, {"metadata": {"name": LEASE}, "spec": GIVEN_UP}, namespace=NAMESPACE)
        await other.create(CONFIG_MAPS, {"metadata": {"name": ENROLLED}, "data": {}}, namespace=NAMESPACE)
        yield client, other
        client.close()
        other.close()


@asynccontextmanager
async def in_term(client: ApiClient) -> AsyncIterator[asyncio.Task[None]]:
    wake, journal = asyncio.Event(), Journal("/nonexistent")
    election = Election(client, "leader-host", 60.0, boottime, wake.set)
    async with running(election.run()):
        await until(lambda: election.acting(boottime()), "it leads")
        leader_term = LeaderTerm(SETTINGS, "leader-host", client, KEYRING, election, journal, boottime, wake)
        serving = asyncio.create_task(leader_term.serve())
        yield serving
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
    journal.close()


async def enrol(client: ApiClient, *names: str) -> None:
    for name in names:
        await client.create(NODES, sample(NODES, name))
        await client.patch(NODES, name, ADDRESSED, subresource="status")
        await client.patch(CONFIG_MAPS, ENROLLED, {"data": {name: "{}"}}, namespace=NAMESPACE)


async def eventually(check: Callable[[], Awaitable[bool]]) -> None:
    """As the API tells it; pytest-timeout bounds it."""
    while True:
        if await check():
            return
        await asyncio.sleep(0.05)


async def are_listed(client: ApiClient, number: int) -> bool:
    found = await read(client, CONFIG_MAPS, ROSTER, NAMESPACE)
    roster = None if found is None else parse_roster(found["data"][ROSTER])
    return isinstance(roster, Roster) and len(list(roster.members())) == number


async def is_uncordoned(client: ApiClient, name: str) -> bool:
    return CORDONED not in (await client.get(NODES, name))["metadata"].get("annotations", {})


async def test_while_a_roster_is_being_written_no_other_one_is() -> None:
    async with cluster() as (client, other), in_term(client):
        client.held.clear()
        await enrol(other, "node-0")
        await until(lambda: client.writes == 1, "the first one is on its way")
        await enrol(other, *(f"node-{number}" for number in range(1, 10)))
        await asyncio.sleep(1.0)
        assert client.writes == 1
        client.held.set()
        await eventually(lambda: are_listed(other, 10))
        assert client.writes <= 3


async def test_nodes_that_come_one_after_the_other_make_few_versions_of_the_roster() -> None:
    async with cluster() as (client, other), in_term(client):
        for number in range(20):
            await enrol(other, f"node-{number}")
            await asyncio.sleep(0.05)
        await eventually(lambda: are_listed(other, 20))
        assert client.writes <= 4


async def test_a_roster_that_fails_in_a_way_that_nobody_foresaw_is_told_and_written_again() -> None:
    class Broken(Actuators):
        async def shows(self, *_: object) -> bool:
            raise RuntimeError("a fault")

    async with cluster() as (_, other):
        order = WriteRoster(Roster.of(1, 1, ()), None)
        assert await Broken(Home(other, "node", "")).apply.write_roster(order) == "unforeseen: RuntimeError('a fault')"


async def test_while_the_watch_is_late_what_is_done_already_is_not_asked_for_again_and_again() -> None:
    async with cluster() as (client, other):
        client.late = True
        await other.create(NODES, sample(NODES, "worker", annotations={CORDONED: "7"}))
        async with in_term(client):
            await eventually(lambda: is_uncordoned(other, "worker"))
            await asyncio.sleep(6.0)  # by then it no longer waits for the watch
            before = client.requests
            await asyncio.sleep(2.0)
            assert client.requests - before < 20


class Deaf(Watched):
    """Takes the first cancellation of its status report for a deadline, as any call may before Python 3.11."""

    is_reporting = False

    async def patch(self, resource: Resource, name: str, patch: Json, **options: Any) -> Json:
        if name == LEADER and not self.is_reporting:
            self.is_reporting = True
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise ApiError(Outcome.TIMED_OUT, "no whole answer in time") from None
        return await super().patch(resource, name, patch, **options)


async def test_a_term_ends_even_if_a_deadline_takes_its_end_for_its_own() -> None:
    """Or the leader would go on renewing its Lease, and never act again."""
    async with cluster(Deaf) as (client, _), in_term(client) as leader_term:
        await until(lambda: getattr(client, "is_reporting", False), "it writes its status")
        leader_term.cancel()
        done, _pending = await asyncio.wait({leader_term}, timeout=HANGS_SECONDS)
        assert done == {leader_term}


async def test_a_process_has_descriptors_left_however_many_steps_there_are(trouble: TroubleServer, dial: Dial) -> None:
    port = trouble.listen("silent")
    actuators = Actuators(Home(dial(port.url, deadline_seconds=2.0), "node", ""))
    for number in range(MAX_UNDER_WAY + 6):
        actuators.apply.start(f"node-{number}", Inspect(f"node-{number}", f"node-{number}"))
    await until(lambda: len(port.requests) == MAX_UNDER_WAY, "as many are under way as may be at once")
    assert actuators.news == []
    await until(lambda: len(actuators.news) == MAX_UNDER_WAY + 6, "all have ended")
    assert len(port.requests) == MAX_UNDER_WAY + 6


async def test_a_process_has_descriptors_left_however_many_nodes_are_asked_about(dial: Dial) -> None:
    connected: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _reader, writer: connected.append(writer), "127.0.0.1", 0, backlog=500)
    peers = Peers(port=server.sockets[0].getsockname()[1], round_seconds=2.0)
    actuators = Actuators(Home(dial("https://192.0.2.1"), "node", ""), settings=replace(SETTINGS, peers=peers))
    asked = tuple(Member(f"peer-{number}", None, "127.0.0.1", "uid", 1, None) for number in range(MAX_OPEN))
    nodes = MAX_OPEN_IN_ALL // MAX_OPEN + 1
    for number in range(nodes):
        actuators.apply.start(f"node-{number}", AskPeers(f"node-{number}", "uid", asked))
    await until(lambda: len(connected) == MAX_OPEN_IN_ALL, "as many are asked as may be at once")
    assert actuators.news == []
    await until(lambda: sum(isinstance(each, StepEnded) for each in actuators.news) == nodes, "all were asked")
    assert len(connected) == nodes * MAX_OPEN
    for writer in connected:
        writer.transport.abort()
    server.close()
    await server.wait_closed()
