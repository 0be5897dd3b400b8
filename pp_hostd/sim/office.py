"""One term of a leader: senses and hands of the real driver, which watch and write the simulated API."""

from __future__ import annotations

import enum
from collections.abc import Generator
from datetime import datetime
from functools import partial
from typing import Any, Callable, Protocol, Union

from pp_hostd.embedded.history import Event
from pp_hostd.embedded.lifecycle import DeleteOptions
from pp_hostd.embedded.paging import Query
from pp_hostd.kube.resources import CONFIG_MAPS, NODES, OPENSHIFT_MACHINES, Resource
from pp_hostd.leader import node_writes
from pp_hostd.leader.driver import Driver
from pp_hostd.leader.own_config_maps import OwnConfigMaps, observed
from pp_hostd.leader.sights import Machines, Nodes, Sight
from pp_hostd.model.answer import Answer
from pp_hostd.model.backup import back_up
from pp_hostd.model.case import Course
from pp_hostd.model.condemnation import Condemned, NotRequested
from pp_hostd.model.keys import BACKUP_KEY, LEADER, NAMESPACE, ROSTER, backup_name
from pp_hostd.model.machine import Machine, parse_machine
from pp_hostd.model.observed import Observed, parse_node_seen
from pp_hostd.model.record import Unreadable
from pp_hostd.model.remedy import (
    Acknowledged,
    AskPeers,
    Clear,
    Complete,
    Condemn,
    Cordon,
    DeleteNode,
    DropBackup,
    Freeing,
    FreeWorkloads,
    HandOver,
    Inspect,
    Inspected,
    Inspection,
    MarkFreeing,
    NotAcknowledged,
    Recreate,
    Remedy,
    RemedyEnded,
    RemedyNews,
    StoreBackup,
    Uncordon,
    WriteRoster,
)
from pp_hostd.model.remedy import Freed as FreedNews
from pp_hostd.model.settings import Settings
from pp_hostd.model.written import Written
from pp_hostd.sim.agent import AskPeer
from pp_hostd.sim.api import Client, Failed, Json, Reply, as_it_is
from pp_hostd.sim.stream import Stream
from pp_hostd.sim.time import Clock

WRITE_SECONDS = 5.0
SEEN_SECONDS = 5.0
LOOK_SECONDS = 0.05
ROSTER_AGAIN_SECONDS = 2.0
Serve = Callable[[], Any]
Work = Generator[Union[Serve, float], Any, None]
"""A step: it yields what the API is to do, and goes on with the reply, or for how long it waits. Failed ends it."""


class Freed(enum.Enum):
    """The write after which workloads may start elsewhere."""

    DELETED = "the Node is deleted"
    MARKED = "the Node is marked"
    PODS = "its pods are deleted"


class Unwritten(Exception):
    """What ends a step."""

    def __init__(self, written: Written, sentence: str) -> None:
        super().__init__(sentence)
        self.written, self.sentence = written, sentence


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
    def resign(self) -> None: ...


