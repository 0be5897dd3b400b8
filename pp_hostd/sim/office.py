"""One term of a leader: senses and hands of the real driver, which watch and write the simulated API."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any, Callable, Protocol

from pp_hostd.embedded.history import Event
from pp_hostd.embedded.paging import Query
from pp_hostd.kube.resources import CONFIG_MAPS, NODES, Resource
from pp_hostd.leader.driver import Driver
from pp_hostd.leader.own_config_maps import observed
from pp_hostd.leader.sights import Nodes, Sight
from pp_hostd.model.case import Course
from pp_hostd.model.condemnation import Draw
from pp_hostd.model.keys import LEADER, NAMESPACE, ROSTER
from pp_hostd.model.observed import Observed
from pp_hostd.model.remedy import (
    AskPeers,
    HandOver,
    Remedy,
    RemedyEnded,
    RemedyNews,
    WriteRoster,
)
from pp_hostd.model.settings import Settings
from pp_hostd.model.written import Written
from pp_hostd.sim.api import Client, Failed, Json, Reply
from pp_hostd.sim.asking import Asking
from pp_hostd.sim.question import AskPeer
from pp_hostd.sim.steps import Freed, Sights, Steps, Unwritten, Work
from pp_hostd.sim.stream import Stream
from pp_hostd.sim.time import Clock

WRITE_SECONDS = 5.0
ROSTER_AGAIN_SECONDS = 2.0


class Leadership(Protocol):
    """What a term needs of the leader whose it is."""

    settings: Settings
    client: Client
    ask_peer: AskPeer
    frees: Callable[[str, Freed], None]
    told: dict[str, str]
    note: Callable[[str, str], None]
    clock: Clock
    host: str

    def acting_until(self) -> float: ...
    def wallclock(self) -> datetime: ...
    def draw(self) -> Draw: ...
    def resign(self) -> None: ...


class Office:
    """One term: senses and hands of the driver."""

    def __init__(self, leader: Leadership) -> None:
        self._leader, self._client, self.clock = leader, leader.client, leader.clock
        self._open, self._unlisted = True, set[Resource]()
        cluster = self._client.api.cluster
        self._sights = Sights(Nodes(cluster.machines))
        self._news: list[RemedyNews] = []
        self._roster_revision, self._roster_busy = -1, False
        self._due, self._wakes = False, 0
        self._told: dict[str, str] = {}
        self._steps = Steps(self._client, self._sights, leader.frees, leader.wallclock, self._tell)
        self.driver = Driver(leader.settings, self, self, own_node=leader.host, clock=self.clock, draw=leader.draw)
        of_ours = Query(NAMESPACE, field_selector=f"metadata.name!={LEADER}")
        self._follow(CONFIG_MAPS, of_ours, self._sights.config_maps)
        if cluster.machines_are_nodes:
            self._follow(NODES, Query(), self._sights.nodes, self._sights.machines)
        else:
            self._follow(NODES, Query(), self._sights.nodes)
            self._follow(cluster.kind, Query(), self._sights.machines)

    def close(self) -> None:
        self._open = False

    def _follow(self, kind: Resource, query: Query, *sights: Sight[Any]) -> None:
        """One watch may feed several sights."""
        self._unlisted.add(kind)

        def listed(items: list[Json]) -> None:
            for sight in sights:
                sight.begin_anew()
                for item in items:
                    sight.show(sight.keep(item))
            self._unlisted.discard(kind)
            self._wake()

        def changed(event: Event) -> None:
            for sight in sights:
                kept = sight.keep(event.object())
                if event.type == "DELETED":
                    sight.show_gone(kept.name)
                else:
                    sight.show(kept)
            self._wake()

        Stream(self._client, kind, query, listed, changed, lambda: self._open)

    # Turns.

    def _wake(self) -> None:
        if not self._due and self._open and not self._unlisted:
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
        sights = self._sights
        return observed(sights.nodes, sights.machines, sights.config_maps)

    def take(self) -> list[RemedyNews]:
        taken, self._news = self._news, []
        return taken

    def nodes_changed(self) -> bool:
        sights = self._sights
        revision = sights.nodes.revision + sights.machines.revision + sights.config_maps.revision
        if self._roster_busy or revision == self._roster_revision:
            return False
        self._roster_revision = revision
        return True

    # The driver's hands.

    def show(self, courses: tuple[Course, ...]) -> None:
        for course in courses:
            if self._told.get(course.node) != course.sentence:
                self._told[course.node] = self._leader.told[course.node] = course.sentence
                self._leader.note(self._leader.host, f"{course.node}: {course.sentence}")

    def write_roster(self, order: WriteRoster) -> None:
        self._roster_busy = True

        def rested() -> None:
            self._roster_busy, self._roster_revision = False, -1
            self._wake()

        def ended(_: Written, __: str) -> None:
            self._client.process.later(ROSTER_AGAIN_SECONDS, rested)

        self._run(self._steps.store(ROSTER, {ROSTER: order.roster.render()}, order.resource_version), ended)

    def start(self, node: str, remedy: Remedy) -> None:
        def ended(written: Written, sentence: str) -> None:
            self._tell(RemedyEnded(node, remedy, written, self.clock(), sentence))

        if isinstance(remedy, AskPeers):
            round_seconds = self._leader.settings.peers.round_seconds
            over = partial(ended, Written.DONE, "")
            Asking(self._client, self._leader.ask_peer, round_seconds, node, remedy, self._tell, over)
        elif isinstance(remedy, HandOver):
            self._leader.resign()
        else:
            self._run(self._steps.of(node, remedy), ended)

    def _tell(self, news: RemedyNews) -> None:
        if self._open:
            self._news.append(news)
            self._wake()

    # Steps.

    def _run(self, work: Work, ended: Callable[[Written, str], None], reply: Reply = None) -> None:
        if not self._open:
            return
        try:
            if isinstance(reply, Failed):
                raise Unwritten(reply.written, reply.sentence)
            serve = work.send(reply)
        except StopIteration:
            ended(Written.DONE, "")
        except Unwritten as unwritten:
            ended(unwritten.written, unwritten.sentence)
        else:
            if isinstance(serve, float):
                self._client.process.later(serve, partial(self._run, work, ended))
                return
            left_seconds = self._leader.acting_until() - self.clock()
            if left_seconds <= 0:  # rule 14
                ended(Written.NOT_DONE, "the Lease is not valid")
                return
            again = partial(self._run, work, ended)
            self._client.call(serve, again, min(WRITE_SECONDS, left_seconds))
