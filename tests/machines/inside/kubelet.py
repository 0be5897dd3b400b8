"""A stand-in for the kubelet: keeps its Node Ready, runs what is scheduled there, and ticks on the console.

A boot without a tick has started nothing. The static pod starts without the API, as with a real kubelet.
"""

from __future__ import annotations

import http.client
import json
import os
import ssl
import time
from datetime import datetime, timezone
from typing import Any

SETTINGS = "/etc/kubelet/settings.json"
STATIC_POD = "/etc/kubernetes/manifests/static"
CA, CLIENT = "/etc/kubelet/ca.crt", "/etc/kubelet/client.pem"
DEADLINE_SECONDS = 3
TICK_SECONDS = 2
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
CAPACITY = {"pods": "110", "cpu": "4", "memory": "8Gi"}
ATTACHES_BY_CONTROLLER = {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
Json = dict[str, Any]


class Refused(Exception):
    """By the API; the status is its argument."""


class Kubelet:
    """Of one Node."""

    def __init__(self, node: str, address: str, host: str, port: int) -> None:
        self._node, self._address, self._host, self._port = node, address, host, port
        self._tls = ssl.create_default_context(cafile=CA)
        self._tls.check_hostname = False  # its certificate names another address
        self._tls.load_cert_chain(CLIENT)
        self._connection: http.client.HTTPSConnection | None = None
        self._said = ""

    def look(self) -> None:
        """Do what is due; what fails is tried at the next tick."""
        try:
            self._say_taints(self._register())
            self._renew_lease()
            self._run_pods()
        except (OSError, http.client.HTTPException, Refused) as error:
            self._connection = None
            self._say(f"the API does not help: {error!r}")

    def _register(self) -> Json:
        path = f"/api/v1/nodes/{self._node}"
        metadata = {"name": self._node, "annotations": ATTACHES_BY_CONTROLLER}
        try:
            self._ask("PATCH", path, {"metadata": metadata})
        except Refused as error:
            if error.args[0] != 404:
                raise
            self._ask("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": metadata})
        addresses = [{"type": "InternalIP", "address": self._address}]
        ready = {"type": "Ready", "status": "True", "reason": "Ready", "lastHeartbeatTime": _now()[:19] + "Z"}
        status = {"addresses": addresses, "conditions": [ready], "capacity": CAPACITY, "allocatable": CAPACITY}
        return self._ask("PATCH", f"{path}/status", {"status": status})

    def _renew_lease(self) -> None:
        spec = {"holderIdentity": self._node, "leaseDurationSeconds": 40, "renewTime": _now()}
        try:
            self._ask("PATCH", f"{LEASES}/{self._node}", {"spec": spec})
        except Refused as error:
            if error.args[0] != 404:
                raise
            body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": self._node}}
            self._ask("POST", LEASES, {**body, "spec": spec})

    def _run_pods(self) -> None:
        for pod in self._ask("GET", f"/api/v1/pods?fieldSelector=spec.nodeName%3D{self._node}")["items"]:
            metadata = pod["metadata"]
            path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
            if "deletionTimestamp" in metadata:
                self._ask("DELETE", f"{path}?gracePeriodSeconds=0")
            elif pod["status"].get("phase") == "Pending":
                status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
                self._ask("PATCH", f"{path}/status", {"status": status})
                _console(f"kubelet: runs pod {metadata['name']}")

    def _say_taints(self, node: Json) -> None:
        taints = [taint["key"] for taint in node["spec"].get("taints", []) if taint["effect"] == "NoExecute"]
        self._say(f"sees the taint {taints[0]} and starts nothing" if taints else "its Node is free of taints")

    def _say(self, sentence: str) -> None:
        if sentence != self._said:
            self._said = sentence
            _console(f"kubelet: {sentence}")

    def _ask(self, verb: str, path: str, body: Json | None = None) -> Json:
        if self._connection is None:
            self._connection = http.client.HTTPSConnection(
                self._host, self._port, timeout=DEADLINE_SECONDS, context=self._tls
            )
        kind = "application/merge-patch+json" if verb == "PATCH" else "application/json"
        self._connection.request(verb, path, json.dumps(body) if body else None, {"Content-Type": kind})
        reply = self._connection.getresponse()
        answer: Json = json.loads(reply.read())
        if reply.status >= 400:
            raise Refused(reply.status, answer.get("message"))
        return answer


def _now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _console(line: str) -> None:
    with open("/dev/console", "w") as console:
        console.write(f"{line}\n")


def main() -> None:
    with open("/proc/sys/kernel/random/boot_id") as file:
        boot = file.read().strip()
    _console(f"kubelet: starts in boot {boot}")
    if os.path.exists(STATIC_POD):
        _console("kubelet: runs its static pod")
    with open(SETTINGS) as file:
        kubelet = Kubelet(**json.load(file))
    while True:
        _console(f"kubelet: tick in boot {boot}")
        kubelet.look()
        time.sleep(TICK_SECONDS)


if __name__ == "__main__":
    main()
