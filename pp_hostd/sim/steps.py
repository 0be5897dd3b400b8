"""What each step of a leader does to the simulated API, one exchange after the other, as leader/apply.py does."""

from __future__ import annotations

import enum
from collections.abc import Generator
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Callable, Union

from pp_hostd.embedded.lifecycle import DeleteOptions
from pp_hostd.kube.resources import CONFIG_MAPS, NODES, Resource
from pp_hostd.leader import node_writes
from pp_hostd.leader.own_config_maps import OwnConfigMaps
from pp_hostd.leader.sights import Machines, Nodes, Sight
from pp_hostd.model.backup import back_up
from pp_hostd.model.condemnation import Condemned, NotRequested, Requested
from pp_hostd.model.keys import BUDGET, NAMESPACE, OUT_OF_SERVICE, backup_name
from pp_hostd.model.machine import parse_machine
from pp_hostd.model.node import parse_node
from pp_hostd.model.observed import parse_node_seen
from pp_hostd.model.record import Unreadable
from pp_hostd.model.remedy import (
    Clear,
    Complete,
    Condemn,
    Cordon,
    DeleteNode,
    DropBackup,
    Freeing,
    FreeWorkloads,
    Inspect,
    Inspected,
    Inspection,
    MarkFreeing,
    NoteRequest,
    Recreate,
    Remedy,
    RemedyNews,
    SetUnknown,
    SpendBudget,
    StoreBackup,
    Uncordon,
)
from pp_hostd.model.remedy import Freed as FreedNews
from pp_hostd.model.written import Written
from pp_hostd.sim.api import Client, Json, as_it_is

SEEN_SECONDS = 5.0
LOOK_SECONDS = 0.05
EVICTION_SECONDS = 6.0
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


@dataclass
class Sights:
    """What the leader's watches have shown."""

    nodes: Nodes
    machines: Machines = field(default_factory=Machines)
    config_maps: OwnConfigMaps = field(default_factory=OwnConfigMaps)


