"""A world of thousands of hosts: some live in full, and each of them stands for many that are alike."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from pp_hostd.agent.sense.cluster import ORDERS_SECONDS
from pp_hostd.agent.sense.watches import CondemnedWatch, RosterWatch
from pp_hostd.agent.senses import AgentSenses
from pp_hostd.agent.witness import ReadOutcome, Statement, Unread, Witness
from pp_hostd.embedded.history import Event
from pp_hostd.frozen import frozen, replace
from pp_hostd.kube.resources import NODES
from pp_hostd.kube.watch import TIMEOUT_SECONDS
from pp_hostd.model.answer import Health
from pp_hostd.model.evidence import PeerAnswered
from pp_hostd.model.keys import AGENT, ROSTER
from pp_hostd.model.memory import Decision
from pp_hostd.model.node import Node
from pp_hostd.model.promise import AgentRecord, Armed, GateKind, WatchdogKind
from pp_hostd.model.settings import Settings
from pp_hostd.model.verdict import State, Verdict
from pp_hostd.peers.message import Question
from pp_hostd.sim.agent import Agent
from pp_hostd.sim.api import SERVERS, Json, ServerHealth
from pp_hostd.sim.cluster import Cluster
from pp_hostd.sim.exchange import Answered
from pp_hostd.sim.host import Host
from pp_hostd.sim.scale import tally
from pp_hostd.sim.scale.tally import Kind, Tally
from pp_hostd.sim.world import World

PEERS_PER_DOUBLING = 8


def jurors(nodes: int) -> int:
    """How many peers the list of a host has: O(log n), and never more than there are."""
    return min(nodes - 1, PEERS_PER_DOUBLING * math.ceil(math.log2(nodes)))


def jury(version: int, host: str, nodes: Sequence[str]) -> tuple[str, ...]:
    """The host itself and its jurors: the same list wherever it is computed from the same version of the roster."""
    others = [name for name in nodes if name != host]
    drawn = sorted(others, key=lambda name: hashlib.sha256(f"{version} {host} {name}".encode()).digest())
    return (host, *drawn[: jurors(len(nodes))])


ROUND_TRIP_SECONDS = 0.006
ANSWER_SECONDS = 2 * ROUND_TRIP_SECONDS
"""Of a peer whose own read is answered, or refused, at once."""


class Many(Protocol):
    """All that a representative needs of the crowd."""

    with_jury: bool

    def requests(self, host: str, size: int) -> None: ...
    def hears(self, host: str, size: int) -> None: ...
    def messages(self, host: str, count: int, size: int) -> None: ...
    def in_reach(self, host: str, peers: tuple[str, ...]) -> tuple[str, ...]: ...
    def testimony(self, host: str, machine_key: str, uid: str, peers: int) -> Statement: ...
    def is_well(self, host: str, well: bool) -> None: ...


class _Senses(AgentSenses):
    """With a jury, a host asks those peers alone."""

    with_jury = False
    juries: dict[int, tuple[str, ...]]

    def rosters(self) -> Mapping[int, tuple[str, ...]]:
        rosters = super().rosters()
        if not self.with_jury:
            return rosters
        for version in set(rosters).difference(self.juries):
            self.juries[version] = jury(version, self._node, rosters[version])
        return self.juries


class Representative(Agent):
    """Nothing of how it senses, judges and acts is changed, but for how questions travel."""

    SENSES = _Senses
    senses: _Senses

    def __init__(self, crowd: Many, *of_agent: Any) -> None:
        self._crowd = crowd
        super().__init__(*of_agent)
        if crowd.with_jury:
            self.senses.with_jury, self.senses.juries = True, {}

    def ask(self, peers: tuple[str, ...], uid: str) -> None:
        """One round. All peers that it reaches give the same answer at the same time; of the others it hears nothing,
        and they are silent when the round is over."""
        name, crowd, began_at = self._host.name, self._crowd, self.clock()
        self.truth.asks()
        answering = crowd.in_reach(name, peers)
        silent = sorted(set(peers).difference(answering))
        if answering:
            crowd.messages(name, len(answering), tally.PEER_QUESTION)
            statement = partial(crowd.testimony, name, self._machine_key, uid, len(answering))
            self._later(ANSWER_SECONDS, lambda: self._answered(answering, began_at, statement()))
        if silent:
            crowd.messages(name, len(silent), tally.UNANSWERED)
            self._later(self.settings.peers.round_seconds, lambda: self._silent(silent, began_at))

    @property
    def _machine_key(self) -> str:
        return self.senses.current_rosters.machine_key(self._host.name)

    def _answered(self, peers: tuple[str, ...], began_at: float, said: Statement) -> None:
        self._crowd.messages(self._host.name, len(peers), tally.PEER_ANSWER)
        if said.health is Health.HEALTHY:
            self.truth.proven(began_at)
        answer = said.answer("", self._host.name, self._machine_key)
        for peer in peers:
            self.senses.tell(PeerAnswered(peer, began_at, self.clock(), answer))

    def _silent(self, peers: list[str], began_at: float) -> None:
        for peer in peers:
            self.senses.tell(PeerAnswered(peer, began_at, self.clock(), None, "silent"))

    # Exchanges that are counted.

    def read(self) -> None:
        self._crowd.requests(self._host.name, tally.read_bytes(self.settings))
        super().read()

    def look(self) -> None:
        self._crowd.requests(self._host.name, tally.LOOK)
        super().look()

    def store(self, record: AgentRecord, node: Node) -> None:
        self._crowd.requests(self._host.name, tally.STORE)
        super().store(record, node)

    def show(self, verdict: Verdict) -> None:
        super().show(verdict)
        self._crowd.is_well(self._host.name, verdict.state is State.HEALTHY)

    def _listed(self, watch: CondemnedWatch | RosterWatch, items: list[Json]) -> None:
        """Count a list, and a watch that goes on from it."""
        super()._listed(watch, items)
        listed_bytes = sum(self._bytes(watch, item) for item in items)
        self._crowd.requests(self._host.name, tally.API_HEADS + listed_bytes)
        self._crowd.requests(self._host.name, tally.WATCH)

    def _changed(self, watch: CondemnedWatch | RosterWatch, event: Event) -> None:
        super()._changed(watch, event)
        self._crowd.hears(self._host.name, self._bytes(watch, event.object()))

    def _bytes(self, watch: CondemnedWatch | RosterWatch, item: Json) -> int:
        return _roster_bytes(item) if isinstance(watch, RosterWatch) else tally.machine(self.settings)


def _roster_bytes(config_map: Json) -> int:
    return len(config_map["data"][ROSTER])


WATCHES = 2
"""Of each agent: the condemned, and the roster."""


@frozen
class Share:
    """How many hosts a representative stands for, and the time over which their phases are spread."""

    hosts: float
    spread_seconds: float


ALONE = Share(1.0, ROUND_TRIP_SECONDS)
"""A leader stands for nobody else."""


class Crowd(World):
    """`apart` are the hosts that are cut off from the API and all others, but not from each other."""

    def __init__(self, settings: Settings, nodes: int, seed: int, with_jury: bool = False) -> None:
        if with_jury:  # all of it is asked at once
            settings = replace(settings, peers=replace(settings.peers, rounds=1))
        super().__init__(settings, nodes, seed, lambda *_: None, Cluster(settings.api.machines))
        self.with_jury = with_jury
        self.tally = Tally()
        self.apart: frozenset[str] = frozenset()
        self.resets = 0.0
        self.freed_at = self.well_at = 0.0
        self.shares: dict[str, Share] = {}
        self._well: set[str] = set()
        self._witnesses = {False: Witness("inside"), True: Witness("apart")}
        self._asked: list[tuple[str, str, Question, Answered]] = []
        for witness in self._witnesses.values():
            witness.listed()
        self.on_freed = lambda *_: setattr(self, "freed_at", self.time.now)

    # Hosts that live.

    def populate(self, groups: Iterable[tuple[list[str], int]]) -> None:
        """Each group of alike hosts, and how many of them live; they begin one after the other."""
        interval_seconds = self.settings.api.read_interval_seconds
        for names, living in groups:
            share = Share(len(names) / living, interval_seconds / living)
            for number, name in enumerate(names[:living]):
                self.shares[name] = share
                self.time.at(number * share.spread_seconds, self.hosts[name].power_on)
            for name in names[living:]:
                self._promises(name)
        self.time.at(0.0, self._tick)

    def _promises(self, name: str) -> None:
        """Puts a promise on the Node of a host that does not live in full."""
        uid, watchdog_seconds = self.machine(name).uid, float(self.settings.watchdog.timeout_seconds)
        timeout_seconds = self.settings.agent.self_timeout_seconds
        promise = Armed("boot", timeout_seconds, watchdog_seconds, WatchdogKind.HARDWARE, GateKind.HOLD, uid, 1)
        self.api.patch(NODES, "", name, {"metadata": {"annotations": {AGENT: promise.render()}}})

    def start_agent(self, host: Host) -> None:
        boot = host.boot
        if boot is None or host.name in self.agents:
            return
        client = self._client(host.name, boot)
        ask, decided = partial(self._ask, host.name), partial(self._decided, host.name)
        agent = Representative(
            self, self.settings, host, boot, client, ask, decided, self.on_false_proof, self.chance, self.note
        )
        self.agents[host.name] = (client.process, agent)

    def _decided(self, name: str, _decision: Decision, _uid: str) -> None:
        self.resets += self.shares[name].hosts

    def is_well(self, host: str, well: bool) -> None:
        if not well:
            self._well.discard(host)
        elif host not in self._well:
            self._well.add(host)
            self.well_at = self.time.now

    @property
    def all_well(self) -> bool:
        return len(self._well) == len(self.shares)

    # Hosts that are cut off.

    def cut(self, names: Iterable[str]) -> None:
        self.apart = frozenset(names)
        pairs = {(name, server) for name in self.apart.intersection(self.shares) for server in SERVERS}
        self.network.cut = pairs | {(server, name) for name, server in pairs}

    def in_reach(self, host: str, peers: tuple[str, ...]) -> tuple[str, ...]:
        here = host in self.apart
        return tuple(peer for peer in peers if (peer in self.apart) == here)

    # Questions: alike peers read at the same time, and remember the same.

    def testimony(self, host: str, machine_key: str, uid: str, peers: int) -> Statement:
        """Returns the statement of each of so many peers on the side of this host, by a read of its own."""
        return self._testimony(host in self.apart, machine_key, uid, peers, self.shares[host])

    def _testimony(self, here: bool, machine_key: str, uid: str, peers: int, share: Share) -> Statement:
        self._requests(here, tally.read_bytes(self.settings), peers, share)
        outcome: ReadOutcome = (
            self.machine(machine_key.rpartition("/")[2]) if not here and self._serves else Unread.FAILED
        )
        now = self.time.now
        return self._witnesses[here].answer(machine_key, uid, outcome, began_at=now - ROUND_TRIP_SECONDS, now=now)

    def _ask(self, source: str, peer: str, question: Question, answered: Answered) -> None:
        """A leader's question; all that it asks at one moment travel together."""
        if not self._asked:
            self.time.after(ANSWER_SECONDS, self._answer)
        self._asked.append((source, peer, question, answered))

    def _answer(self) -> None:
        asked, self._asked = self._asked, []
        for source, peer, question, answered in asked:
            machine_key = question.about.machine_key
            self._messages(1, tally.PEER_QUESTION, ALONE)
            if self.in_reach(source, (peer,)):
                said = self._testimony(source in self.apart, machine_key, question.about.uid, 1, ALONE)
                self._messages(1, tally.PEER_ANSWER, ALONE)
                answered(said.answer(peer, question.asked_by, machine_key))

    # The tally.

    @property
    def _serves(self) -> bool:
        return any(map(self.api.answers, SERVERS))

    def requests(self, host: str, size: int) -> None:
        self._requests(host in self.apart, size, 1, self.shares[host])

    def _requests(self, apart: bool, size: int, count: float, share: Share) -> None:
        """So many of each host of that share. Those of hosts that are cut off never reach the servers."""
        if not apart and self._serves:
            self._add(Kind.SERVED, count, share)
            self._add(Kind.BYTES, count * size, share)
        elif not apart:
            self._add(Kind.UNSERVED, count, share)

    def hears(self, host: str, size: int) -> None:
        self._add(Kind.BYTES, size, self.shares[host])

    def messages(self, host: str, count: int, size: int) -> None:
        self._messages(count, size, self.shares[host])

    def _messages(self, count: int, size: int, share: Share) -> None:
        self._add(Kind.PEER, count, share)
        self._add(Kind.BYTES, count * size, share)

    def _add(self, kind: Kind, count: float, share: Share) -> None:
        self.tally.add(kind, self.time.now, share.spread_seconds, count * share.hosts)

    def _tick(self) -> None:
        """Counts each second the agents' unhurried requests: for orders, and for watches that the server ended."""
        inside = Share(len(self.names) - len(self.apart), spread_seconds=1.0)
        if self._serves:
            self._requests(False, tally.ORDERS, 1 / ORDERS_SECONDS, inside)
            self._requests(False, tally.WATCH, WATCHES / TIMEOUT_SECONDS, inside)
        self.time.after(1.0, self._tick)

    def ail(self, health: ServerHealth) -> None:
        self.api.health.update(dict.fromkeys(SERVERS, health))
