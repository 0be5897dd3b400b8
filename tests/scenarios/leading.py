"""Hosts with agents, two of them with leaders, in front of a cluster: each scenario begins with all of them well."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from typing import Any

from pp_hostd.kube.resources import NODES
from pp_hostd.model.condemnation import Condemned, NotRequested, Requested, last_id, parse_condemnation
from pp_hostd.model.keys import EXTERNAL_REMEDIATION
from pp_hostd.model.promise import Armed
from tests.harness.bed.cluster_bed import SETTINGS, ClusterBed
from tests.harness.bed.host import Host
from tests.harness.bed.leader import Leader
from tests.harness.bed.relay import Mode
from tests.harness.cluster import Cluster
from tests.harness.eventually import eventually
from tests.scenarios.faults import status

SELF_TIMEOUT_SECONDS, WATCHDOG_SECONDS, MARGIN_SECONDS = 20.0, 6, 1.0
LEADING = {
    **SETTINGS,
    "agent.self_timeout_seconds": SELF_TIMEOUT_SECONDS,
    "watchdog.timeout_seconds": WATCHDOG_SECONDS,
    "leader.lease_seconds": 5.0,
    "leader.margin_seconds": MARGIN_SECONDS,
    "leader.start_grace_seconds": 0.0,
    "leader.max_unhealthy": "100%",
    "leader.resets_per_hour": "1000",
}
"""A bare majority, all on one busy machine, finds its verdict long before T."""
WAIT_SECONDS = SELF_TIMEOUT_SECONDS + 2 * WATCHDOG_SECONDS + MARGIN_SECONDS
"""T + 2W and the margin: no sooner is anything freed without evidence."""
LEADERS = ("worker-1", "worker-2")


def now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class LeaderStage:
    """`begin` sets it; what a scenario breaks is mended for the next."""

    def __init__(self, bed: ClusterBed, leading: Sequence[str] = LEADERS) -> None:
        """Leaders run on the hosts of those names."""
        self.bed, self.contents, self.leading = bed, bed.contents, leading
        self.leaders: dict[str, Leader] = {}
        self._said: dict[str, int] = {}

    @classmethod
    @contextlib.contextmanager
    def on(cls, cluster: Cluster, hosts: int = 5, machines: str = "node", **more: Any) -> Iterator[LeaderStage]:
        """`more` are settings, by their name with `__` for the dot."""
        own = {key.replace("__", "."): value for key, value in more.items()}
        with ClusterBed.start(cluster, hosts, settings={**LEADING, "api.machines": machines, **own}) as bed:
            stage = cls(bed)
            try:
                yield stage
            finally:
                stage.close()

    def close(self) -> None:
        """End the leaders."""
        for leader in self.leaders.values():
            leader.close()

    def begin(self) -> list[Host]:
        """All hosts well, and a leader leading."""
        hosts = list(self.bed.hosts.values())
        for host in hosts:
            self.lift(host)  # before it can hear that it is condemned
        self.bed.heal()
        self.bed.set_api(Mode.PASS)

        def well() -> bool:
            self._start_what_is_down()  # time and again: a watch may tell late of what was lifted, and convict a host
            return all(map(self.is_well, hosts))

        eventually(well, "all hosts are well", 60)
        eventually(self.leader, "somebody leads", 60)
        self._said = {name: len(self.bed.hosts[name].journal()) for name in self.leading}
        return hosts

    def _start_what_is_down(self) -> None:
        down = [host.name for host in self.bed.hosts.values() if not host.is_up()]
        if down:
            self.bed.boot(*down)
        for name in self.leading:
            if name not in self.leaders or not self.leaders[name].is_running():
                self.leaders[name] = Leader(self.bed.hosts[name])

    def leader(self) -> str:
        """The host of the leader that holds the Lease and has said so; empty if there is none."""
        for name in self.leading:
            if name not in self.leaders or not self.leaders[name].is_running():
                continue
            lines = [line for line in self.bed.hosts[name].journal() if line.startswith(("leads", "stands by"))]
            if lines and lines[-1].startswith("leads, as "):
                return name
        return ""

    def request(self, host: Host) -> None:
        """As a health check or a person does."""
        annotations = {EXTERNAL_REMEDIATION: ""}
        self.contents.patch(self.contents.machines, host.name, {"metadata": {"annotations": annotations}})

    def lift(self, host: Host) -> None:
        """As a person does with `absolve`: not if it is condemned meanwhile, or that id would be lost."""

        def lifted() -> bool:
            found = self.contents.find(self.contents.machines, host.name)
            condemnation = None if found is None else parse_condemnation(found["metadata"])
            if found is None or not isinstance(condemnation, (Requested, Condemned)):
                return True
            metadata = NotRequested(last_id(condemnation)).render()
            metadata["resourceVersion"] = found["metadata"]["resourceVersion"]
            return self.contents.try_patch(self.contents.machines, host.name, {"metadata": metadata})

        eventually(lifted, f"{host.name} is not condemned")

    def node(self, host: Host) -> dict[str, Any] | None:
        """The Node as the API has it."""
        return self.contents.find(NODES, host.name)

    def uid(self, host: Host) -> str:
        node = self.node(host)
        return str(node["metadata"]["uid"]) if node is not None else ""

    def machine(self, host: Host) -> type:
        """Whether its machine is condemned, by the kind of what it says."""
        found = self.contents.find(self.contents.machines, host.name)
        return type(None) if found is None else type(parse_condemnation(found["metadata"]))

    def is_well(self, host: Host) -> bool:
        """Armed in this boot and for the machine as it is now, by a read of its own; unmarked, its kubelet started."""
        if not host.is_up() or not host.kubelet_started() or self.machine(host) is not NotRequested:
            return False
        if host.status_text() != "healthy: its machine is not condemned":
            return False
        node = self.contents.node(host.name)
        uid = self.contents.machine(host.name)["metadata"]["uid"]
        armed = isinstance(node.agent, Armed) and (node.agent.boot, node.agent.machine_uid) == (host.boot_id, uid)
        return armed and not node.tainted and not node.unschedulable and node.freeing is None

    def is_well_since(self, host: Host, since_at: float) -> bool:
        """Well by a proof that began later. What a watch still reports of a condemnation before is old news then."""
        if not self.is_well(host):
            return False
        asked_at = now()
        proof = status(host)["proof"]
        return bool(asked_at - proof["age_seconds"] > since_at)

    def freed(self, host: Host, uid: str, within_seconds: float = 2 * WAIT_SECONDS) -> None:
        """Wait until the Node of this uid is gone."""
        eventually(lambda: self.uid(host) != uid, f"Node {host.name} is deleted", within_seconds)

    def given_back(self, host: Host) -> dict[str, Any]:
        """Wait until there is a Node again, without a request, and no backup is left; the Node."""

        def back() -> dict[str, Any]:
            left = self.contents.backup(host.name)
            return (self.node(host) or {}) if left is None and self.machine(host) is NotRequested else {}

        return eventually(back, f"Node {host.name} is given back", 60)

    def shows(self, words: str) -> None:
        """Wait until the leader's status holds these words."""
        eventually(lambda: words in self.contents.leader_status(), f"the status says {words!r}", 60)

    def says(self, words: str) -> str:
        """Wait until a leader's line of this scenario holds these words; the line."""

        def line() -> str:
            lines = [line for name, told in self._said.items() for line in self.bed.hosts[name].journal()[told:]]
            return next((line for line in reversed(lines) if words in line), "")

        return eventually(line, f"a leader says {words!r}", 60)
