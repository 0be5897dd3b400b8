"""A small cluster that lives: hosts with agents, two leaders, a database, and what Kubernetes would run beside its API.

Whoever tells a story, or plays, gives its orders here and calls `live` often. The kubelets' reports and the node
controller's are played here, the pod in workload.py; agents, leaders and resets are real.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timezone
from typing import Any

from pp_hostd.kube.resources import LEASES, NODE_HEALTH_CHECKS, NODES, PODS, VOLUME_ATTACHMENTS
from pp_hostd.leader.requests.health_checks.definitions import default_check
from pp_hostd.model.keys import NAMESPACE
from pp_hostd.model.lease import LEASE, given_up_spec
from pp_hostd.model.moment import render_moment
from pp_hostd.service.journal import Message
from tests.demo.api import Api, Change, Json
from tests.demo.board import HostRow
from tests.demo.narrator import now
from tests.demo.workload import POD, Workload
from tests.harness.bed.bed import API
from tests.harness.bed.cluster_bed import ClusterBed
from tests.harness.bed.host import Host
from tests.harness.bed.leader import Leader
from tests.harness.bed.relay import Mode

HOSTS, LEADERS = 5, ("worker-1", "worker-2")
SILENT_SECONDS = 4.0
"""So long after a kubelet's last report the node controller that is played here says Unknown; Kubernetes takes 40 s."""


