"""Hosts whose Machines Cluster API's real manager keeps, with a MachineSet that owns them and health checks.

The cluster that it manages is the one it runs in. The provider of infrastructure is played here, and the kubelets are.
"""

from __future__ import annotations

import contextlib
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

from pp_hostd.kube.resources import (
    CAPI_CLUSTERS,
    CAPI_HEALTH_CHECKS,
    CAPI_MACHINES,
    NAMESPACES,
    NODES,
    POISON_PILL_REMEDIATION_TEMPLATES,
    Resource,
    template_of,
)
from pp_hostd.model.keys import CLUSTER_NAME
from tests.harness.bed.cluster_bed import ClusterBed
from tests.harness.bed.contents import MACHINE_NAMESPACE, Contents, Json
from tests.harness.bed.host import Host
from tests.harness.cluster import Cluster
from tests.harness.cluster_api import INFRASTRUCTURE
from tests.harness.eventually import eventually
from tests.scenarios.leading import LEADING, LeaderStage

SECRETS = Resource("", "v1", "Secret", "secrets")
MACHINES, CLUSTERS, HEALTH_CHECKS = (
    replace(kind, version="v1beta2") for kind in (CAPI_MACHINES, CAPI_CLUSTERS, CAPI_HEALTH_CHECKS)
)
MACHINE_SETS = replace(MACHINES, kind="MachineSet", plural="machinesets")
BED_CLUSTERS = Resource(INFRASTRUCTURE, "v1", "BedCluster", "bedclusters")
BED_MACHINES = Resource(INFRASTRUCTURE, "v1", "BedMachine", "bedmachines")
TEMPLATES = POISON_PILL_REMEDIATION_TEMPLATES
CLUSTER = "bed"
OF_CLUSTER = {CLUSTER_NAME: CLUSTER}
CONTROL_PLANE = "worker-1"
"""The manager counts a cluster as initialized that has one Machine of the control plane."""
PROVISIONED = {"initialization": {"provisioned": True}}
WORKERS = {"role": "worker"}
HOST = "host"
"""The label by which a health check selects one Machine."""
MANAGER_SECONDS = 90
"""So long we wait for the manager. Where it reads what it may not read it hangs for 60 s."""


