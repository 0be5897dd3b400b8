"""A virtual Node in a virtual API, and a virtual host around the real driver.

Every exchange is served and answered apart, or lost, or lands late. After each event it is checked that the host keeps
all that stands on its Node.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Callable

from pp_hostd.agent.binding import standing
from pp_hostd.agent.driver import Driver, News
from pp_hostd.agent.shutdown import POWER_OFF_SECONDS
from pp_hostd.model.answer import Answer, Health
from pp_hostd.model.boot_commitments import (
    BootCommitments,
    Gate,
    GateOpened,
    Look,
    StoreEnded,
    WatchdogArmed,
    WatchdogDisarmed,
)
from pp_hostd.model.condemnation import NotRequested
from pp_hostd.model.control import Maintenance
from pp_hostd.model.evidence import HostContext, PeerAnswered, Read
from pp_hostd.model.machine import Machine
from pp_hostd.model.memory import Decision, Memory
from pp_hostd.model.node import Node
from pp_hostd.model.promise import AgentRecord, Armed, GateClosed, WatchdogKind, Withdrawn
from pp_hostd.model.record import Unreadable
from pp_hostd.model.roster import Electorate, Member, Roster
from pp_hostd.model.settings import Settings
from pp_hostd.model.step import Written
from pp_hostd.model.verdict import Verdict

HOST = "host"
BOOT = "this-boot"
UID = "uid-of-host"
WATCHDOG = WatchdogArmed(WatchdogKind.HARDWARE, 10.0)
MACHINE = Machine("ns", HOST, UID, "1", NotRequested(0), HOST)
DEADLINE_SECONDS = 5.0
TURNS_AT_ONCE = 25
"""More turns than that without time passing are a spin."""


def node(version: int = 1, record: AgentRecord | None = None, freeing: int | None = None, uid: str = "node-1") -> Node:
    return Node(HOST, uid, str(version), None, record, freeing, False, False)


@functools.cache
def electorate(version: int = 1, *names: str) -> Electorate:
    """The host and so many peers as the version's number, or these nodes."""
    names = names or (HOST, *(f"peer-{number}" for number in range(1, version + 2)))
    members = (Member(name, f"ns/{name}", "192.0.2.1", f"uid-of-{name}", version, None) for name in names)
    found = Roster.of(version, version, members).as_of(version)
    assert not isinstance(found, Unreadable)
    return found


@functools.cache
def _names(version: int) -> tuple[str, ...]:
    return electorate(version).names


class VirtualApi:
    """One Node with real versions: they only grow, over incarnations too."""

    def __init__(self) -> None:
        self.version = 1
        self.node: Node | None = node()
        self.backup = False

    def change(self, **parts: object) -> None:
        """Anyone's write."""
        self.version += 1
        if self.node is not None:
            self.node = replace(self.node, resource_version=str(self.version), **parts)  # type: ignore[arg-type]

    def delete(self) -> None:
        self.version, self.backup, self.node = self.version + 1, True, None

    def recreate(self) -> None:
        self.version += 1
        self.node = node(self.version, uid=f"node-{self.version}")

    def would_land(self, on: Node) -> bool:
        return self.node is not None and (self.node.uid, self.node.resource_version) == (on.uid, on.resource_version)


@dataclass
class Flight:
    """An exchange under way. `serve` is what the API does with it, once; the reply waits in `served`."""

    what: str
    began_at: float
    serve: Callable[[], Callable[[], News]]
    unanswered: Callable[[], News]
    refused: Callable[[], News]
    served: Callable[[], News] | None = None
    write: tuple[AgentRecord, Node] | None = None


