"""An API in memory: objects with versions and preconditions, and a watch that shows every change, perhaps late.

The watch is the leader's own (leader/sights.py, leader/own_config_maps.py).
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any, Callable

from pp_hostd.embedded.merge_patch import merge_patch
from pp_hostd.leader.own_config_maps import OwnConfigMaps, observed
from pp_hostd.leader.sights import Clusters, Hosts, Machines, Nodes, Remediations, Sight
from pp_hostd.model.observed import ClustersSeen, HostsSeen, Observed
from pp_hostd.model.remediation import KINDS, Remediation
from pp_hostd.model.settings import Settings

Json = dict[str, Any]


class Conflict(Exception):
    """A precondition does not hold."""


class VirtualApi:
    """Objects by kind and name. Every change is an event of the watch, which shows them in order, perhaps late."""

    def __init__(self, machines: str) -> None:
        self.machines = machines
        self.objects: dict[str, dict[str, Json]] = {"nodes": {}, "machines": {}, "config maps": {}, "hosts": {}}
        self.objects["clusters"] = {}
        self.objects.update({kind.name: {} for kind in KINDS})
        self.nodes, self.seen_machines, self.config_maps = Nodes(machines), Machines(), OwnConfigMaps()
        self.hosts = Hosts(Settings.power.suffix)
        self.clusters, self.clusters_are_late = Clusters(), ""
        self.remediations: dict[str, Remediation] = {}
        self._remediations = {kind.name: Remediations(kind, self.remediations) for kind in KINDS}
        self.lags = False
        self._events: list[Callable[[], None]] = []
        self._version = 0

    @property
    def machine_kind(self) -> str:
        return "nodes" if self.machines == "node" else "machines"

    def get(self, kind: str, name: str) -> Json | None:
        found = self.objects[kind].get(name)
        return None if found is None else copy.deepcopy(found)

    def put(self, kind: str, name: str, body: Json | None) -> None:
        """Set (None: remove) the object, whatever was there."""
        if body is None:
            self.objects[kind].pop(name, None)
        else:
            body = copy.deepcopy(body)
            self._version += 1
            body["metadata"].setdefault("uid", f"uid-{self._version}")
            body["metadata"]["resourceVersion"] = str(self._version)
            self.objects[kind][name] = body
        for sight in self._sights(kind):
            kept = None if body is None else sight.keep(body)
            gone = f"{kind} {name}" if kind in self._remediations else name
            self._events.append(lambda s=sight, k=kept, g=gone: s.show_gone(g) if k is None else s.show(k))  # type: ignore[misc]
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
        """The watch breaks, and begins anew with a list."""
        self._events.clear()
        for kind, objects in self.objects.items():
            for sight in self._sights(kind):
                sight.begin_anew()
                for body in objects.values():
                    sight.show(sight.keep(body))

    def watch_hosts(self) -> None:
        """Another leader's watch of the BareMetalHosts begins with a list."""
        self.hosts = Hosts(Settings.power.suffix)
        for body in self.objects["hosts"].values():
            self.hosts.show(self.hosts.keep(body))

    def observed(self) -> Observed:
        hosts = self.hosts
        seen = HostsSeen(hosts.seen, hosts.names, tuple(hosts.held), self.seen_machines.claims)
        clusters = ClustersSeen(self.clusters.pauses, self.clusters_are_late)
        return observed(self.nodes, self.seen_machines, self.config_maps, seen, self.remediations, clusters)

    @property
    def revision(self) -> int:
        return self.nodes.revision + self.seen_machines.revision + self.config_maps.revision

    def _sights(self, kind: str) -> Iterable[Sight[Any]]:
        if kind == "nodes":
            return (self.nodes, self.seen_machines) if self.machines == "node" else (self.nodes,)
        if kind == "machines":
            return () if self.machines == "node" else (self.seen_machines,)
        if kind in self._remediations:
            return (self._remediations[kind],)
        if kind == "clusters":
            return (self.clusters,)
        return (self.hosts,) if kind == "hosts" else (self.config_maps,)