class Office:
    """One term: senses and hands of the driver."""

    def __init__(self, leader: Leadership) -> None:
        self._leader, self._client, self.clock = leader, leader.client, leader.clock
        self._open, self._listed = True, 0
        self._nodes, self._machines, self._config_maps = Nodes("openshift"), Machines(), OwnConfigMaps()
        self._news: list[RemedyNews] = []
        self._roster_revision, self._roster_busy = -1, False
        self._due, self._wakes = False, 0
        self._told: dict[str, str] = {}
        self.driver = Driver(leader.settings, self, self, own_node=leader.host, clock=self.clock)
        of_ours = Query(NAMESPACE, field_selector=f"metadata.name!={LEADER}")
        self._follow(NODES, Query(), self._nodes)
        self._follow(OPENSHIFT_MACHINES, Query(), self._machines)
        self._follow(CONFIG_MAPS, of_ours, self._config_maps)

    def close(self) -> None:
        self._open = False

    def _follow(self, kind: Resource, query: Query, sight: Sight[Any]) -> None:
        once = [False]

        def listed(items: list[Json]) -> None:
            sight.begin_anew()
            for item in items:
                sight.show(sight.keep(item))
            self._listed += not once[0]
            once[0] = True
            self._wake()

        def changed(event: Event) -> None:
            kept = sight.keep(event.object())
            if event.type == "DELETED":
                sight.show_gone(kept.name)
            else:
                sight.show(kept)
            self._wake()

        Stream(self._client, kind, query, listed, changed, lambda: self._open)

    # Turns.

    def _wake(self) -> None:
        if not self._due and self._open and self._listed == 3:
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
        return observed(self._nodes, self._machines, self._config_maps)

    def take(self) -> list[RemedyNews]:
        taken, self._news = self._news, []
        return taken

    def nodes_changed(self) -> bool:
        revision = self._nodes.revision + self._machines.revision + self._config_maps.revision
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

        self._run(self._store(ROSTER, {ROSTER: order.roster.render()}, order.resource_version), ended)

    def start(self, node: str, remedy: Remedy) -> None:
        def ended(written: Written, sentence: str) -> None:
            self._tell(RemedyEnded(node, remedy, written, self.clock(), sentence))

        if isinstance(remedy, AskPeers):
            self._ask_peers(node, remedy, ended)
        elif isinstance(remedy, HandOver):
            self._leader.resign()
        else:
            self._run(self._work(node, remedy), ended)

    def _tell(self, news: RemedyNews) -> None:
        if self._open:
            self._news.append(news)
            self._wake()

    # Steps: each yields what the API is to do, and goes on with the reply.

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

    def _work(self, node: str, remedy: Remedy) -> Work:
        if isinstance(remedy, Inspect):
            return self._inspect(remedy)
        if isinstance(remedy, FreeWorkloads):
            return self._free(remedy)
        if isinstance(remedy, (Condemn, Clear)):
            return self._change_machine(remedy)
        if isinstance(remedy, StoreBackup):
            backup = remedy.backup
            return self._store(backup_name(backup.name), {BACKUP_KEY: backup.render()}, remedy.resource_version)
        return self._write_node(node, remedy)

    def _write_node(self, node: str, remedy: Remedy) -> Work:
        if isinstance(remedy, Cordon):
            change = partial(node_writes.cordon, condemnation_id=remedy.id)
            return self._change_node(node, remedy.uid, remedy.resource_version, change)
        if isinstance(remedy, MarkFreeing):
            mark = partial(node_writes.mark_freeing, condemnation_id=remedy.id, out_of_service=remedy.out_of_service)
            return self._change_node(node, remedy.uid, remedy.resource_version, mark, frees=True)
        if isinstance(remedy, Uncordon):
            return self._change_node(node, remedy.uid, None, node_writes.uncordon)
        if isinstance(remedy, Complete):
            complete = partial(node_writes.complete, backup=remedy.backup, is_machine=False)
            return self._change_node(node, remedy.uid, None, complete)
        if isinstance(remedy, Recreate):
            return self._create(NODES, "", node_writes.recreated(remedy.backup, is_machine=False))
        if isinstance(remedy, DropBackup):
            options = DeleteOptions(resource_version=remedy.resource_version)
            return self._delete(CONFIG_MAPS, NAMESPACE, backup_name(remedy.node), options)
        assert isinstance(remedy, DeleteNode), remedy
        return self._delete_node(remedy)

    def _change_node(
        self, name: str, uid: str, version: str | None, change: Callable[[Json], Json], *, frees: bool = False
    ) -> Work:
        api = self._client.api
        node = yield partial(api.store.get, NODES, "", name)
        found = node["metadata"]["resourceVersion"]
        if node["metadata"]["uid"] != uid or version not in (None, found):
            raise Unwritten(Written.CONFLICT, "it is no longer what it was")
        patch = change(node)
        if not patch:
            if version is None:
                raise Unwritten(Written.CONFLICT, "it is so already")
            return
        patch = {**patch, "metadata": {**patch.get("metadata", {}), "uid": uid, "resourceVersion": found}}

        def serve() -> Json:
            written = api.patch(NODES, "", name, patch)
            if frees:
                self._leader.frees(name, Freed.MARKED)
            return written

        yield serve
        yield from self._seen(self._nodes, name, found)

    def _delete_node(self, step: DeleteNode) -> Work:
        options = DeleteOptions(uid=step.uid, resource_version=step.resource_version)

        def serve() -> Json:
            gone = self._client.api.delete(NODES, "", step.node, options)
            self._client.api.leases.pop(step.node, None)
            self._leader.frees(step.node, Freed.DELETED)
            return gone

        yield serve
        yield from self._seen(self._nodes, step.node, step.resource_version)

    def _create(self, kind: Resource, namespace: str, body: Json) -> Work:
        yield partial(self._client.api.create, kind, namespace, body)
        yield from self._seen(self._sight(kind), body["metadata"]["name"], None)

    def _delete(self, kind: Resource, namespace: str, name: str, options: DeleteOptions) -> Work:
        yield partial(self._client.api.delete, kind, namespace, name, options)
        yield from self._seen(self._sight(kind), name, options.resource_version)

    def _change_machine(self, step: Condemn | Clear) -> Work:
        namespace, _, name = step.subject.rpartition("/")
        state = (
            Condemned(step.id, self._leader.wallclock()) if isinstance(step, Condemn) else NotRequested(step.last_id)
        )
        condition = {"uid": step.uid, "resourceVersion": step.resource_version}
        patch = {"metadata": {**state.render(), **condition}}
        yield partial(self._client.api.patch, OPENSHIFT_MACHINES, namespace, name, patch)
        yield from self._seen(self._machines, step.subject, step.resource_version)

    def _store(self, name: str, data: Json, version: str | None) -> Work:
        api, metadata = self._client.api, {"name": name}
        if version is None:
            yield partial(api.create, CONFIG_MAPS, NAMESPACE, {"metadata": metadata, "data": data})
        else:
            body = {"metadata": {**metadata, "resourceVersion": version}, "data": data}
            yield partial(api.update, CONFIG_MAPS, NAMESPACE, name, body)
        yield from self._seen(self._config_maps, name, version)

    def _inspect(self, step: Inspect) -> Work:
        api, began_at = self._client.api, self.clock()
        namespace, _, name = step.subject.rpartition("/")
        found = yield partial(api.if_there, parse_machine, OPENSHIFT_MACHINES, namespace, name)
        machine = found if isinstance(found, Machine) else None
        node = yield partial(api.if_there, as_it_is, NODES, "", step.node)
        seen = None if node is None else parse_node_seen(node, "openshift")
        condemnation = None if machine is None else machine.condemnation
        backup = back_up(node, condemnation.id) if node is not None and isinstance(condemnation, Condemned) else None
        assert not isinstance(seen, Unreadable), seen
        renewed = yield partial(api.leases.get, step.node, "")
        self._tell(Inspected(step.node, Inspection(began_at, self.clock(), machine, seen, backup, renewed)))

    def _free(self, step: FreeWorkloads) -> Work:
        api = self._client.api
        node = yield partial(api.if_there, as_it_is, NODES, "", step.node)
        if step.freeing is Freeing.ALL and node is None:

            def serve() -> int:
                self._leader.frees(step.node, Freed.PODS)
                return 0

            yield serve
        self._tell(FreedNews(step.node, 0, self.clock()))

    def _ask_peers(self, node: str, step: AskPeers, ended: Callable[[Written, str], None]) -> None:
        Asking(self._leader, node, step, self._tell, lambda: ended(Written.DONE, ""))

    def _sight(self, kind: Resource) -> Sight[Any]:
        return self._nodes if kind is NODES else self._config_maps

    def _seen(self, sight: Sight[Any], name: str, before: str | None) -> Work:
        """Until the watch shows the effect."""
        until = self.clock() + SEEN_SECONDS
        while sight.versions.get(name) == before and self.clock() < until:
            yield LOOK_SECONDS


