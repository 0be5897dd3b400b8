"""The look before anything is done: linearizable reads of a machine, its Node and its kubelet's Lease (rule 12)."""

from __future__ import annotations

from collections.abc import Awaitable

from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.outcome import ApiError, is_missing
from pp_hostd.kube.resources import BARE_METAL_HOSTS, KUBELET_LEASES, LEASES, NODES
from pp_hostd.leader.machines import ServedMachines
from pp_hostd.leader.write import Clock, Unwritten
from pp_hostd.model.backup import back_up
from pp_hostd.model.bare_metal_host import BareMetalHost, parse_bare_metal_host
from pp_hostd.model.condemnation import Condemned, Requested
from pp_hostd.model.machine import Machine, parse_machine
from pp_hostd.model.observed import NodeSeen, parse_node_seen
from pp_hostd.model.record import Unreadable
from pp_hostd.model.remedy import Inspect, Inspection
from pp_hostd.model.written import Written


async def inspect(client: ApiClient, machines: ServedMachines, step: Inspect, clock: Clock, suffix: str) -> Inspection:
    """What there is, and, of a machine that is asked for, the backup. ApiError or Unwritten if that can't be told."""
    began_at = clock()
    found = await if_there(machines.get(step.subject))
    machine = None if found is None else _machine(found, step.subject)
    if found is not None:
        await machines.check_wish(found)
    if not machines.are_nodes:  # else the one read shows both, and in one state
        found = await if_there(client.get(NODES, step.node))
    node = None if found is None else _node(found, machines.setting)
    condemnation = None if machine is None else machine.condemnation
    backup = None
    if node is not None and isinstance(condemnation, (Condemned, Requested)):
        backup = back_up(found, condemnation.id if isinstance(condemnation, Condemned) else condemnation.last_id + 1)
    lease = await if_there(client.get(LEASES, step.node, namespace=KUBELET_LEASES))
    host = await _host(client, step.host, suffix) if step.host else None
    return Inspection(began_at, clock(), machine, node, backup, _renewed(lease), host)


async def if_there(read: Awaitable[Json]) -> Json | None:
    """What is read; None if the API itself says that there is no such object."""
    try:
        return await read
    except ApiError as error:
        if is_missing(error):
            return None
        raise


async def _host(client: ApiClient, subject: str, suffix: str) -> BareMetalHost | None:
    namespace, _, name = subject.partition("/")
    found = await if_there(client.get(BARE_METAL_HOSTS, name, namespace=namespace))
    host = None if found is None else parse_bare_metal_host(found, suffix)
    if isinstance(host, Unreadable):
        raise Unwritten(Written.NOT_DONE, f"reading BareMetalHost {subject}: {host}")
    return host


def _machine(found: Json, subject: str) -> Machine:
    machine = parse_machine(found)
    if isinstance(machine, Unreadable):
        raise Unwritten(Written.NOT_DONE, f"reading {subject}: {machine}")
    if machine.subject != subject:  # a lying server proves nothing
        raise Unwritten(Written.NOT_DONE, f"reading {subject}: the reply is {machine.subject}")
    return machine


def _node(found: Json, machines: str) -> NodeSeen:
    node = parse_node_seen(found, machines)
    if isinstance(node, Unreadable):
        raise Unwritten(Written.NOT_DONE, f"reading Node {found['metadata']['name']}: {node}")
    return node


def _renewed(lease: Json | None) -> str:
    return str(((lease or {}).get("spec") or {}).get("renewTime") or "")
