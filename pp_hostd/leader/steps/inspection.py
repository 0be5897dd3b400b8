"""The look before anything is done: linearizable reads of a machine, its Node and its kubelet's Lease (rule 12)."""

from __future__ import annotations

from pp_hostd.frozen import frozen
from pp_hostd.kube.resources import KUBELET_LEASES, LEASES, NODES
from pp_hostd.leader.steps.api import Json
from pp_hostd.leader.steps.machines import check_wish
from pp_hostd.leader.steps.port import Inspected, Inspection, Look, OnlyReads, Port, Unwritten, if_there
from pp_hostd.model.backup import back_up
from pp_hostd.model.condemnation import Condemned, Requested
from pp_hostd.model.machine import Machine, parse_machine
from pp_hostd.model.observed import NodeSeen, parse_node_seen
from pp_hostd.model.record import Unreadable
from pp_hostd.model.written import Written


@frozen
class Inspect(OnlyReads):
    """Linearizable reads of the machine, its Node, the kubelet's Lease, and what a remedy wants to be looked at."""

    subject: str
    node: str
    looks: tuple[Look, ...] = ()

    async def run(self, port: Port) -> str:
        """Tells what there is and, of a machine that is requested, the backup."""
        began_at = port.clock()
        found = await if_there(port.machines.get(self.subject))
        machine = None if found is None else _machine(found, self.subject)
        if found is not None:
            await check_wish(port, found)
        if not port.machines.are_nodes:  # else the one read shows both, and in one state
            found = await if_there(port.api.get(NODES, self.node))
        node = None if found is None else _node(found, port.machines.setting)
        condemnation = None if machine is None else machine.condemnation
        backup = None
        if node is not None and isinstance(condemnation, (Condemned, Requested)):
            newest = condemnation.id if isinstance(condemnation, Condemned) else condemnation.last_id + 1
            backup = back_up(found, newest)
        lease = await if_there(port.api.get(LEASES, self.node, namespace=KUBELET_LEASES))
        beside = tuple([await look.read(port) for look in self.looks])
        inspection = Inspection(began_at, port.clock(), machine, node, backup, _renewed(lease), beside)
        port.tell(Inspected(port.key, inspection))
        return ""


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
