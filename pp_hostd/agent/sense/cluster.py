"""The agent's access to the API: the client once there are credentials, its reads, its watches and its Node."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Collection, Iterator
from dataclasses import replace
from functools import partial
from typing import Callable, Protocol, cast

from pp_hostd.agent.act.aside import aside
from pp_hostd.agent.rosters import Rosters
from pp_hostd.agent.sense.api import Clock, MachineReader, OwnMachine, backup_exists
from pp_hostd.agent.senses import AgentSenses
from pp_hostd.agent.witness import ReadOutcome, Unread
from pp_hostd.errors import UserError
from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.kubeconfig import Kubeconfig, load, load_aside
from pp_hostd.kube.outcome import ApiError, is_missing, is_unserved, written_by
from pp_hostd.kube.renewing import RENEWED, Following, Renewing
from pp_hostd.kube.resources import CONFIG_MAPS, MACHINES, NODES, Resource
from pp_hostd.kube.watch import Change, ChangeKind, Event, Interrupted, Snapshot, watch
from pp_hostd.model.boot_commitments import Look, StoreEnded
from pp_hostd.model.condemnation import Condemned
from pp_hostd.model.control import LONGEST_CLUSTER_MAINTENANCE_SECONDS, Maintenance, parse_control
from pp_hostd.model.endpoint import parse_endpoint
from pp_hostd.model.evidence import Read
from pp_hostd.model.keys import AGENT, CONDEMNED, CONTROL, NAMESPACE, ROSTER
from pp_hostd.model.machine import parse_machine
from pp_hostd.model.node import Node, parse_node
from pp_hostd.model.promise import AgentRecord
from pp_hostd.model.record import Unreadable
from pp_hostd.model.roster import Roster, parse_roster
from pp_hostd.model.settings import Settings
from pp_hostd.model.step import Written
from pp_hostd.peers.message import MachineReference
from pp_hostd.service.expiry import ExpiryNotice
from pp_hostd.service.journal import Journal, Message, Priority
from pp_hostd.service.metric import Metric


async def read_node(client: ApiClient, name: str, clock: Clock) -> Look:
    """The Node now, by a linearizable read; for one that is missing, also whether there is a backup (rule 6)."""
    began_at = clock()
    try:
        node = parse_node(await client.get(NODES, name))
    except ApiError as error:
        if not is_missing(error):
            return Look(began_at, clock(), failure=error.sentence)
        return await _missing(client, name, began_at, clock)
    if isinstance(node, Unreadable):
        return Look(began_at, clock(), failure=f"reading Node {name}: {node}")
    return Look(began_at, clock(), node)


async def _missing(client: ApiClient, name: str, began_at: float, clock: Clock) -> Look:
    try:
        backup = await backup_exists(client, name)
    except ApiError as error:
        return Look(began_at, clock(), failure=error.sentence)
    return Look(began_at, clock(), missing=True, backup=backup)


async def store(client: ApiClient, node: Node, record: AgentRecord, clock: Clock) -> StoreEnded:
    """Write the record, if the Node is still the one that was read."""
    try:
        reply = parse_node(await client.patch(NODES, node.name, _patch(node, record)))
    except ApiError as error:
        return StoreEnded(record, node.resource_version, written_by(error), clock(), sentence=error.sentence)
    if isinstance(reply, Unreadable) or reply.agent != record or reply.uid != node.uid:
        sentence = f"patching Node {node.name}: the reply does not show what was written"
        return StoreEnded(record, node.resource_version, Written.UNKNOWN, clock(), sentence=sentence)
    return StoreEnded(record, node.resource_version, Written.DONE, clock(), reply)


def _patch(node: Node, record: AgentRecord) -> Json:
    condition = {"uid": node.uid, "resourceVersion": node.resource_version}
    return {"metadata": {**condition, "annotations": {AGENT: record.render()}}}


PAUSE_SECONDS = 2.0
"""Before all versions of the machines' API are tried again, where none is served."""


class Hearer(Protocol):
    """The receiver of the news of a CondemnedWatch."""

    def learned(self, machine_key: str, uid: str, condemnation_id: int, at: float) -> None:
        """This machine, perhaps the host's own, is condemned under that id."""

    def listed(self) -> None:
        """All that are condemned have been told. Said again after an interruption that may have hidden some."""


