"""A virtual cluster in which health checks make remediation objects, and delete them when the node is well."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pp_hostd.leader.requests.remediation_objects.remediation import (
    METAL3,
    POISON_PILL,
    PROPOSED,
    Phase,
    RemediationKind,
    parse_remediation,
)
from pp_hostd.model.record import Unreadable
from pp_hostd.model.settings import Remediations
from tests.leader.power.powered import HOST, SETTINGS, PoweredWorld

SPECS: dict[str, dict[str, Any]] = {
    POISON_PILL.name: {"retryLimit": 1, "timeoutSeconds": 300},
    METAL3.name: {"strategy": {"type": "Reboot", "retryLimit": 1, "timeout": "5m0s"}},
    PROPOSED.name: {
        "strategy": "escalate",
        "deleteAfterRetries": 1,
        "powerOnTimeoutSeconds": 300,
        "powerOffTimeoutSeconds": 120,
    },
}
ALL_ON = replace(SETTINGS, remediations=Remediations(poison_pill=True, metal3=True, metal3_proposed=True))


class AskedWorld(PoweredWorld):
    """Objects are in `place`, and bear the name of their machine, which is its Node's too.
    A host whose workloads run is Ready, unless it is `sick`."""

    def __init__(self, machines_are: str = "openshift") -> None:
        self.sick, self.place = False, "machines"
        super().__init__(ALL_ON)
        # The virtual machines are OpenShift's; what Cluster API's owners do differently hangs on the setting alone.
        self.settings = replace(self.settings, api=replace(self.settings.api, machines=machines_are))
        named = {"cluster.x-k8s.io/cluster-namespace": "machines", "cluster.x-k8s.io/machine": HOST}
        self.annotate_node(HOST, **named)
        self.a_term("a")

    @property
    def called(self) -> str:
        return f"{self.place}/{HOST}"

    def make(self, kind: RemediationKind, spec: dict[str, Any] | None = None, **owner: str) -> None:
        reference = {"kind": "Machine", "name": HOST, "uid": f"machine-{HOST}", **owner}
        metadata = {"name": HOST, "namespace": self.place, "ownerReferences": [reference]}
        spec = SPECS[kind.name] if spec is None else spec
        self.api.put(kind.name, self.called, {"metadata": metadata, "spec": spec})

    def delete(self, kind: RemediationKind) -> None:
        found = self.api.get(kind.name, self.called)
        if found is not None and found["metadata"].get("finalizers"):
            change = {"metadata": {"deletionTimestamp": "2026-03-01T00:00:00Z"}}
            self.api.patch(kind.name, self.called, change)
        elif found is not None:
            self.api.put(kind.name, self.called, None)

    def status(self, kind: RemediationKind) -> dict[str, Any]:
        found = self.api.get(kind.name, self.called) or {}
        status: dict[str, Any] = found.get("status", {})
        return status

    def is_gone(self, kind: RemediationKind) -> bool:
        return self.api.get(kind.name, self.called) is None

    def phase(self, kind: RemediationKind) -> Phase | Unreadable:
        found = parse_remediation(self.api.get(kind.name, self.called), kind)
        assert not isinstance(found, Unreadable), found
        return found.phase

    def finalizers(self, kind: RemediationKind) -> list[str]:
        found = self.api.get(kind.name, self.called)
        assert found is not None
        return list(found["metadata"].get("finalizers") or [])

    def live(self) -> None:
        super().live()
        if self.api.get("nodes", HOST) is not None:
            ready = "True" if self.running and not self.sick else "False"
            condition = {"type": "Ready", "status": ready}
            self.api.patch("nodes", HOST, {"status": {"conditions": [condition]}})

    def told(self, kind: RemediationKind) -> str:
        return "; ".join(
            next_action.sentence
            for next_action in self.driver.next_actions
            if next_action.of.startswith(f"{kind.name} ")
        )
