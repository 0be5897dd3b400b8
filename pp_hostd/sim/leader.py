"""A leader's process: it campaigns for the Lease by the real rules, and serves terms in which the real driver runs."""

from __future__ import annotations

import random
from datetime import datetime, timezone
from functools import partial
from typing import Callable, Protocol

from pp_hostd.embedded.history import Event
from pp_hostd.embedded.paging import Query
from pp_hostd.fencing.call import AgentCall, AgentReply
from pp_hostd.frozen import replace
from pp_hostd.kube.resources import LEASES, NODE_FENCES, NODE_HEALTH_CHECKS, NODE_REMEDY_CONFIGURATIONS
from pp_hostd.leader.caches import Watch, is_later
from pp_hostd.leader.driver import Driver
from pp_hostd.leader.node_memory import NextAction
from pp_hostd.leader.remedies.node_fence.seen import DumpsSeen, wants_dumps
from pp_hostd.leader.steps.api import ServedKinds, ServedMachines
from pp_hostd.leader.steps.own_objects import WriteRoster
from pp_hostd.leader.steps.port import Exchange, Kind, LeaderStep, Pace, Port, StepEnded, StepNews, outcome_of
from pp_hostd.leader.watches import Watches
from pp_hostd.model.condemnation import DICE, Draw
from pp_hostd.model.keys import NAMESPACE
from pp_hostd.model.lease import (
    LEASE,
    Candidacy,
    Lease,
    LeaseExchange,
    parse_lease,
)
from pp_hostd.model.observed import Observed
from pp_hostd.model.reachability import SILENT_AFTER_SECONDS, Finding
from pp_hostd.model.roster import Member
from pp_hostd.model.settings import Settings
from pp_hostd.model.step import Written
from pp_hostd.sim.api import EPOCH, Client, Failed, Json, Reply
from pp_hostd.sim.exchange import AskPeer, Sleep, Started, Within, run
from pp_hostd.sim.host import Host
from pp_hostd.sim.leader_port import LOOK_SECONDS, Asking, Freed, SimulatedApi
from pp_hostd.sim.stream import Stream
from pp_hostd.sim.time import Clock

Reaches = Callable[[str, str], bool]
"""Whether one host gets an answer from the kernel of another."""
RunsAgent = Callable[[str, AgentCall, Callable[[], bool], Callable[[AgentReply], None]], None]
"""Runs a fence agent for a node, for as long as its leader lives, and tells the reply."""


class Leadership(Protocol):
    """All that a term needs of its leader."""

    settings: Settings
    client: Client
    ask_peer: AskPeer
    reaches: Reaches
    runs_agent: RunsAgent
    frees: Callable[[str, Freed], None]
    sends: Callable[[], None]
    told: dict[str, str]
    note: Callable[[str, str], None]
    clock: Clock
    host: str
    candidacy: Candidacy

    def acting_until(self) -> float: ...
    def wallclock(self) -> datetime: ...
    def draw(self) -> Draw: ...
    def resign(self) -> None: ...