class CondemnedWatch:
    """Reports every condemned machine. `trouble` says why news may be late or missing; empty if they are not."""

    def __init__(self, client: ApiClient, machines: str, clock: Clock, hearer: Hearer) -> None:
        self.trouble = "the condemned machines have not been listed yet"
        self._client = client
        self._versions = MACHINES[machines]
        self._clock = clock
        self._hearer = hearer
        self._fault = ""

    async def run(self) -> None:
        """Goes on until it is cancelled."""
        while True:
            for resource in self._versions:
                await self._follow(resource)
            await asyncio.sleep(PAUSE_SECONDS)

    async def _follow(self, resource: Resource) -> None:
        """The news in this version of the API, for as long as it is served."""
        events = cast("AsyncGenerator[Event, None]", watch(self._client, resource, label_selector=CONDEMNED))
        async for event in events:
            if isinstance(event, Interrupted) and is_unserved(event.error):
                self.trouble = event.error.sentence
                await events.aclose()
                return
            self._take(event)

    def _take(self, event: Event) -> None:
        if isinstance(event, Interrupted):
            self.trouble = event.error.sentence
            return
        if isinstance(event, Snapshot):
            faults = [self._tell(item) for item in event.items]
            self._fault = next(filter(None, faults), "")
            self._hearer.listed()
        elif isinstance(event, Change):  # lifted or gone: no news acquits
            self._fault = "" if event.kind is ChangeKind.DELETED else self._tell(event.object)
        self.trouble = self._fault  # a bookmark says that the watch goes on, and nothing of the machines

    def _tell(self, api_object: Json) -> str:
        """Tells the hearer if the machine is condemned. Returns the fault of the machine; empty if none."""
        machine = parse_machine(api_object)
        if isinstance(machine, Unreadable):
            return f"a machine with the label {CONDEMNED}: {machine}"
        if isinstance(machine.condemnation, Unreadable):
            return f"machine {machine.machine_key}: {machine.condemnation}"
        if isinstance(machine.condemnation, Condemned):
            self._hearer.learned(machine.machine_key, machine.uid, machine.condemnation.id, self._clock())
        return ""


WHAT = f"ConfigMap {NAMESPACE}/{ROSTER}"


class RosterWatch:
    """`roster` is the newest that could be read; `trouble` is what is wrong with the one in the cluster, if any.

    `store` takes each new one, and keeps it for the next run of the agent, which begins with it as `known`.
    """

    def __init__(self, client: ApiClient, known: Roster | None, store: Callable[[Roster], None]) -> None:
        self.roster = known
        self.trouble = self._fault = "" if known else f"{WHAT} has not been read yet"
        self._client = client
        self._store = store

    async def run(self) -> None:
        """Goes on until it is cancelled."""
        selector = f"metadata.name={ROSTER}"
        async for event in watch(self._client, CONFIG_MAPS, namespace=NAMESPACE, field_selector=selector):
            self._take(event)

    def _take(self, event: Event) -> None:
        if isinstance(event, Interrupted):
            self.trouble = event.error.sentence
            return
        if isinstance(event, Snapshot):
            self._fault = self._read(event.items[0] if event.items else None)
        elif isinstance(event, Change):
            self._fault = self._read(None if event.kind is ChangeKind.DELETED else event.object)
        self.trouble = self._fault  # a bookmark says that the watch goes on, and nothing of the roster

    def _read(self, config_map: Json | None) -> str:
        """Takes the roster if it is newer. Returns the fault of the roster; empty if none."""
        if config_map is None:
            return f"there is no {WHAT}: pp-leader writes it"
        data = config_map.get("data")
        roster = parse_roster(data.get(ROSTER) if isinstance(data, dict) else None)
        if isinstance(roster, Unreadable):
            return f"{WHAT}: {roster}"
        if self.roster is not None and roster != self.roster and roster.version <= self.roster.version:
            known = f"this host knows another one of version {self.roster.version}"
            return f"{WHAT} is of version {roster.version}, and {known}"
        if roster != self.roster:
            self.roster = roster
            self._store(roster)
        return ""


ORDERS_SECONDS = 30.0


