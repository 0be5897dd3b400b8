"""A kubelet: it renews its Lease, reports its boot as Ready, and starts workloads once no gate or taint keeps it.

Under a `taint` gate its first look is no older than its report: of one that is stale, nothing is promised.
"""

from __future__ import annotations

from pp_hostd.kube.resources import NODES
from pp_hostd.model.node import parse_node
from pp_hostd.sim.api import SERVERS, Api, as_it_is
from pp_hostd.sim.host import Boot, Host
from pp_hostd.sim.network import Network
from pp_hostd.sim.time import Time

PERIOD_SECONDS = 10.0
LOOK_SECONDS = 1.0


class Kubelet:
    """In one boot. What nothing `holds` runs from the beginning, and looks for the leader's taint."""

    def __init__(self, api: Api, network: Network, time: Time, host: Host, boot: Boot, *, held: bool) -> None:
        self._api, self._network, self._time = api, network, time
        self._host, self._boot, self._held = host, boot, held
        time.after(LOOK_SECONDS, self._go_on)

    def _go_on(self) -> None:
        if self._host.boot is not self._boot:
            return
        runs = self._boot.kubelet_since is not None
        if runs or not self._held:
            self._host.kubelet_runs()  # and starts what needs no API
        if (runs or not self._held) and self._has_a_way():
            self._report()
            if not runs and not self._is_kept_away():
                self._host.start_workloads(self._boot)
        self._time.after(PERIOD_SECONDS if runs else LOOK_SECONDS, self._go_on)

    def _has_a_way(self) -> bool:
        name, cut = self._host.name, self._network.cut
        return any(
            self._api.answers(server) and (name, server) not in cut and (server, name) not in cut for server in SERVERS
        )

    def _report(self) -> None:
        name = self._host.name
        self._api.leases[name] = f"{self._time.now:.3f}"
        node = self._api.if_there(as_it_is, NODES, "", name)
        if node is not None and node.get("status", {}).get("nodeInfo", {}).get("bootID") != self._boot.id:
            ready = {"type": "Ready", "status": "True"}
            status = {"status": {"nodeInfo": {"bootID": self._boot.id}, "conditions": [ready]}}
            self._api.patch(NODES, "", name, status, "status")

    def _is_kept_away(self) -> bool:
        """A Node that is missing is the leader's to recreate."""
        node = self._api.if_there(parse_node, NODES, "", self._host.name)
        return node is None or node.tainted
