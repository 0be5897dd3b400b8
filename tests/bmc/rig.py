"""A cluster with one machine on one host: real API, leader and IPMI, an operator, and a host whose death is seen."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import requests

from pp_hostd.kube.resources import BARE_METAL_HOSTS, CONFIG_MAPS, EVENTS, NAMESPACES, NODES, OPENSHIFT_MACHINES, PODS
from pp_hostd.model.keys import EXTERNAL_REMEDIATION, LEADER_USER, LEADERS, NAMESPACE, backup_name
from tests.bmc import chassis
from tests.bmc.simulator import PASSWORD, command_of_bmc, lay_wires, set_wires
from tests.bmc.webhook import CONFIGURATIONS, lay_webhook
from tests.harness.cluster import token_of
from tests.harness.controlplane import RealCluster
from tests.harness.eventually import HANGS_SECONDS, eventually
from tests.leader.access.people import pp_leader

Json = dict[str, Any]
REPOSITORY = Path(__file__).parents[2]
PLACE, NODE, MACHINE, HOST = "machines", "metal-node", "metal-machine", "metal"
SUBJECT = f"{PLACE}/{MACHINE}"
KEY = "reboot.metal3.io/machine-remediation"
LABELS, TAINT = {"zone": "north"}, {"key": "dedicated", "value": "storage", "effect": "NoSchedule"}
SETTINGS: Mapping[str, Any] = {
    "agent.node_name": "outside",
    "api.machines": "openshift",
    "api.read_deadline_seconds": 1.0,
    "leader.lease_seconds": 5.0,
    "leader.start_grace_seconds": 0.0,
    "leader.max_unhealthy": "100%",
    "leader.resets_per_hour": "1000",
    "leader.metrics_port": 0,
    "leader.page_port": 0,
    "power.cycle": True,
    "power.off_timeout_seconds": 10.0,
    "power.on_timeout_seconds": 20.0,
}
MINUTE_SECONDS = 1.0
"""Of the operator, which waits for many."""
PP_LEADER = "import sys; from pp_hostd.cli import leader; sys.exit(leader())"


class Rig:
    """`on` is how to get one. All is well when it begins: the host is on, its Node there, with a pod, and a leader with
    these settings and this environment. `controllers`: those of Kubernetes, and its scheduler, run, too."""

    settings: Mapping[str, Any] = SETTINGS
    environment: tuple[str, ...] = ()
    controllers = False

    def __init__(self, cluster: RealCluster) -> None:
        self.cluster, self.supervisor = cluster, cluster.supervisor
        self.wires = cluster.directory / "wires"
        self.access = cluster.directory / "bmc-access.json"
        self.webhook = cluster.directory / "webhook"
        self._heard: dict[str, int | None] = {}
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.verify = str(cluster.ca_file)
        self._session.headers["Authorization"] = f"Bearer {token_of('admin')}"

    @classmethod
    @contextlib.contextmanager
    def on(cls, definitions: list[Json]) -> Iterator[Rig]:
        with RealCluster.start(controllers=cls.controllers, definitions=definitions) as cluster:
            rig = cls(cluster)
            try:
                rig._build()
                yield rig
            finally:
                chassis.switch_off(rig.wires)

    def _build(self) -> None:
        install = ["install", "--kubeconfig", str(self.cluster.kubeconfig()), "--machines", "openshift"]
        done = pp_leader(*install, "--flows", "power-cycle")
        assert done.returncode == 0, done.stderr
        self.create(NAMESPACES, {"metadata": {"name": PLACE}})
        self.create(BARE_METAL_HOSTS, {"metadata": {"name": HOST}, "spec": {"online": True}}, PLACE)
        owner = {"apiVersion": "v1", "kind": "MachineSet", "name": "workers", "uid": "workers", "controller": True}
        spec = {"providerID": f"baremetalhost:///{PLACE}/{HOST}"}
        metadata = {"name": MACHINE, "ownerReferences": [owner]}
        self.create(OPENSHIFT_MACHINES, {"metadata": metadata, "spec": spec}, PLACE)
        reference = {"status": {"nodeRef": {"kind": "Node", "name": NODE}}}
        self.patch(OPENSHIFT_MACHINES, MACHINE, reference, PLACE, "status")
        self._lay_wires()
        webhook = lay_webhook(self.webhook)
        self.start_bmc()
        self.start_operator()
        self.create(CONFIGURATIONS, webhook)
        self.start_leader()
        eventually(lambda: self.find(NODES, NODE) is not None, "the host has registered its Node", 60)
        self.patch(NODES, NODE, {"metadata": {"labels": LABELS}, "spec": {"taints": [TAINT]}})

    def _lay_wires(self) -> None:
        arguments = [NODE, SUBJECT, str(self.cluster.kubeconfig()), str(self.wires)]
        host = ["/usr/bin/env", f"PYTHONPATH={REPOSITORY}", sys.executable, "-m", "tests.bmc.host", *arguments]
        self.set_access(port=lay_wires(self.wires, host), password=PASSWORD)

    # Its parts, each of which can go and come back.

    def start_bmc(self) -> None:
        self.supervisor.run("ipmi_sim", command_of_bmc(self.wires))

    def start_operator(self) -> None:
        program = ["/usr/bin/env", f"PYTHONPATH={REPOSITORY}", sys.executable, "-m", "tests.bmc.operator"]
        arguments = [str(self.cluster.kubeconfig()), str(self.access), str(self.webhook), str(MINUTE_SECONDS)]
        self.supervisor.run("operator", [*program, *arguments])

    def start_leader(self, name: str = "pp-leader") -> None:
        etc = self.cluster.directory / f"etc-{name}"
        etc.mkdir(exist_ok=True)
        (etc / "peer.key").write_text("ab" * 32 + "\n")
        (etc / "peer.key").chmod(0o600)
        settings = {**self.settings, **self.own_settings(name), "peers.key_file": f"{etc}/peer.key"}
        lines = [f"{key} = {json.dumps(value)}\n" for key, value in settings.items()]
        (etc / "pp-hostd.toml").write_text("".join(lines))
        environment = ["/usr/bin/env", f"PYTHONPATH={REPOSITORY}", *self.environment]
        program = [*environment, sys.executable, "-c", PP_LEADER, "run"]
        self.supervisor.run(name, [*program, "--config", f"{etc}/pp-hostd.toml"])

    def own_settings(self, _name: str) -> dict[str, str]:
        """Of the leader of this name alone."""
        return {"leader.kubeconfig": str(self.cluster.kubeconfig(LEADER_USER, (LEADERS,)))}

    @contextlib.contextmanager
    def second_leader(self) -> Iterator[None]:
        """Beside the first, which leads."""
        self.start_leader("second")
        try:
            yield
        finally:
            self.supervisor.kill("second")

    @contextlib.contextmanager
    def standing_still(self) -> Iterator[None]:
        """The first leader does nothing, and does not notice."""
        pid = self.supervisor.processes()["pp-leader"]["pid"]
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def set_wires(self, mode: str) -> None:
        set_wires(self.wires, mode)

    def set_access(self, **changes: Any) -> None:
        """As the operator knows the BMC."""
        known = json.loads(self.access.read_text())[HOST] if self.access.exists() else {}
        self.access.write_text(json.dumps({HOST: {**known, **changes}}))

    # The state of the host and of the cluster.

    @property
    def pid(self) -> int:
        """Of the host; 0 while it is off."""
        return chassis.pid_of(self.wires)

    @property
    def times_on(self) -> int:
        """How often it was ever switched on."""
        return chassis.times_on(self.wires)

    def host(self) -> Json:
        found = self.find(BARE_METAL_HOSTS, HOST, PLACE)
        assert found is not None
        return found

    def is_kept_off(self) -> bool:
        return KEY in (self.host()["metadata"].get("annotations") or {})

    def is_asked_for(self) -> bool:
        found = self.find(OPENSHIFT_MACHINES, MACHINE, PLACE)
        return found is not None and EXTERNAL_REMEDIATION in (found["metadata"].get("annotations") or {})

    def has_backup(self) -> bool:
        return self.find(CONFIG_MAPS, backup_name(NODE), NAMESPACE) is not None

    def told(self) -> str:
        """Returns the messages of the leader's Events that came, or came again, since the case began."""
        counted = {each["metadata"]["uid"]: (each.get("count"), each["message"]) for each in self.items(EVENTS)}
        return "\n".join(message for uid, (count, message) in counted.items() if self._heard.get(uid) != count)

    def forget(self) -> None:
        """A case begins."""
        self._heard = {each["metadata"]["uid"]: each.get("count") for each in self.items(EVENTS)}

    def is_well(self) -> bool:
        node = self.find(NODES, NODE)
        if node is None or not self.pid or self.is_kept_off() or self.is_asked_for() or self.has_backup():
            return False
        if not self.host()["status"]["poweredOn"]:  # the operator has not seen yet that it is on
            return False
        labelled = LABELS.items() <= node["metadata"]["labels"].items()
        return labelled and TAINT in (node["spec"].get("taints") or [])

    # Actions of people.

    def ask(self) -> None:
        change = {"metadata": {"annotations": {EXTERNAL_REMEDIATION: ""}}}
        self.patch(OPENSHIFT_MACHINES, MACHINE, change, PLACE)

    def await_dead_before_deletion(self, seconds: float = 60) -> None:
        """Until its Node is deleted, at which moment nothing of the host is left."""
        eventually(lambda: self.find(NODES, NODE) is None, "the Node is deleted", seconds)
        assert self.pid == 0, "its Node was deleted while the host was on"

    def add_pod(self, name: str) -> None:
        container = {"name": "web", "image": "web"}
        spec = {"nodeName": NODE, "containers": [container], "tolerations": [{"operator": "Exists"}]}
        self.create(PODS, {"metadata": {"name": name}, "spec": spec}, PLACE)

    # The API, as an administrator.

    def find(self, kind: Any, name: str, namespace: str | None = None) -> Json | None:
        reply = self._session.get(self.cluster.server + kind.path(namespace, name), timeout=HANGS_SECONDS)
        assert reply.status_code in (200, 404), reply.text
        found: Json = reply.json()
        return found if reply.ok else None

    def items(self, kind: Any) -> list[Json]:
        found: list[Json] = self._session.get(self.cluster.server + kind.path(), timeout=HANGS_SECONDS).json()["items"]
        return found

    def create(self, kind: Any, body: Json, namespace: str | None = None) -> None:
        body = {"apiVersion": kind.api_version, "kind": kind.kind, **body}
        reply = self._session.post(self.cluster.server + kind.path(namespace), json=body, timeout=HANGS_SECONDS)
        assert reply.ok, reply.text

    def delete(self, kind: Any, name: str, namespace: str | None = None) -> None:
        reply = self._session.delete(self.cluster.server + kind.path(namespace, name), timeout=HANGS_SECONDS)
        assert reply.ok, reply.text

    def patch(
        self, kind: Any, name: str, change: Json, namespace: str | None = None, subresource: str | None = None
    ) -> None:
        path = kind.path(namespace, name, subresource)
        headers = {"Content-Type": "application/merge-patch+json"}
        reply = self._session.patch(self.cluster.server + path, json=change, headers=headers, timeout=HANGS_SECONDS)
        assert reply.ok, reply.text