class Steps:
    """`frees` hears of each write after which workloads may start elsewhere, `tell` what a step has found."""

    def __init__(
        self,
        client: Client,
        sights: Sights,
        frees: Callable[[str, Freed], None],
        wallclock: Callable[[], datetime],
        tell: Callable[[RemedyNews], None],
    ) -> None:
        self._client, self._sights, self._frees, self._wallclock, self._tell = client, sights, frees, wallclock, tell
        self._clock, self._cluster = client.process.clock, client.api.cluster

    def of(self, node: str, remedy: Remedy) -> Work:
        if isinstance(remedy, Inspect):
            return self._inspect(remedy)
        if isinstance(remedy, FreeWorkloads):
            return self._free(remedy)
        if isinstance(remedy, (Condemn, Clear)):
            return self._change_machine(remedy)
        if isinstance(remedy, StoreBackup):
            backup = remedy.backup
            return self.store(backup_name(backup.name), backup.data(), remedy.resource_version)
        if isinstance(remedy, SpendBudget):
            return self.store(BUDGET, {BUDGET: remedy.budget.render()}, remedy.resource_version)
        return self._write_node(node, remedy)

    def _write_node(self, node: str, remedy: Remedy) -> Work:
        if isinstance(remedy, Cordon):
            change = partial(node_writes.cordon, condemnation_id=remedy.id)
            return self._change_node(node, remedy.uid, remedy.resource_version, change)
        if isinstance(remedy, MarkFreeing):
            mark = partial(node_writes.mark_freeing, condemnation_id=remedy.id, out_of_service=remedy.out_of_service)
            return self._change_node(node, remedy.uid, remedy.resource_version, mark, frees=True)
        if isinstance(remedy, NoteRequest):
            return self._change_node(node, remedy.uid, remedy.resource_version, node_writes.note_request)
        if isinstance(remedy, Uncordon):
            return self._change_node(node, remedy.uid, None, node_writes.uncordon)
        if isinstance(remedy, Complete):
            complete = partial(node_writes.complete, backup=remedy.backup, is_machine=self._cluster.machines_are_nodes)
            return self._change_node(node, remedy.uid, None, complete)
        if isinstance(remedy, SetUnknown):
            unheard = partial(node_writes.unheard, now=self._wallclock())
            return self._change_node(node, remedy.uid, remedy.resource_version, unheard, part="status")
        if isinstance(remedy, Recreate):
            node_again = node_writes.recreated(
                remedy.backup, self._wallclock(), is_machine=self._cluster.machines_are_nodes
            )
            return self._create(NODES, "", node_again)
        if isinstance(remedy, DropBackup):
            return self._drop_backup(remedy)
        assert isinstance(remedy, DeleteNode), remedy
        return self._delete_node(remedy)

    def _change_node(
        self,
        name: str,
        uid: str,
        version: str | None,
        change: Callable[[Json], Json],
        *,
        frees: bool = False,
        part: str = "",
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
            written = api.patch(NODES, "", name, patch, part)
            if frees:
                self._frees(name, Freed.MARKED)
                self._client.time.after(EVICTION_SECONDS, partial(self._evict, name))
            return written

        yield serve
        yield from self._seen(self._sights.nodes, name, found)

    def _delete_node(self, step: DeleteNode) -> Work:
        options = DeleteOptions(uid=step.uid, resource_version=step.resource_version)

        def serve() -> Json:
            gone = self._client.api.delete(NODES, "", step.node, options)
            self._client.api.leases.pop(step.node, None)
            self._frees(step.node, Freed.DELETED)
            return gone

        yield serve
        yield from self._seen(self._sights.nodes, step.node, step.resource_version)

    def _drop_backup(self, step: DropBackup) -> Work:
        node = yield partial(self._client.api.if_there, as_it_is, NODES, "", step.node)
        if (None if node is None else node["metadata"]["uid"]) != step.uid:
            raise Unwritten(Written.CONFLICT, "it is no longer what it was")
        options = DeleteOptions(resource_version=step.resource_version)
        yield from self._delete(CONFIG_MAPS, NAMESPACE, backup_name(step.node), options)

    def _create(self, kind: Resource, namespace: str, body: Json) -> Work:
        yield partial(self._client.api.create, kind, namespace, body)
        yield from self._seen(self._sight(kind), body["metadata"]["name"], None)

    def _delete(self, kind: Resource, namespace: str, name: str, options: DeleteOptions) -> Work:
        yield partial(self._client.api.delete, kind, namespace, name, options)
        yield from self._seen(self._sight(kind), name, options.resource_version)

    def _change_machine(self, step: Condemn | Clear) -> Work:
        namespace, _, name = step.subject.rpartition("/")
        state = Condemned(step.id, self._wallclock()) if isinstance(step, Condemn) else NotRequested(step.last_id)
        condition = {"uid": step.uid, "resourceVersion": step.resource_version}
        patch = {"metadata": {**state.render(), **condition}}
        yield partial(self._client.api.patch, self._cluster.kind, namespace, name, patch)
        yield from self._seen(self._sights.machines, step.subject, step.resource_version)

    def store(self, name: str, data: Json, version: str | None) -> Work:
        api, metadata = self._client.api, {"name": name}
        if version is None:
            yield partial(api.create, CONFIG_MAPS, NAMESPACE, {"metadata": metadata, "data": data})
        else:
            body = {"metadata": {**metadata, "resourceVersion": version}, "data": data}
            yield partial(api.update, CONFIG_MAPS, NAMESPACE, name, body)
        yield from self._seen(self._sights.config_maps, name, version)

    def _inspect(self, step: Inspect) -> Work:
        api, began_at = self._client.api, self._clock()
        namespace, _, name = step.subject.rpartition("/")
        found = yield partial(api.if_there, as_it_is, self._cluster.kind, namespace, name)
        machine = None if found is None else parse_machine(found)
        node = found
        if not self._cluster.machines_are_nodes:  # else the one read shows both, and in one state
            node = yield partial(api.if_there, as_it_is, NODES, "", step.node)
        seen = None if node is None else parse_node_seen(node, self._cluster.machines)
        assert not isinstance(seen, Unreadable) and not isinstance(machine, Unreadable), (seen, machine)
        condemnation = None if machine is None else machine.condemnation
        backup = None
        if node is not None and isinstance(condemnation, (Condemned, Requested)):
            newest = condemnation.id if isinstance(condemnation, Condemned) else condemnation.last_id + 1
            backup = back_up(node, newest)
        renewed = yield partial(api.leases.get, step.node, "")
        self._tell(Inspected(step.node, Inspection(began_at, self._clock(), machine, seen, backup, renewed)))

    def _free(self, step: FreeWorkloads) -> Work:
        """One pass. Pods are deleted as they were listed: whoever has started them since has written about them."""
        api = self._client.api
        if step.freeing is not Freeing.AWAIT:
            listed_at = yield partial(api.pods.get, step.node)
            if (yield from self._is_back(step)):
                self._tell(FreedNews(step.node, 0, self._clock()))
                return
            yield partial(self._delete_pods, step.node, listed_at)
        left = yield partial(api.pods.get, step.node)
        self._tell(FreedNews(step.node, int(left is not None), self._clock()))

    def _is_back(self, step: FreeWorkloads) -> Generator[Serve, Any, bool]:
        """Whether a Node that was deleted is there again; one that stays must still bear the marker (rule 12)."""
        node = yield partial(self._client.api.if_there, parse_node, NODES, "", step.node)
        if step.freeing is Freeing.ALL:
            return node is not None
        if node is None or node.freeing is None:
            raise Unwritten(Written.CONFLICT, "it bears the marker no longer")
        return False

    def _delete_pods(self, name: str, listed_at: float | None) -> None:
        pods = self._client.api.pods
        if listed_at is not None and pods.get(name) == listed_at:
            del pods[name]
            self._frees(name, Freed.PODS)

    def _evict(self, name: str) -> None:
        """The cluster's own controllers delete all pods of a Node that is out of service."""
        api = self._client.api
        node = api.if_there(as_it_is, NODES, "", name)
        if node is not None and any(taint["key"] == OUT_OF_SERVICE for taint in node["spec"].get("taints", ())):
            self._delete_pods(name, api.pods.get(name))

    def _sight(self, kind: Resource) -> Sight[Any]:
        return self._sights.nodes if kind is NODES else self._sights.config_maps

    def _seen(self, sight: Sight[Any], name: str, before: str | None) -> Work:
        """Until the watch shows the effect."""
        until = self._clock() + SEEN_SECONDS
        while sight.versions.get(name) == before and self._clock() < until:
            yield LOOK_SECONDS