class ClusterAccess:
    """`trouble` says why there is no client, and what to do about it; then every call fails with that sentence."""

    def __init__(
        self,
        settings: Settings,
        node: str,
        senses: AgentSenses,
        clock: Callable[[], float],
        keep_rosters: Callable[[Rosters], None],
        promised_versions: Callable[[], Collection[int]],
        var_directory: str,
        journal: Journal,
    ) -> None:
        """A renewed certificate is kept in `var_directory`."""
        self.trouble, self._order_trouble = "", ""
        self.client: ApiClient | None = None
        self._settings, self._node, self._senses, self._clock = settings, node, senses, clock
        self._keep_rosters, self._promised_versions = keep_rosters, promised_versions
        self._var_directory, self._journal = var_directory, journal
        self._expiry: ExpiryNotice | None = None
        self._tasks: list[asyncio.Task[None]] = []

    def connect(self) -> None:
        """Read the credentials, and begin to watch. Tried again by every call for as long as it fails."""
        try:
            kubeconfig = load(self._settings.api.kubeconfig)
            client = ApiClient(self._completed(kubeconfig), deadline_seconds=self._settings.api.read_deadline_seconds)
        except UserError as error:
            self.trouble = f"no credential for the API: {error}"
            return
        self.trouble, self.client = "", client
        machines = self._settings.api.machines
        self._reader = MachineReader(client, machines, self._clock)
        self._own = OwnMachine(self._reader, self._node, self._settings.api.read_deadline_seconds)
        self._condemned = CondemnedWatch(client, machines, self._clock, self._senses)
        known = self._senses.current_rosters.newest
        self._roster = RosterWatch(client, known, self._keep_roster)
        self._following = Following(client, self._settings.api.kubeconfig, self._load_again)
        say = partial(self._journal.say, Message.RENEWAL, priority=Priority.NOTICE)
        self._renewing = Renewing(client, self._var_directory, aside, say)
        self._expiry = ExpiryNotice(client, self._node, "pp-hostd", self._journal)
        followed = self._condemned.run(), self._roster.run(), self._follow_orders(client)
        credentials = self._following.run(), self._renewing.run(), self._expiry.run()
        self._tasks = [asyncio.create_task(each) for each in (*followed, *credentials)]

    async def _load_again(self) -> Kubeconfig:
        return self._completed(await load_aside(self._settings.api.kubeconfig))

    def _completed(self, kubeconfig: Kubeconfig) -> Kubeconfig:
        """With the other servers of the settings, and the certificate that this agent may have renewed."""
        more = tuple(filter(None, map(parse_endpoint, self._settings.api.servers)))
        renewed = os.path.join(self._var_directory, RENEWED)
        return replace(kubeconfig, endpoints=(*kubeconfig.endpoints, *more), renewed=renewed)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self.client is not None:
            self.client.close()

    def troubles(self) -> list[str]:
        """Returns a sentence for people about each trouble; empty if none."""
        if self.client is None:
            return [self.trouble]
        expiry = "" if self._expiry is None else self._expiry.sentence
        credentials = self.client.trouble, self._following.trouble, self._renewing.trouble, expiry
        found = (*credentials, self._condemned.trouble, self._roster.trouble, self._order_trouble)
        return [sentence for sentence in found if sentence]

    @property
    def certificate_ends(self) -> str:
        """When the client certificate in use ends; empty without one."""
        return "" if self._expiry is None else self._expiry.ends

    def metrics(self) -> Iterator[Metric]:
        asked = self.client.requests if self.client is not None else 0
        yield Metric("pp_hostd_api_requests_total", "Requests made to the API.", "counter", [({}, asked)])
        if self._expiry is not None:
            yield from self._expiry.metrics("pp_hostd")

    async def read(self) -> Read:
        """One read of this host's own machine."""
        if self._connected() is None:
            return Read(self._clock(), self._clock(), failure=self.trouble)
        self._senses.roster_trouble = self._roster.trouble
        return await self._own.read()

    async def read_for_peer(self, about: MachineReference, deadline_seconds: float) -> ReadOutcome:
        """The read behind an answer on the peer port. In an outage it rests, and the host's own reads go on: else each
        of n hosts would make n connections."""
        if self.client is None:
            return Unread.FAILED
        read = await self._reader.read(about.machine_key, deadline_seconds, may_rest=True)
        if read.machine is not None:
            return read.machine
        return Unread.NOT_FOUND if read.missing else Unread.FAILED

    async def look(self) -> Look:
        """One read of this host's Node."""
        client = self._connected()
        if client is None:
            return Look(self._clock(), self._clock(), failure=self.trouble)
        return await read_node(client, self._node, self._clock)

    async def store(self, record: AgentRecord, node: Node) -> StoreEnded:
        client = self._connected()
        if client is None:
            return StoreEnded(record, node.resource_version, Written.NOT_DONE, self._clock(), sentence=self.trouble)
        return await store(client, node, record, self._clock)

    def _connected(self) -> ApiClient | None:
        if self.client is None:
            self.connect()
        return self.client

    async def _follow_orders(self, client: ApiClient) -> None:
        """Reads people's order for all hosts every ORDERS_SECONDS: the order is in no hurry, and not worth a watch."""
        while True:
            self._senses.order_cluster_maintenance(await self._ordered_maintenance(client))
            await asyncio.sleep(ORDERS_SECONDS)

    async def _ordered_maintenance(self, client: ApiClient) -> Maintenance | None:
        """An order that can't be read is none: nobody disarms for it."""
        try:
            found = await client.get(CONFIG_MAPS, CONTROL, namespace=NAMESPACE)
        except ApiError as error:
            if not is_missing(error):
                return self._senses.cluster_maintenance
            self._order_trouble = ""
            return None
        order = parse_control(found.get("data")).maintenance
        self._order_trouble = refusal_of(order)
        return order if isinstance(order, Maintenance) and not self._order_trouble else None

    def _keep_roster(self, roster: Roster) -> None:
        rosters = self._senses.current_rosters.with_newest(roster, self._promised_versions())
        self._keep_rosters(rosters)
        self._senses.current_rosters = rosters
        self._senses.wake.set()


def refusal_of(order: Maintenance | Unreadable | None) -> str:
    """Why this order for all hosts is not obeyed; empty if it is, or there is none."""
    where = f"ConfigMap {NAMESPACE}/{CONTROL}"
    if isinstance(order, Unreadable):
        return f"{where}: {order}; it is not obeyed"
    if order is None or order.seconds <= LONGEST_CLUSTER_MAINTENANCE_SECONDS:
        return ""
    longest = f"{LONGEST_CLUSTER_MAINTENANCE_SECONDS // 3600} h"
    return f"{where}: the maintenance by {order.who} is not obeyed, since it is longer than {longest}"
