"""The agent's access to the API: the client once there are credentials, its reads, its watches and its Node."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import Counter
from collections.abc import Collection, Iterator
from functools import partial
from typing import Callable

from pp_hostd import __version__
from pp_hostd.agent.act.aside import aside
from pp_hostd.agent.rosters import Rosters
from pp_hostd.agent.sense.api import (
    OF_ANOTHER_NODE,
    MachineReader,
    OwnMachine,
    commit,
    post_annotation,
    read_node,
    store,
)
from pp_hostd.agent.sense.watches import CondemnedWatch, RosterWatch
from pp_hostd.agent.senses import AgentSenses
from pp_hostd.agent.witness import ReadOutcome, Unread
from pp_hostd.errors import UserError
from pp_hostd.frozen import replace
from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.kubeconfig import Kubeconfig, load, load_aside
from pp_hostd.kube.outcome import ApiError, Outcome, is_missing
from pp_hostd.kube.renewing import RENEWED, Following, Renewing
from pp_hostd.kube.resources import CONFIG_MAPS
from pp_hostd.model.agent_info import AgentInfo
from pp_hostd.model.boot_commitments import Look, StoreEnded
from pp_hostd.model.control import LONGEST_CLUSTER_MAINTENANCE_SECONDS, Maintenance, parse_control
from pp_hostd.model.endpoint import parse_endpoint
from pp_hostd.model.evidence import Read
from pp_hostd.model.keys import AGENT_INFO, CONTROL, NAMESPACE, SUSPECTS
from pp_hostd.model.node import Node
from pp_hostd.model.promise import AgentRecord, Committed
from pp_hostd.model.record import Unreadable
from pp_hostd.model.roster import Roster
from pp_hostd.model.settings import Settings
from pp_hostd.model.step import Written
from pp_hostd.model.suspicion import Suspicion
from pp_hostd.peers.message import MachineReference
from pp_hostd.service.expiry import ExpiryNotice
from pp_hostd.service.journal import Journal, Message, Priority
from pp_hostd.service.metric import Metric

ORDERS_SECONDS = 30.0
ANNOUNCE_SECONDS = 300.0
ANNOUNCE_AGAIN_SECONDS = 60.0
"""After a failure."""
NO_CREDENTIAL = "no credential"
OUTCOMES = (*(each.value for each in Outcome), OF_ANOTHER_NODE, NO_CREDENTIAL)
"""The ways in which a read can fail, as the figures name them."""


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
        self.trouble, self._order_trouble, self._announce_trouble = "", "", ""
        self.client: ApiClient | None = None
        self._settings, self._node, self._senses, self._clock = settings, node, senses, clock
        self._keep_rosters, self._promised_versions = keep_rosters, promised_versions
        self._var_directory, self._journal = var_directory, journal
        self._expiry: ExpiryNotice | None = None
        self._reading, self._stored = asyncio.Event(), asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._failed_reads: Counter[str] = Counter()
        self._is_committing = False

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
        self._condemned = CondemnedWatch(machines, self._clock, self._senses)
        known = self._senses.current_rosters.newest
        self._roster = RosterWatch(known, self._keep_roster)
        self._following = Following(client, self._settings.api.kubeconfig, self._load_again)
        say = partial(self._journal.say, Message.RENEWAL, priority=Priority.NOTICE)
        self._renewing = Renewing(client, self._var_directory, aside, say)
        self._expiry = ExpiryNotice(client, self._node, "pp-hostd", self._journal)
        followed = self._condemned.run(client), self._roster.run(client), self._follow_orders(client)
        credentials = self._follow_kubeconfig(), self._renewing.run(), self._expiry.run()
        info = [self._announce(client)] if self._settings.agent.mode == "enforce" else []
        self._tasks = [asyncio.create_task(each) for each in (*followed, *credentials, *info)]

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
        found = (
            *credentials,
            self._condemned.trouble,
            self._roster.trouble,
            self._order_trouble,
            self._announce_trouble,
        )
        return [sentence for sentence in found if sentence]

    @property
    def certificate_ends(self) -> str:
        """When the client certificate in use ends; empty without one."""
        return "" if self._expiry is None else self._expiry.ends

    def metrics(self) -> Iterator[Metric]:
        asked = self.client.requests if self.client is not None else 0
        yield Metric("pp_hostd_api_requests_total", "Requests made to the API.", "counter", [({}, asked)])
        failed = [({"outcome": outcome}, self._failed_reads[outcome]) for outcome in OUTCOMES]
        text = "Reads of this host's own machine that were no proof, by outcome."
        yield Metric("pp_hostd_failed_reads_total", text, "counter", failed)
        if self._expiry is not None:
            yield from self._expiry.metrics("pp_hostd_certificate_expiry_timestamp_seconds")

    async def read(self) -> Read:
        """One read of this host's own machine."""
        if self._connected() is None:
            self._failed_reads[NO_CREDENTIAL] += 1
            return Read(self._clock(), self._clock(), failure=self.trouble)
        self._senses.roster_trouble = self._roster.trouble
        if self._following.is_due:
            self._reading.set()
            self._reading.clear()
        read = await self._own.read()
        if read.outcome:
            self._failed_reads[read.outcome] += 1
        return read

    async def read_for_peer(self, about: MachineReference, deadline_seconds: float) -> ReadOutcome:
        """The read behind an answer on the peer port."""
        if self.client is None:
            return Unread.FAILED
        return await self._reader.read_for_peer(about, deadline_seconds)

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
        ended = await store(client, node, record, self._clock)
        if ended.written is Written.DONE:
            self._stored.set()
        return ended

    async def post_suspicion(self, wanted: Suspicion | None) -> str:
        """Has this suspicion stand on the host's Node, or none. Returns why that failed; empty if it did not."""
        client = self._connected()
        if client is None:
            return self.trouble
        return await post_annotation(client, self._node, SUSPECTS, None if wanted is None else wanted.render())

    async def commit(self, record: Committed) -> None:
        """Rule 7's record, if there is time for it."""
        client = self._connected()
        self._is_committing = True
        if client is not None:
            await commit(client, self._node, record, self._clock)

    def _connected(self) -> ApiClient | None:
        if self.client is None:
            self.connect()
        return self.client

    async def _follow_kubeconfig(self) -> None:
        """Looks when a read of this host's own machine begins, since the agent is awake then anyway, if there is
        anything to see."""
        while True:
            await self._reading.wait()
            await self._following.look()

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

    async def _announce(self, client: ApiClient) -> None:
        """Tells people the agent's version and its certificate's end, on its Node. Looks after each record that it has
        stored there, since the Node may be a new one, and now and then."""
        seconds = ANNOUNCE_AGAIN_SECONDS
        while True:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._stored.wait(), seconds)
            self._stored.clear()
            if self._is_committing:  # that write relies on the version of the Node that was read
                return
            info = AgentInfo(__version__, None if client.certificate is None else client.certificate.ends)
            failure = await post_annotation(client, self._node, AGENT_INFO, info.render())
            self._announce_trouble = failure and f"its version could not be written to its Node: {failure}"
            seconds = ANNOUNCE_AGAIN_SECONDS if failure else ANNOUNCE_SECONDS

    def _keep_roster(self, roster: Roster) -> None:
        rosters = self._senses.current_rosters.with_newest(roster, self._promised_versions())
        self._keep_rosters(rosters)
        self._senses.take_rosters(rosters)


def refusal_of(order: Maintenance | Unreadable | None) -> str:
    """Why this order for all hosts is not obeyed; empty if it is, or there is none."""
    where = f"ConfigMap {NAMESPACE}/{CONTROL}"
    if isinstance(order, Unreadable):
        return f"{where}: {order}; it is not obeyed"
    if order is None or order.seconds <= LONGEST_CLUSTER_MAINTENANCE_SECONDS:
        return ""
    longest = f"{LONGEST_CLUSTER_MAINTENANCE_SECONDS // 3600} h"
    return f"{where}: the maintenance by {order.who} is not obeyed, since it is longer than {longest}"
