"""The content of a cluster for a bed's hosts: Nodes, machines, the roster, rights; and a leader's condemnations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import requests
import yaml

from pp_hostd.kube.resources import (
    CAPI_MACHINES,
    CONFIG_MAPS,
    LEASES,
    MACHINES,
    NAMESPACES,
    NODE_HEALTH_CHECKS,
    NODES,
    OPENSHIFT_MACHINES,
    Resource,
)
from pp_hostd.leader.access.manifests import KINDS, manifests
from pp_hostd.leader.registry import REGISTRY
from pp_hostd.model.condemnation import Condemned, NotRequested
from pp_hostd.model.control import Maintenance
from pp_hostd.model.keys import (
    AGENTS,
    CONTROL,
    ENROLLED,
    LEADER,
    LEADER_USER,
    LEADERS,
    MAINTENANCE,
    NAMESPACE,
    NODE_USER,
    ROSTER,
    STATUS,
    AgentsUse,
    backup_name,
)
from pp_hostd.model.keys import NODES_GROUP as NODE_GROUP
from pp_hostd.model.lease import LEASE
from pp_hostd.model.node import Node, parse_node
from pp_hostd.model.record import Unreadable
from pp_hostd.model.roster import Member, Roster, parse_roster
from tests.harness.cluster import Cluster, token_of
from tests.harness.eventually import HANGS_SECONDS

MACHINE_NAMESPACE = "machines"
Json = dict[str, Any]


class Contents:
    """The administrator's and the leader's side of the cluster."""

    def __init__(self, cluster: Cluster, machines: str) -> None:
        self.cluster = cluster
        self._machines_setting = machines
        self.machines = MACHINES[machines][-1]
        """The kind; the oldest version, which every cluster of ours serves."""
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.verify = str(cluster.ca_file)
        self._session.headers["Authorization"] = f"Bearer {token_of('admin')}"
        self._last_id = 0

    def close(self) -> None:
        self._session.close()

    def fill(self, addresses: Mapping[str, str]) -> None:
        """New Nodes, machines and a roster for these hosts, and nothing of what other tests have left."""
        for namespace in (NAMESPACE, MACHINE_NAMESPACE):
            self._ask("POST", NAMESPACES.path(), {"metadata": {"name": namespace}}, allowed=(409,))
        self._clear()
        if self.cluster.kind == "real":
            self._grant()
        members = [self._enrol(name, address) for name, address in addresses.items()]
        self.write_roster(Roster.of(1, 1, members))
        self.write_enrolled(addresses)

    def write_roster(self, roster: Roster) -> None:
        self._replace(CONFIG_MAPS, {"metadata": {"name": ROSTER}, "data": {ROSTER: roster.render()}}, NAMESPACE)

    def write_enrolled(self, names: Iterable[str]) -> None:
        """Writes the list of nodes that a leader takes into the roster."""
        self._replace(CONFIG_MAPS, {"metadata": {"name": ENROLLED}, "data": dict.fromkeys(names, "{}")}, NAMESPACE)

    def roster(self) -> Roster:
        """As it stands."""
        found = parse_roster(self._ask("GET", CONFIG_MAPS.path(NAMESPACE, ROSTER))["data"][ROSTER])
        assert isinstance(found, Roster), found
        return found

    def order_maintenance(self, order: Maintenance | None) -> None:
        """For the whole cluster, as a person does; None takes it back."""
        data = {} if order is None else {MAINTENANCE: order.render()}
        self._replace(CONFIG_MAPS, {"metadata": {"name": CONTROL}, "data": data}, NAMESPACE)

    def write_kubeconfig(self, node: str, path: Path, server: str) -> None:
        """That node's credentials."""
        self.write_credentials(f"{NODE_USER}{node}", (AGENTS, NODE_GROUP), path, server)

    def write_leader_kubeconfig(self, path: Path, server: str, user: str = LEADER_USER) -> None:
        """The leaders' credentials; their rights are the group's."""
        self.write_credentials(user, (LEADERS,), path, server)

    def write_credentials(self, user: str, groups: tuple[str, ...], path: Path, server: str) -> None:
        """A kubeconfig for an API server whose certificate names this machine only."""
        # The embedded API takes its rules when it starts and has none for us: there everybody is an administrator.
        issued = self.cluster.kubeconfig(user, groups if self.cluster.kind == "real" else ("system:masters",))
        config = yaml.safe_load(issued.read_text())
        config["clusters"][0]["cluster"].update({"server": server, "tls-server-name": "localhost"})
        path.write_text(yaml.safe_dump(config))
        path.chmod(0o600)

    def condemn(self, node: str) -> int:
        """As the leader does, in one write; the id."""
        self._last_id += 1
        condemned = Condemned(self._last_id, datetime.now(timezone.utc))
        self.patch(self.machines, node, {"metadata": condemned.render()})
        return self._last_id

    def lift(self, node: str) -> None:
        self.patch(self.machines, node, {"metadata": NotRequested(self._last_id).render()})

    def node(self, name: str) -> Node:
        """The Node, with the record of its agent."""
        node = parse_node(self._ask("GET", NODES.path(name=name)))
        assert not isinstance(node, Unreadable), node
        return node

    def machine(self, node: str) -> Json:
        return self._ask("GET", self._path(self.machines, node))

    def find(self, kind: Resource, name: str, namespace: str = MACHINE_NAMESPACE) -> Json | None:
        """A Node, a host's machine or something else, if there is one."""
        found = self._ask("GET", kind.path(namespace if kind.namespaced else None, name), allowed=(404,))
        return found if found["kind"] == kind.kind else None

    def items(self, kind: Resource, namespace: str | None = None) -> list[Json]:
        """All of a kind."""
        found: list[Json] = self._ask("GET", kind.path(namespace))["items"]
        return found

    def create(self, kind: Resource, body: Json, namespace: str | None = None) -> Json:
        """Creates a further object in the cluster, and returns it."""
        return self._ask("POST", kind.path(namespace), {"apiVersion": kind.api_version, "kind": kind.kind, **body})

    def backup(self, node: str) -> Json | None:
        """Returns the leader's backup of the node; None if there is none."""
        return self.find(CONFIG_MAPS, backup_name(node), NAMESPACE)

    def leader_status(self) -> str:
        """Returns the status that the leader has written; empty before the leader has begun."""
        found = self.find(CONFIG_MAPS, LEADER, NAMESPACE)
        return "" if found is None else str(found["data"][STATUS])

    def patch(self, kind: Resource, name: str, patch: Json, subresource: str = "") -> Json:
        """Merge this into a Node or a host's machine."""
        return self._ask("PATCH", self._path(kind, name) + (subresource and f"/{subresource}"), patch)

    def report(self, node: str, *, ready: bool) -> None:
        """As its kubelet does, or the cluster for it."""
        condition = {"type": "Ready", "status": str(ready), "reason": "Kubelet", "message": ""}
        self._ask("PATCH", self._path(NODES, node) + "/status", {"status": {"conditions": [condition]}})

    def report_address(self, node: str, address: str) -> None:
        """As its kubelet does, also for a Node that was recreated."""
        status = {"addresses": [{"type": "InternalIP", "address": address}]}
        self._ask("PATCH", self._path(NODES, node) + "/status", {"status": status})

    def try_patch(self, kind: Resource, name: str, patch: Json) -> bool:
        """Whether it is still the version that the patch is for, and so was patched."""
        return self._ask("PATCH", self._path(kind, name), patch, allowed=(409,)).get("code") != 409

    def delete(self, kind: Resource, name: str) -> None:
        self._ask("DELETE", self._path(kind, name))

    def _path(self, kind: Resource, name: str) -> str:
        return kind.path(MACHINE_NAMESPACE if kind.namespaced else None, name)

    def _enrol(self, name: str, address: str) -> Member:
        status = {"addresses": [{"type": "InternalIP", "address": address}]}
        metadata = {"name": name, "annotations": _named_by_node(self.machines, name)}
        machine = self._replace(NODES, {"metadata": metadata, "status": status})
        if self.machines is not NODES:
            machine = self.make_machine(name)
        machine_key = None if self.machines is NODES else f"{MACHINE_NAMESPACE}/{name}"
        return Member(name, machine_key, address, machine["metadata"]["uid"], since=1, until=None)

    def make_machine(self, name: str) -> Json:
        """A new machine, which refers to the Node of that name."""
        spec = {"clusterName": "bed"} if self.machines is CAPI_MACHINES else {}
        self._replace(self.machines, {"metadata": {"name": name}, "spec": spec}, MACHINE_NAMESPACE)
        reference = {"status": {"nodeRef": {"kind": "Node", "name": name}}}
        return self._ask("PATCH", self._path(self.machines, name) + "/status", reference)

    def _grant(self) -> None:
        """Applies all that `pp-leader install` grants and guards, and nothing more."""
        flows = [each.name for each in REGISTRY.all if self.machines is not NODES or not each.needs_machines]
        for manifest in manifests(self._machines_setting, AgentsUse.CERTIFICATE, flows):
            metadata = manifest["metadata"]
            path = KINDS[manifest["kind"]].path(metadata.get("namespace"), metadata["name"])
            self._ask("PATCH", f"{path}?fieldManager=bed&force=true", manifest, kind="apply-patch+yaml")

    def _clear(self) -> None:
        self._ask("DELETE", LEASES.path(NAMESPACE, LEASE), allowed=(404,))
        collections = [kind.path(MACHINE_NAMESPACE) for kind in (OPENSHIFT_MACHINES, CAPI_MACHINES)]
        collections += [CONFIG_MAPS.path(NAMESPACE), NODES.path(), NODE_HEALTH_CHECKS.path()]
        for collection in collections:
            for item in self._ask("GET", collection)["items"]:
                self._ask("DELETE", f"{collection}/{item['metadata']['name']}", allowed=(404,))

    def _replace(self, kind: Resource, body: Json, namespace: str | None = None) -> Json:
        """Create it, after deleting the one of that name."""
        self._ask("DELETE", kind.path(namespace, body["metadata"]["name"]), allowed=(404,))
        return self.create(kind, body, namespace)

    def _ask(
        self, verb: str, path: str, body: Json | None = None, allowed: tuple[int, ...] = (), kind: str = ""
    ) -> Json:
        kind = kind or ("merge-patch+json" if verb == "PATCH" else "json")
        headers = {"Content-Type": f"application/{kind}"}
        reply = self._session.request(
            verb, self.cluster.server + path, json=body, headers=headers, timeout=HANGS_SECONDS
        )
        if not reply.ok and reply.status_code not in allowed:
            raise RuntimeError(f"{verb} {path}: {reply.status_code} {reply.text}")
        answer: Json = reply.json()
        return answer


def _named_by_node(machines: Resource, name: str) -> dict[str, str]:
    """The annotations by which a Node names its machine, as the machines' own controllers write them."""
    if machines is OPENSHIFT_MACHINES:
        return {"machine.openshift.io/machine": f"{MACHINE_NAMESPACE}/{name}"}
    if machines is CAPI_MACHINES:
        return {"cluster.x-k8s.io/cluster-namespace": MACHINE_NAMESPACE, "cluster.x-k8s.io/machine": name}
    return {}
