"""Steps on a machine: the look before anything is done (rule 12), its request and the removal of that, its deletion."""

from __future__ import annotations

from pp_hostd.frozen import frozen
from pp_hostd.kube.resources import KUBELET_LEASES, LEASES, NODES
from pp_hostd.leader.steps.api import Json
from pp_hostd.leader.steps.port import (
    MACHINE,
    Inspected,
    Inspection,
    Look,
    OnlyReads,
    Port,
    Unwritten,
    conditional,
    if_there,
)
from pp_hostd.model.backup import back_up
from pp_hostd.model.condemnation import Condemned, NotRequested, Requested, parse_condemnation
from pp_hostd.model.keys import REQUESTED_BY
from pp_hostd.model.machine import Machine, parse_machine
from pp_hostd.model.machine_details import (
    Claim,
    parse_cluster_pause,
    parse_machine_details,
    wish_of_cluster,
    wish_of_machine,
)
from pp_hostd.model.observed import NodeSeen, parse_node_seen
from pp_hostd.model.record import Unreadable
from pp_hostd.model.step import Written


@frozen
class Clear:
    """Lift the condemnation, and keep its id."""

    machine_key: str
    uid: str
    resource_version: str
    last_id: int

    async def run(self, port: Port) -> str:
        patch: Json = {"metadata": NotRequested(self.last_id).render()}
        return await change_machine(port, self.machine_key, patch, self.uid, self.resource_version)


@frozen
class DeleteMachine:
    """Its host does not come back: whoever owns the Machine makes another one."""

    machine_key: str
    uid: str
    resource_version: str

    async def run(self, port: Port) -> str:
        return await port.write(
            lambda: port.machines.delete(self.machine_key, self.uid, self.resource_version),
            MACHINE,
            self.machine_key,
            self.resource_version,
        )


@frozen
class AskFor:
    """Request a machine's remedy on behalf of another object, which claims it."""

    machine_key: str
    uid: str
    resource_version: str
    claim: Claim

    async def run(self, port: Port) -> str:
        found = await port.machines.get(self.machine_key)
        condemnation = parse_condemnation(found["metadata"])
        if not isinstance(condemnation, NotRequested):
            told = f"Machine {self.machine_key} is no longer what it was when this was planned"
            raise Unwritten(Written.CONFLICT, told)
        metadata = Requested(condemnation.last_id).render()
        metadata["annotations"][REQUESTED_BY] = self.claim.render()
        return await change_machine(port, self.machine_key, {"metadata": metadata}, self.uid, self.resource_version)


@frozen
class DropClaim:
    """The object that claimed the machine is done with it."""

    machine_key: str
    uid: str
    resource_version: str

    async def run(self, port: Port) -> str:
        patch = {"metadata": {"annotations": {REQUESTED_BY: None}}}
        return await change_machine(port, self.machine_key, patch, self.uid, self.resource_version)


async def change_machine(
    port: Port, machine_key: str, patch: Json, uid: str, version: str, part: str | None = None
) -> str:
    """Patch this version of that very machine."""
    patch = conditional(patch, uid, version)
    return await port.write(lambda: port.machines.patch(machine_key, patch, part), MACHINE, machine_key, version)


async def check_wish(port: Port, machine: Json) -> None:
    """Unwritten if its owner wants nobody to remedy this machine; ApiError if its Cluster can't be read."""
    machines, about = port.machines, parse_machine_details(machine)
    if machines.are_nodes or isinstance(about, Unreadable):
        return
    wish = wish_of_machine(f"{machine['metadata']['namespace']}/{machine['metadata']['name']}", about)
    if not wish and about.cluster and machines.setting == "cluster-api":
        wish = wish_of_cluster(about.cluster, parse_cluster_pause(await machines.clusters.get(about.cluster)))
    if wish:
        raise Unwritten(Written.NOT_DONE, wish)


@frozen
class Inspect(OnlyReads):
    """Linearizable reads of the machine, its Node, the kubelet's Lease, and what a remedy wants to be looked at."""

    machine_key: str
    node: str
    looks: tuple[Look, ...] = ()

    async def run(self, port: Port) -> str:
        """Tells what there is and, of a machine that is requested, the backup."""
        began_at = port.clock()
        found = await if_there(port.machines.get(self.machine_key))
        machine = None if found is None else _machine(found, self.machine_key)
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


def _machine(found: Json, machine_key: str) -> Machine:
    machine = parse_machine(found)
    if isinstance(machine, Unreadable):
        raise Unwritten(Written.NOT_DONE, f"reading {machine_key}: {machine}")
    return machine


def _node(found: Json, machines: str) -> NodeSeen:
    node = parse_node_seen(found, machines)
    if isinstance(node, Unreadable):
        raise Unwritten(Written.NOT_DONE, f"reading Node {found['metadata']['name']}: {node}")
    return node


def _renewed(lease: Json | None) -> str:
    return str(((lease or {}).get("spec") or {}).get("renewTime") or "")
