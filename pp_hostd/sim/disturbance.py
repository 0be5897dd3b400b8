"""The disturbances of a simulated cluster, and since when: by these the invariants judge whether a reset was needed."""

from __future__ import annotations

from collections.abc import Mapping

from pp_hostd.kube.resources import NODES
from pp_hostd.model.condemnation import NotRequested
from pp_hostd.model.node import Node, parse_node
from pp_hostd.model.promise import Armed
from pp_hostd.sim.api import SERVERS, Api, ServerHealth
from pp_hostd.sim.filled import machine_of
from pp_hostd.sim.host import Host
from pp_hostd.sim.network import Network
from pp_hostd.sim.time import Time

CALM_SECONDS = 10.0
SETTLED_SECONDS = 25.0
"""Longer than a host can live without a proof."""


class Disturbances:
    def __init__(
        self, time: Time, network: Network, api: Api, hosts: Mapping[str, Host], watchdog_seconds: float
    ) -> None:
        self._time, self._network, self._api, self._hosts = time, network, api, hosts
        self._watchdog_seconds = watchdog_seconds
        self._disturbed_until: dict[str, float] = {}
        self._refused_until: dict[str, float] = {}
        self._api_out_since: float | None = None
        self._network_changed_at = self._api_changed_at = 0.0
        self.lied = False
        """Whether somebody has spoken for a peer."""
        self.left = False
        """Whether a node has ever left."""

    def disturbed(self, name: str, seconds: float) -> None:
        """Its agent can't do its work for so long."""
        until = self._time.now + seconds + self._watchdog_seconds
        self._disturbed_until[name] = max(until, self._disturbed_until.get(name, 0.0))

    def refused(self, name: str, seconds: float) -> None:
        """The API refuses its credential for so long."""
        self._refused_until[name] = max(self._time.now + seconds, self._refused_until.get(name, 0.0))

    def is_disturbed(self, name: str) -> bool:
        host = self._hosts[name]
        return self._time.now <= self._disturbed_until.get(name, -1.0) or host.boot is None or host.decided

    def network_changed(self) -> None:
        self._network_changed_at = self._time.now

    def api_changed(self) -> None:
        self._api_changed_at = self._time.now
        if any(map(self._api.answers, SERVERS)):
            self._api_out_since = None
        elif self._api_out_since is None:
            self._api_out_since = self._time.now

    def only_control_plane_failed(self, name: str) -> bool:
        """Whether nobody has the API, and all else is well, and was so for a while before it failed. Hosts that start
        the API may be down, if the others are a majority. A host whose Machine is another one lives by its own reads
        alone (rule 1)."""
        since = self._api_out_since
        if (
            since is None
            or self.lied
            or self._api.cluster.agentless  # nobody answers there
            or self._network.troubled
            or not isinstance(self._condemnation(name), NotRequested)
            or self._machine_was_replaced(name)
        ):
            return False
        wrong_at = [self._network_changed_at, self._api.changed_at(*self._api.cluster.place(name))]
        others = self._all_but_api_hosts()
        wrong_at += [self._disturbed_until.get(other, 0.0) for other in others]
        wrong_at += [self._time.now if host.boot is None else host.boot.since for host in others.values()]
        return max(wrong_at) + CALM_SECONDS < since

    def _all_but_api_hosts(self) -> Mapping[str, Host]:
        """All hosts, if the others were no majority, or a node has left meanwhile."""
        others = {name: host for name, host in self._hosts.items() if name not in self._api.cluster.api_on}
        return others if 2 * len(others) > len(self._hosts) and not self.left else self._hosts

    def only_its_machine_vanished(self, name: str, uid: str) -> bool:
        """Whether its Machine of this uid is gone, its Node is untouched, and all else was well for a while. It must
        have read both for itself (rule 1)."""
        api, place = self._api, self._api.cluster.place(name)
        if api.cluster.machines_are_nodes or not api.serves_machines or self.lied or self._network.troubled:
            return False
        if api.exists(*place) and machine_of(api, name).uid == uid:
            return False
        node = api.if_there(parse_node, NODES, "", name)
        promised = isinstance(node, Node) and isinstance(node.agent, Armed) and node.agent.machine_uid == uid
        if not promised or node.tainted or node.freeing is not None:
            return False
        wrong_at = [self._network_changed_at, self._api_changed_at, *self._disturbed_until.values()]
        wrong_at.append(self._refused_until.get(name, 0.0))
        wrong_at += [self._time.now if host.boot is None else host.boot.since for host in self._hosts.values()]
        well = all(health is ServerHealth.WELL for health in api.health.values())
        return well and max(wrong_at) + SETTLED_SECONDS < self._time.now

    def _machine_was_replaced(self, name: str) -> bool:
        """Whether it has promised for another Machine than the one that there is."""
        node = self._api.if_there(parse_node, NODES, "", name)
        promise = node.agent if isinstance(node, Node) else None
        return isinstance(promise, Armed) and promise.machine_uid != machine_of(self._api, name).uid

    def _condemnation(self, name: str) -> object:
        return machine_of(self._api, name).condemnation if self._api.exists(*self._api.cluster.place(name)) else None