class LeaderTerm:
    """One term: senses and hands of the driver."""

    def __init__(self, leader: Leadership) -> None:
        self._leader, self._client, self.clock = leader, leader.client, leader.clock
        self._open = True
        cluster = self._client.api.cluster
        self._watches = Watches(cluster.machines, leader.settings)
        self._news: list[StepNews] = []
        self._due, self._wakes = False, 0
        self._told: dict[str, str] = {}
        self._dumps: dict[str, float] = {}
        self._api = SimulatedApi(self._client, leader.frees)
        self._machines = ServedMachines(self._api, cluster.machines)
        self._served = ServedKinds(self._api)
        self._pace = Pace(leader.settings.leader.deletions_per_second)
        own, resigned_at = leader.host, leader.candidacy.resigned_at
        self.driver = Driver(
            leader.settings, self, self, own_node=own, resigned_at=resigned_at, clock=self.clock, draw=leader.draw
        )
        optional = {
            NODE_HEALTH_CHECKS: cluster.health_checks,
            NODE_FENCES: bool(cluster.fenced),
            NODE_REMEDY_CONFIGURATIONS: cluster.thresholds,
        }
        for watch in self._watches.watches:
            if not watch.unused or optional.get(watch.versions[0]):
                self._follow(watch)

    def close(self) -> None:
        self._open = False

    def _follow(self, watch: Watch) -> None:
        def listed(items: list[Json]) -> None:
            watch.show_all(map(watch.keep, items))
            self._wake()

        def changed(event: Event) -> None:
            kept = watch.keep(event.object())
            if event.type == "DELETED":
                watch.show_gone(kept)
            else:
                watch.show(kept)
            self._wake()

        kind = self._client.api.cluster.served(watch.versions)
        query = Query(watch.namespace or "", field_selector=watch.field_selector)
        Stream(self._client, kind, query, listed, changed, self._is_open)

    def _is_open(self) -> bool:
        return self._open

    async def shows(self, kind: Kind, name: str, version_before: str | None, deadline_seconds: float, /) -> bool:
        until_at = self.clock() + deadline_seconds
        while not is_later(self._watches.version(kind, name), version_before):
            if self.clock() >= until_at:
                return False
            await self._sleep(LOOK_SECONDS)
        return True

    # Turns.

    def _wake(self) -> None:
        if not self._due and self._open and self._watches.ready:
            self._due = True
            self._client.process.later(0.0, self._turn)

    def _turn(self) -> None:
        self._due = False
        if not self._open or self.clock() >= self._leader.acting_until():
            return
        due_at = self.driver.turn()
        self._wakes += 1
        alarm = partial(self._alarm, self._wakes)
        at = max(self.clock.when(due_at), self._client.time.now + 0.001)
        self._client.time.at(at, partial(self._client.process.do, alarm))

    def _alarm(self, wakes: int) -> None:
        if wakes == self._wakes:
            self._wake()

    # The driver's senses.

    def observed(self) -> Observed:
        found = self._watches.observed
        if not wants_dumps(found):
            self._dumps.clear()
        return replace(found, parts={**found.parts, DumpsSeen: DumpsSeen(self._dumps)}) if self._dumps else found

    def heard_dump(self, address: str) -> None:
        """A kernel that has crashed says so: the leader listens for as long as a node is fenced."""
        if wants_dumps(self._watches.observed):
            self._dumps[address] = self.clock()
            self._wake()

    def take(self) -> list[StepNews]:
        taken, self._news = self._news, []
        return taken

    def nodes_revision(self) -> int:
        return self._watches.revision_of_nodes

    # The driver's hands.

    def show(self, next_actions: tuple[NextAction, ...]) -> None:
        for next_action in (each for each in next_actions if each.refused or not each.quiet):
            if self._told.get(next_action.node) != next_action.sentence:
                self._told[next_action.node] = self._leader.told[next_action.node] = next_action.sentence
                self._leader.note(self._leader.host, f"{next_action.node}: {next_action.sentence}")

    def write_roster(self, order: WriteRoster) -> None:
        def ended(_: tuple[Written, str]) -> None:
            self.driver.roster_ended()
            self._wake()

        self._run("", order, ended)

    def start(self, node: str, step: LeaderStep) -> None:
        def ended(outcome: tuple[Written, str]) -> None:
            written, sentence = outcome
            self._tell(StepEnded(node, step, written, self.clock(), sentence))

        self._run(node, step, ended)

    def _tell(self, news: StepNews) -> None:
        if self._open:
            self._news.append(news)
            self._wake()

    # Steps.

    def _run(self, key: str, step: LeaderStep, ended: Callable[[tuple[Written, str]], None]) -> None:
        run(outcome_of(step, self._port(key)), ended, self._is_open)

    def _port(self, key: str) -> Port:
        return Port(
            key=key,
            settings=self._leader.settings,
            api=self._api,
            machines=self._machines,
            served=self._served,
            watching=self,
            pace=self._pace,
            clock=self.clock,
            wallclock=self._leader.wallclock,
            acting_until=self._leader.acting_until,
            within=self._within,
            sleep=self._sleep,
            ask_peers=self._ask_peers,
            try_host=self._try_host,
            connects=self._connects,
            run_agent=partial(self._run_agent, key),
            hand_over=self._hand_over,
            tell=self._tell,
        )

    async def _connects(self, _address: str, _port: int) -> bool:
        """No cluster here has its storage probed."""
        return True

    async def _within(self, seconds: float, exchange: Exchange) -> Json:
        self._leader.sends()
        return await Within(self._client, seconds, exchange)

    async def _sleep(self, seconds: float) -> None:
        await Sleep(self._client, seconds)

    async def _ask_peers(self, node: str, machine_key: str, uid: str, peers: tuple[Member, ...]) -> None:
        round_seconds = self._leader.settings.peers.round_seconds
        ask = partial(
            Asking, self._client, self._leader.ask_peer, round_seconds, node, machine_key, uid, peers, self._tell
        )
        await Started(ask)

    async def _try_host(self, host: Member, others: tuple[Member, ...]) -> tuple[Finding, tuple[Finding, ...]]:
        await self._sleep(SILENT_AFTER_SECONDS)
        own, reaches = self._leader.host, self._leader.reaches
        return reaches(own, host.name), tuple(
            reaches(each.name, host.name) if reaches(own, each.name) else None for each in others
        )

    async def _run_agent(self, node: str, call: AgentCall) -> AgentReply:
        process = self._client.process

        def start(resume: Callable[[AgentReply], None]) -> None:
            self._leader.runs_agent(
                node, call, lambda: self._open and process.alive, lambda reply: process.do(partial(resume, reply))
            )

        self._leader.sends()
        replied: AgentReply = await Started(start)
        return replied

    async def _hand_over(self) -> None:
        self._leader.resign()


