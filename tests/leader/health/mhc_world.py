"""A virtual cluster whose Machines have health checks of OpenShift or Cluster API, and no controller for these."""

from __future__ import annotations

from typing import Any

from pp_hostd.leader.requests.machine_health_checks.check import MachineHealthCheck
from pp_hostd.leader.requests.machine_health_checks.conditions import Spelling
from pp_hostd.model.keys import CLUSTER_NAME, PAUSED_NODE
from pp_hostd.model.settings import Health, Leader, Remediations, Settings
from tests.leader.health.checked import CheckedWorld
from tests.leader.health.mhc_objects import CLUSTER, OPENSHIFT, PLACE, TEMPLATE, V1BETA2, health_check, parsed, spec_of
from tests.leader.virtual_host import HOST, PEERS

Json = dict[str, Any]
KIND, OBJECTS = "machinehealthchecks", "PoisonPillRemediation"
NAMES = (HOST, *PEERS)
OWNER = {"apiVersion": "v1", "kind": "MachineSet", "name": "workers", "uid": "workers", "controller": True}
LONG_AGO = "2026-01-01T00:00:00Z"
RETRIES = {"retryLimit": 0}
OTHERS = {"managedFields": [{"manager": "manager", "subresource": "status"}]}
"""Of a health check whose status another controller has written."""


class MachinesWorld(CheckedWorld):
    """All Nodes are Ready, and the Cluster too, where there is one."""

    def __init__(self, spelling: Spelling, leader: Leader | None = None, *, on: bool = True) -> None:
        self.spelling = spelling
        settings = Settings(
            leader=leader or Leader(max_unhealthy="100%"),
            health=Health(machine_health_checks=on),
            remediations=Remediations(poison_pill=True),
        )
        super().__init__("openshift" if spelling is OPENSHIFT else "cluster-api", settings=settings)
        if spelling is not OPENSHIFT:
            self.cluster()

    def add_node(self, name: str, address: str, **labels: str) -> None:
        super().add_node(name, address, **labels)
        if self.spelling is not OPENSHIFT:
            named = {"cluster.x-k8s.io/machine": name, "cluster.x-k8s.io/cluster-namespace": PLACE}
            self.annotate_node(name, **named)
        self.machine_body(name, CLUSTER_NAME=CLUSTER, pool="a")

    def machine_body(self, name: str, **labels: str) -> None:
        labels = {CLUSTER_NAME if key == "CLUSTER_NAME" else key: value for key, value in labels.items()}
        metadata = {"labels": labels, "ownerReferences": [OWNER], "creationTimestamp": LONG_AGO}
        self.patch_machine(name, {"apiVersion": self.spelling.value, "metadata": metadata})

    def patch_machine(self, name: str, patch: Json) -> None:
        self.api.patch("machines", f"{PLACE}/{name}", patch)

    def found_machine(self, name: str = HOST) -> Json:
        found = self.api.get("machines", f"{PLACE}/{name}")
        assert found is not None
        return found

    def cluster(self, paused: bool = False, ready: bool = True) -> None:
        initialization = {"infrastructureProvisioned": ready, "controlPlaneInitialized": ready}
        metadata = {"name": CLUSTER, "namespace": PLACE, "uid": "cluster"}
        version = "cluster.x-k8s.io/v1beta2"
        body = {"apiVersion": version, "metadata": metadata, "status": {"initialization": initialization}}
        self.api.put("clusters", f"{PLACE}/{CLUSTER}", {**body, "spec": {"paused": paused}})

    def check_machines(self, name: str = "workers", metadata: Json | None = None, **spec: Any) -> None:
        """It selects all Machines; a silent Node is unhealthy after 300 s."""
        body = health_check(self.spelling, spec_of(self.spelling, **spec), name, **(metadata or {}))
        self.api.put(KIND, f"{PLACE}/{name}", body)

    def template(self) -> None:
        inner = {"metadata": {"labels": {"team": "red"}, "annotations": {"why": "sick"}}, "spec": RETRIES}
        body = {"metadata": {"name": TEMPLATE["name"], "namespace": PLACE}, "spec": {"template": inner}}
        self.api.put("poisonpillremediationtemplates", f"{PLACE}/{TEMPLATE['name']}", body)

    def body(self, name: str = "workers") -> Json:
        found = self.api.get(KIND, f"{PLACE}/{name}")
        assert found is not None
        return found

    def found(self, name: str = "workers") -> MachineHealthCheck:
        return parsed(self.body(name))

    def allowed(self, name: str = "workers") -> tuple[str, str]:
        """Status and reason of its condition RemediationAllowed, in the first list; empty if there is none."""
        said = self.found(name).lists[0].said("RemediationAllowed")
        return ("", "") if said is None else said[:2]

    def counts(self, name: str = "workers") -> tuple[int, int, int]:
        status = self.found(name).status
        return status.expected, status.healthy, status.allowed

    def object(self, name: str = HOST) -> Json | None:
        return self.api.get(OBJECTS, f"{OBJECTS} {PLACE}/{name}") or self.api.get(OBJECTS, f"{PLACE}/{name}")

    def said_of(self, of_type: str, name: str = HOST) -> list[tuple[str, str]]:
        """Status and reason of a Machine's condition in each list that has it, the newer first."""
        status = self.found_machine(name).get("status") or {}
        older = ((status.get("deprecated") or {}).get("v1beta1") or {}).get("conditions") or ()
        lists = [status.get("conditions") or (), older]
        return [
            (each["status"], each.get("reason", ""))
            for conditions in lists
            for each in conditions
            if each["type"] == of_type
        ]

    def silent(self, *names: str, seconds_ago: float = 400.0) -> None:
        for name in names or (HOST,):
            self.reports(name, "Unknown", seconds_ago=seconds_ago)


def new_world(spelling: Spelling = V1BETA2, **more: Any) -> MachinesWorld:
    world = MachinesWorld(spelling, **more)
    world.spend(20.0)  # the leader's start is over
    return world


def kept(world: MachinesWorld) -> None:
    """So that no remediation begins."""
    world.annotate_node(HOST, **{PAUSED_NODE: ""})