class Live:
    """`home` is where the database runs first, `refuge` where it runs next, if these hosts can take it."""

    def __init__(self, bed: ClusterBed, api: Api, home: str, refuge: str) -> None:
        self.bed, self.api, self.hosts = bed, api, bed.hosts
        self.leaders: dict[str, Leader] = {}
        self.workload = Workload(api, self._place)
        self.without_api: set[str] = set()
        self.cut_off: set[str] = set()
        self.resets = 0
        self._preferred = [home, refuge, *sorted(bed.hosts, reverse=True)]
        self._homeless, self._housed = True, False
        self._reported_at: dict[str, float] = {}

    def begin(self) -> None:
        """Boot the hosts, and start the leaders; an earlier leader has given the Lease up."""
        lease = {"metadata": {"name": LEASE}, "spec": given_up_spec(datetime.now(timezone.utc))}
        self.api.create(LEASES, lease, NAMESPACE)
        self.api.watch(NODES, NODE_HEALTH_CHECKS, PODS, VOLUME_ATTACHMENTS)
        self.bed.boot()
        for name in LEADERS:
            self.start_leader(name)

    def start_leader(self, name: str) -> None:
        self.leaders[name] = Leader(self.hosts[name])

    def create_check(self) -> None:
        """As `pp-leader install --health-check` does."""
        self.api.create(NODE_HEALTH_CHECKS, default_check())

    def live(self) -> list[Change]:
        """Let everything that is played here go on; returns what has changed in the cluster."""
        changes = list(self.api.changes())
        for host in self.hosts.values():
            if not host.is_up():
                self._power_on(host)
        kubelets = {name: host for name, host in self.hosts.items() if self._kubelet_talks(host)}
        for name in self.hosts:
            self._report(name, talks=name in kubelets)
        if not self._homeless:
            self.workload.play(kubelets)
        return changes

    def house(self) -> None:
        """From here on the database runs."""
        self._homeless = False

    # The network and the API, as the hosts find them.

    def cut(self, name: str) -> None:
        self.cut_off.add(name)
        self._wire()

    def mend(self, name: str) -> None:
        self.cut_off.discard(name)
        self._wire()

    def take_api(self, names: Iterable[str]) -> None:
        """No connection of these hosts to the API lasts; those of administrators do."""
        self.without_api.update(names)
        self.bed.set_api(Mode.REFUSE, names)

    def give_api(self, names: Iterable[str]) -> None:
        self.without_api.difference_update(names)
        self.bed.set_api(Mode.PASS, names)

    def _wire(self) -> None:
        self.bed.heal()
        self.bed.cut_pairs(
            *((a, b) for a in (*self.hosts, API) for b in (*self.hosts, API) if a != b and {a, b} & self.cut_off)
        )

    # For a person who looks.

    def led(self) -> bool:
        return any(map(self.leads, LEADERS))

    def leads(self, name: str) -> bool:
        lines = self.leader_lines(name, Message.LEADING)
        return bool(lines) and self.leaders[name].is_running() and lines[-1]["line"].startswith("leads,")

    def leader_lines(self, name: str, message: Message) -> list[Any]:
        journal = self.hosts[name].events("journal")
        return [line for line in journal if line["fields"].get("MESSAGE_ID") == message.value]

    def row(self, host: Host) -> HostRow:
        network = "cut off" if host.name in self.cut_off else "no API" if host.name in self.without_api else "ok"
        runs = [POD] if host.name in self.workload.running_on() else []
        if host.name in self.leaders and self.leaders[host.name].is_running():
            runs.append("leader" if self.leads(host.name) else "standby leader")
        if not host.is_up():
            return HostRow(host.name, network, "off", "", "is being reset")
        kubelet = "runs" if host.kubelet_started() else "held back"
        return HostRow(host.name, network, kubelet, ", ".join(runs), host.status_text().partition(" (proof")[0])

    def rows(self) -> list[HostRow]:
        return [self.row(host) for host in self.hosts.values()]

    # The parts of Kubernetes that are played.

    def _power_on(self, host: Host) -> None:
        """As a server's firmware does after a reset."""
        self.resets += 1
        self.bed.boot(host.name)
        if host.name in self.leaders:
            self.start_leader(host.name)

    def _kubelet_talks(self, host: Host) -> bool:
        return host.name not in self.cut_off | self.without_api and host.is_up() and host.kubelet_started()

    def _report(self, name: str, *, talks: bool) -> None:
        """As the kubelet does of its Node, and the node controller of one that is silent."""
        node = self.api.seen(NODES, name)
        self._reported_at[name] = now() if talks else self._reported_at.get(name, now())
        silent = now() > self._reported_at[name] + SILENT_SECONDS
        wanted = "True" if talks else "Unknown" if silent and len(self.without_api) < len(self.hosts) else ""
        found = _ready(node)
        if node is None or not wanted or found == wanted or (wanted == "Unknown" and not found):
            return
        moment = render_moment(datetime.now(timezone.utc).replace(microsecond=0))
        reason = "KubeletReady" if talks else "NodeStatusUnknown"
        message = "kubelet is posting ready status" if talks else "Kubelet stopped posting node status."
        ready = {"type": "Ready", "status": wanted, "lastHeartbeatTime": moment, "lastTransitionTime": moment}
        others = [each for each in node.get("status", {}).get("conditions") or () if each["type"] != "Ready"]
        conditions = [*others, {**ready, "reason": reason, "message": message}]
        info = {"kubeletVersion": "v1.36.0", "osImage": "a namespace", "kernelVersion": "", "architecture": ""}
        status = {"conditions": conditions, "nodeInfo": {**(node["status"].get("nodeInfo") or {}), **info}}
        version = {"resourceVersion": node["metadata"]["resourceVersion"]}
        self.api.patch(NODES.path(name=name, subresource="status"), {"metadata": version, "status": status})

    def _place(self) -> Host | None:
        """Returns a host that is Ready and schedulable, as the scheduler does; the first time it is the home alone."""
        for name in self._preferred if self._housed else self._preferred[:1]:
            node = self.api.seen(NODES, name)
            if _ready(node) == "True" and node is not None and not node["spec"].get("unschedulable"):
                self._housed = True
                return self.hosts[name]
        return None


def _ready(node: Json | None) -> str:
    conditions = ((node or {}).get("status") or {}).get("conditions") or ()
    return next((str(each["status"]) for each in conditions if each["type"] == "Ready"), "")