@dataclass
class VirtualHost:
    """Senses and hands of the real driver, and the truth beside them."""

    settings: Settings = field(default_factory=Settings)
    gate: Gate = Gate.CLOSED
    api: VirtualApi = field(default_factory=VirtualApi)
    now: float = 1000.0
    roster: int = 1
    maintenance: Maintenance | None = None
    stopping: bool = False
    powering_off: bool = False
    watchdog: WatchdogArmed | None = None
    acts: list[str] = field(default_factory=list)
    flights: list[Flight] = field(default_factory=list)
    ghosts: list[Flight] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._news: list[News] = []
        self.machine: Machine | None = None
        self._shown: Node | None = None
        self._shown_at = 0.0
        self._seen = False
        self._read_well_at = 0.0
        self._kept = (Memory(), BootCommitments(BOOT, self.gate))
        self._turns_at_once = 0
        self.driver = self._started()
        self.turn()

    # The senses

    def take(self) -> list[News]:
        taken, self._news = self._news, []
        return taken

    def host_context(self) -> HostContext:
        return HostContext(
            node=HOST,
            electorate=electorate(self.roster),
            machine=self.machine,
            maintenance=self.maintenance,
            stopping=self.stopping,
            powering_off=self.powering_off,
        )

    def rosters(self) -> Mapping[int, tuple[str, ...]]:
        return {version: _names(version) for version in range(1, self.roster + 1)}

    # The hands

    def feed(self) -> None:
        assert self.watchdog is not None or self.settings.agent.mode == "dry-run"
        self.acts.append("feed")

    def reset(self, decision: Decision, commitments: BootCommitments) -> None:  # noqa: ARG002
        self.acts.append("reset")

    def read(self) -> None:
        self.acts.append("read")
        began_at = self.now
        self._fly(
            "read",
            lambda: lambda: self._read_well(began_at),
            lambda: Read(began_at, self.now, failure="timed out"),
            lambda: Read(began_at, self.now, failure="forbidden"),
        )

    def ask(self, peers: tuple[str, ...], uid: str) -> None:
        self.acts.append("ask")
        assert uid == UID
        answers = (Answer(Health.HEALTHY, None, "token", "nonce", peer, HOST, f"ns/{HOST}") for peer in peers)
        self._news += [PeerAnswered(each.answered_by, self.now, self.now, each) for each in answers]

    def look(self) -> None:
        self.acts.append("look")
        began_at = self.now
        self._fly(
            "look",
            lambda: self._look(began_at),
            lambda: Look(began_at, self.now, failure="timed out"),
            lambda: Look(began_at, self.now, failure="forbidden"),
        )

    def store(self, record: AgentRecord, node: Node) -> None:
        self.acts.append(f"store {type(record).__name__}")
        assert self._decided() is None, "after the decision nothing is promised or withdrawn any more (rule 7)"
        assert self._seen and node == self._shown, "every write is conditional on the Node as it was last read"
        if isinstance(record, GateClosed):
            assert self.gate is Gate.CLOSED, "it says closed only what is closed"
        if isinstance(record, Armed):
            assert self.watchdog is not None, "armed before it is promised"
        version = node.resource_version
        self._fly(
            "store",
            lambda: self._store(record, node),
            lambda: StoreEnded(record, version, Written.UNKNOWN, self.now, sentence="timed out"),
            lambda: StoreEnded(record, version, Written.NOT_DONE, self.now, sentence="forbidden"),
            (record, node),
        )

    def arm(self) -> None:
        self.acts.append("arm")
        assert self._shown is not None and self._shown.freeing is None, "rule 12's marker holds the gate"
        assert self._read_well_at >= self._shown_at, "a proof begun after the look"
        self.watchdog = WATCHDOG
        self._news.append(WATCHDOG)

    def feed_last(self) -> None:
        self.acts.append("feed for the last time")
        promise = self.api.node.agent if self.api.node is not None else None
        assert isinstance(promise, Armed) and promise.watchdog_timeout_seconds >= POWER_OFF_SECONDS, "promised before"

    def disarm(self) -> None:
        self.acts.append("disarm")
        under_way = [each.write for each in (*self.flights, *self.ghosts) if each.write and each.served is None]
        may_land = [record for record, on in under_way if self.api.would_land(on)]
        assert not any(isinstance(record, Armed) for record in may_land), "a promise may still land"
        assert not self._promised(), "withdrawn before it is disarmed (rule 5)"
        self.watchdog = None
        self._news.append(WatchdogDisarmed())

    def open_gate(self, reason: str) -> None:  # noqa: ARG002
        self.acts.append("open the gate")
        assert self._seen
        if self._shown is None:
            assert not self.api.backup
        else:
            record = self._shown.agent
            assert isinstance(record, (Armed, Withdrawn)) and record.boot == BOOT, f"the gate opens over {record}"
            assert isinstance(record, Armed) or self._shown.freeing is None
        self.gate = Gate.OPEN
        self._news.append(GateOpened())

    def remember(self, memory: Memory, commitments: BootCommitments) -> None:
        self.acts.append("remember")
        self._kept = memory, commitments

    def show(self, verdict: Verdict) -> None:  # noqa: ARG002
        self.acts.append("show")

    # The course of events

    def tell(self, news: News) -> None:
        self._news.append(news)
        self.turn()

    def under_way(self, what: str) -> Flight:
        return next(each for each in self.flights if each.what == what)

    def turn(self) -> None:
        self._turns_at_once += 1
        assert self._turns_at_once <= TURNS_AT_ONCE, "the driver spins"
        verdict = self.driver.turn()
        self.wake_at = self.now if self._news else verdict.wake_at
        assert verdict.wake_at >= self.now
        self.check()

    def advance(self, seconds: float) -> None:
        """Time passes, with a turn whenever one is due. No exchange outlives its deadline."""
        end = self.now + seconds
        while self.wake_at <= end:
            self._pass(self.wake_at)
            self.turn()
            for flight in [each for each in self.flights if self.now >= each.began_at + DEADLINE_SECONDS]:
                self.lose(flight)
        self._pass(end)

    def serve(self, flight: Flight) -> None:
        flight.served = flight.serve()
        self.check()

    def answer(self, flight: Flight) -> None:
        if flight.served is None:
            self.serve(flight)
        assert flight.served is not None
        self._land(flight, flight.served)

    def refuse(self, flight: Flight) -> None:
        """The API can't have done it, and says so."""
        if flight.served is None:
            self._land(flight, flight.refused)

    def lose(self, flight: Flight) -> None:
        """Nobody knows whether it was done; if not, it may still be."""
        if flight.served is None and flight.write:
            self.ghosts.append(flight)
        self._land(flight, flight.unanswered)

    def haunt(self, flight: Flight) -> None:
        """A lost write lands after all."""
        self.ghosts.remove(flight)
        flight.serve()
        self.check()

    def restart(self) -> None:
        """The process is killed: what it kept is what it last gave to `remember`, all under way is lost to it."""
        self.ghosts += [each for each in self.flights if each.write and each.served is None]
        self.flights.clear()
        self._news.clear()
        self.machine = None
        self._seen, self._turns_at_once = False, 0
        self.driver = self._started()
        self.check()
        self.turn()

    def run(self, seconds: float, every_seconds: float = 0.1) -> None:
        """All is well: each exchange is answered so soon."""
        end = self.now + seconds
        while self.now < end:
            for flight in list(self.flights):
                self.answer(flight)
            self.advance(every_seconds)

    def check(self) -> None:
        """Asserts all that must hold at every moment."""
        assert self.gate is Gate.CLOSED or not isinstance(self._record(), GateClosed), "closed, it says, and it is open"
        promise = self._promised()
        if promise is None:
            return
        assert self.watchdog is not None, "a promise stands, and nothing is armed"
        commitments, memory = self.driver.commitments, self.driver.memory
        bound = standing(self.driver.settings, self.host_context(), commitments, memory, self.rosters(), "")
        assert bound.armed and bound.machine_uid == promise.machine_uid
        assert bound.self_timeout_seconds <= promise.self_timeout_seconds, "a longer T than the promised one (rule 5)"
        assert _names(promise.roster_version) in bound.electorates, "another roster than the promised one"

    def _started(self) -> Driver:
        memory, commitments = self._kept
        commitments = replace(
            commitments, look=None, not_before_at=0.0, trouble="", gate=self.gate, watchdog=self.watchdog
        )
        return Driver(
            self.settings,
            self,
            self,
            memory=memory.resumed(),
            commitments=commitments,
            clock=lambda: self.now,
            entropy=lambda: 7,
        )

    def _fly(
        self,
        what: str,
        serve: Callable[[], Callable[[], News]],
        unanswered: Callable[[], News],
        refused: Callable[[], News],
        write: tuple[AgentRecord, Node] | None = None,
    ) -> None:
        self.flights.append(Flight(what, self.now, serve, unanswered, refused, write=write))

    def _land(self, flight: Flight, reply: Callable[[], News]) -> None:
        self.flights.remove(flight)
        self._news.append(reply())
        self._turns_at_once = 0
        self.turn()

    def _pass(self, until: float) -> None:
        if until > self.now:
            self.now, self._turns_at_once = until, 0

    def _read_well(self, began_at: float) -> Read:
        self.machine, self._read_well_at = MACHINE, max(began_at, self._read_well_at)
        return Read(began_at, self.now, MACHINE)

    def _look(self, began_at: float) -> Callable[[], News]:
        found, backup = self.api.node, self.api.backup

        def reply() -> Look:
            self._shown, self._shown_at, self._seen = found, self.now, True
            return Look(began_at, self.now, found, missing=found is None, backup=found is None and backup)

        return reply

    def _store(self, record: AgentRecord, on: Node) -> Callable[[], News]:
        version = on.resource_version
        if not self.api.would_land(on):
            return lambda: StoreEnded(record, version, Written.CONFLICT, self.now, sentence="conflict")
        self.api.change(agent=record)
        written = self.api.node

        def reply() -> StoreEnded:
            self._shown, self._shown_at, self._seen = written, self.now, True
            return StoreEnded(record, version, Written.DONE, self.now, written)

        return reply

    def _record(self) -> AgentRecord | None:
        record = self.api.node.agent if self.api.node is not None else None
        return None if isinstance(record, Unreadable) else record

    def _promised(self) -> Armed | None:
        record = self._record()
        return record if isinstance(record, Armed) and record.boot == BOOT else None

    def _decided(self) -> Decision | None:
        return self.driver.memory.decision
