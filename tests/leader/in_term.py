"""A leader that leads, in this process, on a cluster of its own. All is real but its peers, and it never asks them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, closing
from dataclasses import replace

from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.kubeconfig import load
from pp_hostd.kube.outcome import ApiError
from pp_hostd.kube.resources import CONFIG_MAPS, EVENTS, LEASES, NAMESPACES, NODES, Resource
from pp_hostd.leader.election import Election
from pp_hostd.leader.leader_term import LeaderTerm
from pp_hostd.model.condemnation import Condemned, parse_condemnation
from pp_hostd.model.keys import AGENT, CONDEMNED, ENROLLED, EXTERNAL_REMEDIATION, NAMESPACE, ROSTER
from pp_hostd.model.lease import LEASE
from pp_hostd.model.promise import Armed, GateKind, WatchdogKind
from pp_hostd.model.roster import Roster, parse_roster
from pp_hostd.model.settings import Leader, Settings
from pp_hostd.service.journal import Journal
from tests.agent.objects import Home, boottime, running, until
from tests.contract.objects import annotate, uid_of
from tests.harness.embedded import EmbeddedCluster
from tests.leader.applying import read
from tests.leader.campaign import GIVEN_UP
from tests.peers.talk import KEYRING

LEASE_SECONDS = 60.0
ADDRESSES = {"status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.1"}]}}


class InOffice:
    """The test's side of the cluster: it writes objects, and waits for the Events by which the leader tells people."""

    def __init__(self, home: Home) -> None:
        self.home, self.client = home, home.client

    async def node(self, name: str, *, addressed: bool = True) -> Json:
        """An enrolled node with its machine, the machine's object."""
        machine = await self.home.enrol(name)
        if addressed:
            await self.client.patch(NODES, name, ADDRESSES, subresource="status")
        await self.enrol(name)
        return machine

    async def enrol(self, *names: str) -> None:
        data = {"data": dict.fromkeys(names, "{}")}
        await self.client.patch(CONFIG_MAPS, ENROLLED, data, namespace=NAMESPACE)

    async def promise(self, name: str, machine: Json, self_timeout_seconds: float = 22.0) -> None:
        record = Armed("b", self_timeout_seconds, 10.0, WatchdogKind.HARDWARE, GateKind.HOLD, uid_of(machine), 1)
        await self.annotate_node(name, **{AGENT: record.render()})

    async def annotate_node(self, name: str, **annotations: str) -> None:
        await self.client.patch(NODES, name, annotate(**annotations))

    async def annotate_machine(self, name: str, **annotations: str) -> None:
        await self.client.patch(self.home.kind, name, annotate(**annotations), namespace=self.home.where)

    async def request(self, name: str) -> None:
        await self.annotate_machine(name, **{EXTERNAL_REMEDIATION: ""})

    async def warned(self, kind: Resource, name: str, *words: str, namespace: str = "default") -> None:
        """Wait for a warning about this object that holds these words."""
        await self.told(kind, name, *words, namespace=namespace, types=("Warning",))

    async def told(
        self,
        kind: Resource,
        name: str,
        *words: str,
        namespace: str = "default",
        types: tuple[str, ...] = ("Normal", "Warning"),
    ) -> None:
        while True:  # pytest-timeout bounds it
            events = await self.events(kind, name, namespace)
            messages = [event["message"] for event in events if event["type"] in types]
            if any(all(word in message for word in words) for message in messages):
                return
            await asyncio.sleep(0.02)

    async def events(self, kind: Resource, name: str, namespace: str = "default") -> list[Json]:
        selector = f"involvedObject.kind={kind.kind},involvedObject.name={name}"
        return list((await self.client.list(EVENTS, namespace=namespace, field_selector=selector)).items)

    async def listed(self, name: str) -> None:
        """Wait until this node is in the roster."""
        while True:  # pytest-timeout bounds it
            found = await read(self.client, CONFIG_MAPS, ROSTER, NAMESPACE)
            roster = None if found is None else parse_roster(found["data"][ROSTER])
            if isinstance(roster, Roster) and name in [row.name for row in roster.members()]:
                return
            await asyncio.sleep(0.02)

    async def left_alone(self, name: str) -> bool:
        """Whether the leader has laid no hand on the Node or its machine."""
        node = await self.client.get(NODES, name)
        machine = await self.client.get(self.home.kind, name, namespace=self.home.where)
        condemned = isinstance(parse_condemnation(machine["metadata"]), Condemned)
        taints = [taint["key"] for taint in node["spec"].get("taints", ())]
        return not condemned and CONDEMNED not in taints and "unschedulable" not in node["spec"]


@asynccontextmanager
async def in_term(machines: str) -> AsyncIterator[InOffice]:
    """From when it leads."""
    with EmbeddedCluster.start() as cluster, closing(client_for(str(cluster.kubeconfig()))) as client:
        for namespace in (NAMESPACE, "metal", "elsewhere"):
            await client.create(NAMESPACES, {"metadata": {"name": namespace}})
        await client.create(CONFIG_MAPS, {"metadata": {"name": ENROLLED}}, namespace=NAMESPACE)
        settings = Settings(leader=Leader(start_grace_seconds=0.0, max_unhealthy="100%", resets_per_hour="1000"))
        async with term(client, replace(settings, api=replace(settings.api, machines=machines))):
            yield InOffice(Home(client, machines, "metal"))


def client_for(kubeconfig: str) -> ApiClient:
    return ApiClient(load(kubeconfig), deadline_seconds=10)


@asynccontextmanager
async def term(client: ApiClient, settings: Settings) -> AsyncIterator[LeaderTerm]:
    """A leader's term, from when it leads; whoever led before has given that up."""
    await unless_there(client.create(LEASES, {"metadata": {"name": LEASE}}, namespace=NAMESPACE))
    await client.patch(LEASES, LEASE, {"spec": GIVEN_UP}, namespace=NAMESPACE)
    wake = asyncio.Event()
    with closing(Journal("/nonexistent")) as journal:
        election = Election(client, "leader-host", LEASE_SECONDS, boottime, wake.set)
        async with running(election.run()):
            await until(lambda: election.acting(boottime()), "it leads")
            leader_term = LeaderTerm(settings, "leader-host", client, KEYRING, election, journal, boottime, wake)
            async with running(leader_term.serve()):
                yield leader_term


async def unless_there(creation: Awaitable[object]) -> None:
    try:
        await creation
    except ApiError as error:
        assert error.reason == "AlreadyExists", error
