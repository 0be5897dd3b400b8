"""Steps that change a machine: its request is taken off, or the machine is deleted."""

from __future__ import annotations

from pp_hostd.frozen import frozen
from pp_hostd.leader.steps.api import Json
from pp_hostd.leader.steps.port import MACHINE, Port, Unwritten, conditional
from pp_hostd.model.condemnation import NotRequested
from pp_hostd.model.machine_details import parse_machine_details
from pp_hostd.model.owners_wish import parse_cluster_pause, wish_of_cluster, wish_of_machine
from pp_hostd.model.record import Unreadable
from pp_hostd.model.written import Written


@frozen
class Clear:
    """Lift the condemnation, and keep its id."""

    subject: str
    uid: str
    resource_version: str
    last_id: int

    async def run(self, port: Port) -> str:
        patch: Json = {"metadata": NotRequested(self.last_id).render()}
        return await change_machine(port, self.subject, patch, self.uid, self.resource_version)


@frozen
class DeleteMachine:
    """Its host does not come back: whoever owns the Machine makes another one."""

    subject: str
    uid: str
    resource_version: str

    async def run(self, port: Port) -> str:
        return await port.write(
            lambda: port.machines.delete(self.subject, self.uid, self.resource_version),
            MACHINE,
            self.subject,
            self.resource_version,
        )


async def change_machine(port: Port, subject: str, patch: Json, uid: str, version: str, part: str | None = None) -> str:
    """Patch this version of that very machine."""
    patch = conditional(patch, uid, version)
    return await port.write(lambda: port.machines.patch(subject, patch, part), MACHINE, subject, version)


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