class Asking:
    """One round of questions to peers; over when each was answered or let its time pass."""

    def __init__(
        self,
        leader: Leadership,
        node: str,
        step: AskPeers,
        tell: Callable[[RemedyNews], None],
        over: Callable[[], None],
    ) -> None:
        self._leader, self._node, self._tell, self._over = leader, node, tell, over
        self._waiting = {peer.name for peer in step.peers}
        self._asked_at = leader.clock()
        question = (leader.host, step.subject, step.uid)
        for peer in step.peers:
            leader.ask_peer(peer.name, question, partial(self._answered, peer.name))
        leader.client.process.later(leader.settings.peers.round_seconds, self._end)
        if not step.peers:
            over()

    def _answered(self, peer: str, answer: Answer) -> None:
        if peer not in self._waiting:
            return
        self._waiting.discard(peer)
        if answer.id is None:
            self._tell(NotAcknowledged(self._node, peer, self._asked_at, answered=True, sentence=answer.health.value))
        else:
            self._tell(Acknowledged(self._node, peer, answer.id, answer.token, self._asked_at))
        if not self._waiting:
            self._over()

    def _end(self) -> None:
        if self._waiting:
            waiting, self._waiting = sorted(self._waiting), set()
            for peer in waiting:
                self._tell(NotAcknowledged(self._node, peer, self._asked_at, answered=False, sentence="silent"))
            self._over()