class Leader:
    """One candidate. `frees` hears of each write after which the workloads of a node may start elsewhere, `sends` of
    each write when it is sent."""

    def __init__(
        self,
        settings: Settings,
        host: Host,
        client: Client,
        ask_peer: AskPeer,
        reaches: Reaches,
        runs_agent: RunsAgent,
        identity: str,
        frees: Callable[[str, Freed], None],
        sends: Callable[[], None],
        told: dict[str, str],
        note: Callable[[str, str], None],
    ) -> None:
        self.settings, self.client, self.ask_peer, self.frees, self.note = settings, client, ask_peer, frees, note
        self.sends, self.told, self.reaches, self.runs_agent = sends, told, reaches, runs_agent
        self.clock, self.host, self._on = client.process.clock, client.host, host
        self.candidacy = Candidacy(identity, settings.leader.lease_seconds)
        self._dice = random.Random(identity)
        self._leader_term: LeaderTerm | None = None
        self._term = 0
        self._wakes = 0
        self._go_on()

    def wallclock(self) -> datetime:
        return datetime.fromtimestamp(EPOCH + self.client.time.now + self._on.wallclock_off_seconds, timezone.utc)

    def draw(self) -> Draw:
        return Draw(int(self.wallclock().timestamp()), self._dice.randrange(DICE))

    @property
    def next_actions(self) -> tuple[NextAction, ...]:
        """Those of its last plan, if it leads."""
        return () if self._leader_term is None else self._leader_term.driver.next_actions

    @property
    def term_seconds(self) -> float:
        """For so long it leads, or has given its Lease up; for ever if neither."""
        term = self._leader_term
        return self.clock() - (self.candidacy.resigned_at if term is None else term.driver.term.began_at)

    def acting_until(self) -> float:
        return self.candidacy.acting_until_at

    def heard_dump(self, address: str) -> None:
        if self._leader_term is not None:
            self._leader_term.heard_dump(address)

    def resign(self) -> None:
        self.candidacy = self.candidacy.resigned(self.clock())
        self._go_on()

    def _go_on(self) -> None:
        """The next exchange, now or when it is due; and the term that follows from the last one."""
        now = self.clock()
        self._wakes += 1
        self._look_at_term(now)
        exchange, due_at = self.candidacy.next_exchange(now)
        if due_at <= now:
            self._exchange(exchange, now)
            return
        at = min(due_at, self.candidacy.acting_until_at) if self.candidacy.acting(now) else due_at
        wake = partial(self._wake, self._wakes)
        self.client.time.at(self.clock.when(at), partial(self.client.process.do, wake))

    def _wake(self, wakes: int) -> None:
        if wakes == self._wakes:
            self._go_on()

    def _look_at_term(self, now: float) -> None:
        acting = self.candidacy.acting(now)
        if self._leader_term is not None and (not acting or self._term != self.candidacy.term):
            self._leader_term.close()
            self._leader_term = None
            self.note(self.host, "leads no longer")
        if acting and self._leader_term is None:
            self._term = self.candidacy.term
            self.note(self.host, "leads")
            self._leader_term = LeaderTerm(self)

    def _exchange(self, exchange: LeaseExchange, sent_at: float) -> None:
        wakes = self._wakes

        def ended(reply: Reply) -> None:
            if isinstance(reply, Failed):
                conflict = reply.written is Written.CONFLICT
                self.candidacy = self.candidacy.after_failure(
                    exchange, self.clock(), missing=reply.missing, conflict=conflict
                )
            else:
                self.candidacy = self.candidacy.after_reply(exchange, reply, sent_at, self.clock())
            if wakes == self._wakes:
                self._go_on()

        body = None if exchange is LeaseExchange.LOOK else self.candidacy.body(exchange, self.wallclock())
        self.client.call(partial(self._serve, exchange, body), ended, self.candidacy.exchange_seconds(sent_at))

    def _serve(self, exchange: LeaseExchange, body: Json | None) -> Lease:
        api = self.client.api
        if body is None:
            found: Lease = api.found(parse_lease, LEASES, NAMESPACE, LEASE)
            return found
        if exchange is LeaseExchange.CREATE:
            written = api.create(LEASES, NAMESPACE, body)
        else:
            written = api.patch(LEASES, NAMESPACE, LEASE, body)
        renewed = parse_lease(written)
        assert isinstance(renewed, Lease), renewed
        return renewed
