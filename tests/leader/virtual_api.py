"""An API in memory: objects with versions and preconditions, and a watch that shows every change, perhaps late.

The watches are the leader's own (leader/watches.py), with all that remedies and requesters read.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, Callable

from pp_hostd.embedded.store import merge_patch
from pp_hostd.kube.resources import BARE_METAL_HOSTS, CLUSTERS, CONFIG_MAPS, MACHINES, NODES, REMEDIATIONS, Resource
from pp_hostd.leader.caches import Clusters, Watch
from pp_hostd.leader.registry import REGISTRY, Registry
from pp_hostd.leader.remedies.power_cycle.bare_metal_host import HostsSeen
from pp_hostd.leader.watches import Watches
from pp_hostd.model.observed import ClustersSeen, Observed
from pp_hostd.model.settings import Settings

Json = dict[str, Any]


class Conflict(Exception):
    """A precondition does not hold."""


class VirtualApi:
    """Objects by kind and name. Every change is an event of the watch, which shows them in order, perhaps late."""

    def __init__(self, machines: str, registry: Registry = REGISTRY, settings: Settings | None = None) -> None:
        self.machines, self._registry, self._settings = machines, registry, settings or Settings()
        self._watches = Watches(machines, self._settings, registry)
        self._clusters = Clusters()
        self._clusters_watch = Watch(
            CLUSTERS, (self._clusters,)
        )  # of any machines: tests make them Cluster API's later
        self.objects: dict[str, dict[str, Json]] = {self.called(watch.versions[0]): {} for watch in self._all()}
        self.objects.setdefault("machines", {})
        self.hosts_are_late = self.clusters_are_late = ""
        self.lags = False
        self._events: list[Callable[[], None]] = []
        self._version = 0
        self.relist()

    def called(self, resource: Resource) -> str:
        """Returns the name that the tests have for this kind."""
        names = {NODES: "nodes", CONFIG_MAPS: "config maps", BARE_METAL_HOSTS: "hosts"}
        names.update({version: kind for kind, versions in REMEDIATIONS.items() for version in versions})
        names.update(dict.fromkeys(CLUSTERS, "clusters"))
        names.update({} if self.machines == "node" else dict.fromkeys(MACHINES[self.machines], "machines"))
        return names.get(resource, resource.plural)

    def _all(self) -> list[Watch]:
        return [self._clusters_watch, *self._watches.watches]

    def watch_of(self, kind: str) -> Watch:
        """The leader's watch of this kind."""
        return self._watches_of(kind)[0]

    def _watches_of(self, kind: str) -> list[Watch]:
        """Empty for a kind that is only read."""
        return [watch for watch in self._all() if self.called(watch.versions[0]) == kind]

    def _event(self, watch: Watch, known: Json, *, gone: bool) -> Callable[[], None]:
        kept = watch.keep(known)
        return lambda: watch.show_gone(kept) if gone else watch.show(kept)

    @property
    def machine_kind(self) -> str:
        return "nodes" if self.machines == "node" else "machines"

    def get(self, kind: str, name: str) -> Json | None:
        found = self.objects.setdefault(kind, {}).get(name)
        return None if found is None else copy.deepcopy(found)

    def put(self, kind: str, name: str, body: Json | None) -> None:
        """Set (None: remove) the object, whatever was there."""
        before = self.objects.setdefault(kind, {}).get(name)
        if body is None:
            self.objects[kind].pop(name, None)
        else:
            body = copy.deepcopy(body)
            self._version += 1
            body["metadata"].setdefault("uid", f"uid-{self._version}")
            body["metadata"]["resourceVersion"] = str(self._version)
            self.objects[kind][name] = body
        known = before if body is None else body
        if known is not None:
            self._events += [self._event(watch, known, gone=body is None) for watch in self._watches_of(kind)]
        if not self.lags:
            self.catch_up()

    def patch(self, kind: str, name: str, patch: Json, **conditions: str | None) -> None:
        found = self.matching(kind, name, **conditions)
        patched = merge_patch(found, patch)
        if patched != found:
            self.put(kind, name, patched)

    def matching(self, kind: str, name: str, uid: str | None = None, version: str | None = None) -> Json:
        found = self.get(kind, name)
        if found is None or uid not in (None, found["metadata"]["uid"]):
            raise Conflict(f"{kind} {name}")
        if version not in (None, found["metadata"]["resourceVersion"]):
            raise Conflict(f"{kind} {name}")
        return found

    def catch_up(self) -> None:
        events, self._events = self._events, []
        for event in events:
            event()

    def relist(self) -> None:
        """The watches break, and begin again with a list."""
        self._events.clear()
        for watch in self._all():
            self._list(watch)

    def _list(self, watch: Watch) -> None:
        found = self.objects[self.called(watch.versions[0])].values()
        watch.show_all([watch.keep(body) for body in found])

    def new_leader(self) -> None:
        """Another leader's watches begin with a list."""
        self._watches = Watches(self.machines, self._settings, self._registry)
        self.relist()

    def observed(self) -> Observed:
        found = self._watches.observed
        parts = {**found.parts, HostsSeen: HostsSeen(late=self.hosts_are_late)} if self.hosts_are_late else found.parts
        return replace(found, parts=parts, clusters=ClustersSeen(self._clusters.pauses, self.clusters_are_late))

    @property
    def revision(self) -> int:
        return self._watches.revision_of_nodes
