"""A site: three hosts of the control plane, with leaders, and five workers; each has an agent and a kubelet."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from pp_hostd.kube.resources import NODES
from tests.harness.bed.bed import REPOSITORY
from tests.harness.bed.cluster_bed import ClusterBed
from tests.harness.bed.host import Host
from tests.harness.build import binaries
from tests.harness.controlplane import RealCluster
from tests.harness.eventually import eventually
from tests.scenarios.endtoend.workload import Workload
from tests.scenarios.leading import LeaderStage

CONTROL_PLANE, WORKERS, PODS = 3, 5, 2
KWOK, KWOK_LOG = "kwok.kubeconfig", "kwok.kubeconfig.log"
TAINT = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}


class Site(LeaderStage):
    """`on_real_parts` is how to get one."""

    def __init__(self, bed: ClusterBed, cluster: RealCluster) -> None:
        super().__init__(bed, [name for name in bed.hosts if name.startswith("control-plane")])
        self.cluster = cluster
        self.workload = Workload(bed.contents, PODS)

    @classmethod
    @contextlib.contextmanager
    def on_real_parts(cls, settings: Mapping[str, Any]) -> Iterator[Site]:
        with contextlib.ExitStack() as stack:
            cluster = stack.enter_context(RealCluster.start(controllers=True))
            bed = stack.enter_context(
                ClusterBed.start(cluster, WORKERS, control_plane=CONTROL_PLANE, settings=settings)
            )
            attacher = ["env", f"PYTHONPATH={REPOSITORY}", sys.executable, "-m", "tests.scenarios.endtoend.attacher"]
            cluster.supervisor.run("attacher", [*attacher, str(cluster.kubeconfig())])
            site = cls(bed, cluster)
            stack.callback(site.close)
            for host in bed.hosts.values():
                site._give_kubelet(host)
            yield site

    def _give_kubelet(self, host: Host) -> None:
        if host.name in self.leading:
            self.contents.patch(NODES, host.name, {"spec": {"taints": [TAINT]}})
        own, kwok = host.directory / "kubelet.kubeconfig", host.directory / KWOK
        self.contents.write_credentials(f"system:node:{host.name}", ("system:nodes",), own, self.bed.api_url(1))
        self.contents.write_credentials("kwok", ("system:masters",), kwok, self.bed.api_url(1))
        program = ["/usr/bin/env", f"PYTHONPATH={REPOSITORY}", sys.executable, "-m", "tests.scenarios.endtoend.kubelet"]
        arguments = [host.name, host.address, str(own), str(binaries() / "kwok"), str(kwok)]
        host.design.kubelet = [*program, *arguments]

    def begin(self) -> list[Host]:
        hosts = super().begin()
        eventually(lambda: all(map(self.is_ready, hosts)), "all Nodes are ready", 60)
        self.hosts_of(*self.workload.pods)
        return hosts

    def is_ready(self, host: Host) -> bool:
        """Whether the cluster counts on it."""
        conditions = (self.node(host) or {}).get("status", {}).get("conditions", [])
        return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)

    def hosts_of(self, *pods: str) -> list[Host]:
        """Where these pods run, once they do: a volume may be detached and attached again after all was well."""

        def places() -> list[str]:
            found = [self.workload.node_of(pod) for pod in pods]
            return found if all(found) else []

        try:
            return [self.bed.hosts[name] for name in eventually(places, "the workload runs", 60)]
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self.workload.state()}\n{self._said_by_kwok()}") from None

    def _said_by_kwok(self) -> str:
        logs = {host.name: host.directory / KWOK_LOG for host in self.bed.hosts.values()}
        tails = {name: log.read_text().splitlines()[-20:] for name, log in logs.items() if log.exists()}
        return "\n".join(f"{name}'s kwok: {line}" for name, tail in tails.items() for line in tail)
