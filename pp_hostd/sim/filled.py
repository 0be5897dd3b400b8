"""A cluster's API on any day but the first: Nodes, machines, a roster, and a Lease that a leader has given up."""

from __future__ import annotations

from datetime import datetime, timezone

from pp_hostd.kube.resources import CONFIG_MAPS, LEASES, NAMESPACES, NODES
from pp_hostd.model.keys import ENROLLED, NAMESPACE, ROSTER
from pp_hostd.model.lease import LEASE, given_up_spec, unheld_spec
from pp_hostd.model.machine import Machine, parse_machine
from pp_hostd.model.observed import CONTROL_PLANE_LABELS
from pp_hostd.model.roster import Member, Roster
from pp_hostd.sim.api import EPOCH, Api, Json
from pp_hostd.sim.bare_metal import make_host
from pp_hostd.sim.cluster import MACHINES_IN

EPOCH_TIME = datetime.fromtimestamp(EPOCH, timezone.utc)
RACK = 4
_TAINT = {"key": "example.com/storage", "value": "fast", "effect": "PreferNoSchedule"}


def fill(api: Api, names: list[str], lease_seconds: float) -> None:
    for namespace in (NAMESPACE, MACHINES_IN):
        api.create(NAMESPACES, "", {"metadata": {"name": namespace}})
    members = [_member(api, name, number) for number, name in enumerate(names)]
    members = [member for member in members if member.name not in api.cluster.unenrolled]
    enrolled = {member.name: "{}" for member in members}
    api.create(CONFIG_MAPS, NAMESPACE, {"metadata": {"name": ENROLLED}, "data": enrolled})
    roster = Roster.of(1, 1, members).render()
    api.create(CONFIG_MAPS, NAMESPACE, {"metadata": {"name": ROSTER}, "data": {ROSTER: roster}})
    lease = {**unheld_spec(lease_seconds), **given_up_spec(EPOCH_TIME)}
    api.create(LEASES, NAMESPACE, {"metadata": {"name": LEASE}, "spec": lease})


def make_machine(api: Api, name: str) -> None:
    """Where Nodes are the machines, there it is already."""
    kind = api.cluster.kind
    if not api.cluster.machines_are_nodes:
        spec = {"spec": {"providerID": f"baremetalhost:///{MACHINES_IN}/{name}"}} if api.cluster.power_cycles else {}
        labels = {"cluster.x-k8s.io/control-plane": ""} if _is_of_control_plane(api, name) else {}
        api.create(kind, MACHINES_IN, {"metadata": {"name": name, "labels": labels}, **spec})
        api.patch(kind, MACHINES_IN, name, {"status": {"nodeRef": {"kind": "Node", "name": name}}}, "status")


def machine_of(api: Api, name: str) -> Machine:
    found: Machine = api.found(parse_machine, *api.cluster.place(name))
    return found


def _member(api: Api, name: str, number: int) -> Member:
    machine_key, address = api.cluster.machine_key(name), f"10.0.{number // 250}.{number % 250 + 1}"
    register(api, name, number)
    make_machine(api, name)
    if api.cluster.power_cycles:
        make_host(api, name)
    return Member(name, machine_key if "/" in machine_key else None, address, machine_of(api, name).uid, 1, None)


def register(api: Api, name: str, number: int) -> None:
    """As its kubelet makes its Node."""
    api.create(NODES, "", _node(api, name, number, f"10.0.{number // 250}.{number % 250 + 1}"))


def _is_of_control_plane(api: Api, name: str) -> bool:
    """Where a host that resets itself comes back by itself, nothing tells it from others."""
    return name in api.cluster.api_on and bool(api.cluster.power_cycles or api.cluster.fenced)


def _node(api: Api, name: str, number: int, address: str) -> Json:
    labels = {"example.com/rack": str(number // RACK)}
    if _is_of_control_plane(api, name):
        labels[CONTROL_PLANE_LABELS[0]] = ""
    annotations = {"example.com/note": "any", **api.cluster.naming(name)}
    metadata = {"name": name, "annotations": annotations, "labels": labels}
    status = {"addresses": [{"type": "InternalIP", "address": address}]}
    return {"metadata": metadata, "spec": {"taints": [_TAINT]}, "status": status}
