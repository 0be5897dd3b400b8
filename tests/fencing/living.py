"""A site whose hosts have kubelets: real control plane with controllers and scheduler, kwok's kubelets, and one BMC.

A host is a group of processes. Where it stands still or is switched off, its kubelet is silent, and the node controller
alone says so.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from pp_hostd.kube.resources import JOBS, NAMESPACES, NODES, PODS, Resource
from pp_hostd.model.keys import NAMESPACE
from tests.bmc import chassis
from tests.bmc.rig import NODE, PLACE, REPOSITORY, Json
from tests.bmc.simulator import lay_wires
from tests.fencing.bmcs import Ipmi
from tests.fencing.site import FenceSite
from tests.harness.build import binaries
from tests.harness.eventually import eventually

OTHER, POD = "other-node", "web-0"
STATEFUL_SETS = Resource("apps", "v1", "StatefulSet", "statefulsets")
LONG_SECONDS = 240.0


class LivingSite(FenceSite):
    """`begin` is how to get one. NODE, which has the BMC, runs the StatefulSet's one pod; OTHER has room for it."""

    controllers = True

    def _build(self) -> None:
        self.prepare()
        self.start_leader()

    def prepare(self) -> None:
        """Everything but a leader."""
        self.create(NAMESPACES, {"metadata": {"name": PLACE}})
        self.give(Ipmi(self.supervisor, self._host(NODE, self.wires)))
        self.install()

    def settle(self) -> None:
        """The pod is on NODE for certain: OTHER comes later."""
        self.switch_on()
        self.create(STATEFUL_SETS, stateful_set("web"), PLACE)
        eventually(lambda: self.place() == NODE, "its pod runs", LONG_SECONDS)
        lay_wires(self._others_wires, self._host(OTHER, self._others_wires))
        subprocess.run([sys.executable, chassis.__file__, self._others_wires, "set", "power", "1"], check=True)
        eventually(lambda: self.is_ready(OTHER), "the other host is Ready", LONG_SECONDS)

    def end(self) -> None:
        chassis.switch_off(self._others_wires)

    @property
    def _others_wires(self) -> Path:
        return self.cluster.directory / "wires-of-other"

    def _host(self, name: str, wires: Path) -> list[str]:
        program = ["/usr/bin/env", f"PYTHONPATH={REPOSITORY}", sys.executable, "-m", "tests.fencing.host"]
        return [*program, name, str(self.cluster.kubeconfig()), str(binaries() / "kwok"), str(wires)]

    def stand_still(self) -> None:
        """Its kernel hangs, say: nothing of the host runs, and it still has power."""
        os.killpg(self.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.killpg(self.pid, signal.SIGCONT)

    def pod(self, name: str = POD) -> Json:
        """A StatefulSet's pod; empty while there is none."""
        return self.find(PODS, name, PLACE) or {}

    def place(self, name: str = POD) -> str:
        """The node on which it runs; empty while it does not."""
        pod = self.pod(name)
        runs = pod and pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
        return str(pod["spec"].get("nodeName", "")) if runs else ""

    def conditions(self, name: str = NODE) -> dict[str, str]:
        node = self.find(NODES, name) or {}
        return {each["type"]: each["status"] for each in node.get("status", {}).get("conditions", [])}

    def is_ready(self, name: str = NODE) -> bool:
        return self.conditions(name).get("Ready") == "True"

    def detect(self, problem: str, status: str) -> None:
        """As node-problem-detector reports it."""
        node = self.find(NODES, NODE) or {}
        others = [each for each in node["status"]["conditions"] if each["type"] != problem]
        since = "2026-01-01T00:00:00Z"
        condition = {"type": problem, "status": status, "lastTransitionTime": since, "lastHeartbeatTime": since}
        self.patch(NODES, NODE, {"status": {"conditions": [*others, condition]}}, subresource="status")

    def reaches(self, step: str, status: str) -> None:
        def reached() -> bool:
            fence = self.fence()
            return (fence.get("step"), fence.get("status")) == (step, status)

        eventually(reached, f"the flow is at {step} {status}", LONG_SECONDS)

    def jobs(self) -> list[Json]:
        return [each for each in self.items(JOBS) if each["metadata"]["namespace"] == NAMESPACE]

    def pods_of(self, job: Json) -> list[Json]:
        uid = job["metadata"]["uid"]
        return [each for each in self.items(PODS) if uid in map(_uid, each["metadata"].get("ownerReferences", []))]


def _uid(reference: Json) -> str:
    return str(reference["uid"])


def stateful_set(name: str, *claims: Json) -> Json:
    """Its pod tolerates a node that is silent for as long as that is: only a leader frees it."""
    mounts = [{"name": each["metadata"]["name"], "mountPath": "/data"} for each in claims]
    labels, container = {"app": name}, {"name": name, "image": name, "volumeMounts": mounts}
    keys = ("not-ready", "unreachable")
    tolerations = [{"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute"} for key in keys]
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container], "tolerations": tolerations}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "serviceName": name, "template": template}
    return {"metadata": {"name": name}, "spec": {**spec, "volumeClaimTemplates": list(claims)}}