class HealthChecked(Contents):
    """A cluster with all that the manager needs, whose Machines the manager looks after."""

    def fill(self, addresses: Mapping[str, str]) -> None:
        self._make(NAMESPACES, MACHINE_NAMESPACE, namespace=None)
        self._make_cluster()
        super().fill(addresses)
        self._make_machine_set(len(addresses) - 1)

    def make_machine(self, name: str) -> Json:
        """A Machine on infrastructure that is provisioned; the manager finds its Node by the provider's id."""
        provider = f"bed://{name}"
        self.patch(NODES, name, {"spec": {"providerID": provider}})
        self.report(name, ready=True)
        self._make(BED_MACHINES, name, {"providerID": provider}, finalizers=["bed/provisioned"], status=PROVISIONED)
        labels = {"cluster.x-k8s.io/control-plane": ""} if name == CONTROL_PLANE else {**WORKERS, HOST: name}
        self._make(MACHINES, name, _machine(BED_MACHINES, name), labels=labels)
        refers = eventually(lambda: _node_of(self.machine(name)), f"the manager finds {name}'s Node", MANAGER_SECONDS)
        assert refers == name
        return self.machine(name)

    def check_health(self, host: Host, retry_limit: int, timeout_seconds: int) -> None:
        """Have the manager check this host by its Node, and make our objects of a template that says so."""
        ours = {"retryLimit": retry_limit, "timeoutSeconds": timeout_seconds}
        self._make(TEMPLATES, host.name, {"template": {"spec": ours}})
        unhealthy = {"type": "Ready", "status": "Unknown", "timeoutSeconds": 2}
        template = {"apiVersion": TEMPLATES.api_version, "kind": TEMPLATES.kind, "name": host.name}
        spec = {
            "clusterName": CLUSTER,
            "selector": {"matchLabels": {HOST: host.name}},
            "checks": {"unhealthyNodeConditions": [unhealthy]},
            "remediation": {"templateRef": template},
        }
        self._make(HEALTH_CHECKS, host.name, spec, labels=OF_CLUSTER)

        def healthy() -> bool:
            found = self.find(HEALTH_CHECKS, host.name) or {}
            return bool(found.get("status", {}).get("currentHealthy"))

        eventually(healthy, f"the manager finds {host.name} healthy", MANAGER_SECONDS)

    def lose(self, host: Host) -> None:
        """As the controller of nodes does when a kubelet is silent."""
        at = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        condition = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "lastTransitionTime": at}
        self._ask("PATCH", NODES.path(name=host.name) + "/status", {"status": {"conditions": [condition]}})

    def deprovision(self, host: Host) -> None:
        """The host's infrastructure may go, as its deleted Machine wants."""
        self.patch(BED_MACHINES, host.name, {"metadata": {"finalizers": None}})

    def _make_cluster(self) -> None:
        """The manager reaches it by an administrator's kubeconfig, like every cluster that it manages."""
        value = b64encode(self.cluster.kubeconfig().read_bytes()).decode()
        data, kind = {"value": value}, "cluster.x-k8s.io/secret"
        self._make(SECRETS, f"{CLUSTER}-kubeconfig", labels=OF_CLUSTER, type=kind, data=data)
        endpoint = {"host": "127.0.0.1", "port": int(self.cluster.server.rpartition(":")[2])}
        self._make(BED_CLUSTERS, CLUSTER, {"controlPlaneEndpoint": endpoint}, status=PROVISIONED)
        self._make(CLUSTERS, CLUSTER, {"infrastructureRef": _reference(BED_CLUSTERS, CLUSTER)})

    def _make_machine_set(self, replicas: int) -> None:
        """It adopts the workers' Machines."""
        templates = template_of(BED_MACHINES)
        self._make(templates, "workers", {"template": {"spec": {}}})
        machine = {"metadata": {"labels": WORKERS}, "spec": _machine(templates, "workers")}
        wanted = {"replicas": replicas, "selector": {"matchLabels": WORKERS}, "template": machine}
        self._make(MACHINE_SETS, "workers", {"clusterName": CLUSTER, **wanted})

    def _make(
        self,
        kind: Resource,
        name: str,
        spec: Json | None = None,
        *,
        labels: dict[str, str] | None = None,
        finalizers: list[str] | None = None,
        namespace: str | None = MACHINE_NAMESPACE,
        **more: Any,
    ) -> None:
        metadata = {"name": name, "labels": labels or {}, "finalizers": finalizers or []}
        self.create(kind, {"metadata": metadata, **({"spec": spec} if spec else {}), **more}, namespace)


def _machine(infrastructure: Resource, name: str) -> Json:
    """The spec of a Machine."""
    bootstrap = {"dataSecretName": "none"}
    return {"clusterName": CLUSTER, "bootstrap": bootstrap, "infrastructureRef": _reference(infrastructure, name)}


def _reference(kind: Resource, name: str) -> Json:
    return {"apiGroup": kind.group, "kind": kind.kind, "name": name}


def _node_of(machine: Json) -> str:
    return str(machine.get("status", {}).get("nodeRef", {}).get("name", ""))


@contextlib.contextmanager
def health_checked(cluster: Cluster) -> Iterator[LeaderStage]:
    """Four hosts, two of them with leaders."""
    settings = {**LEADING, "api.machines": "cluster-api", "remediations.poison_pill": True}
    with ClusterBed.start(cluster, 4, settings=settings, contents=HealthChecked) as bed:
        stage = LeaderStage(bed)
        try:
            yield stage
        finally:
            stage.close()
