"""Steps that change a Node, and its backup."""

from __future__ import annotations

from functools import partial
from typing import Callable

from pp_hostd.frozen import frozen
from pp_hostd.kube.resources import CONFIG_MAPS, NODES
from pp_hostd.leader.steps import node_patches
from pp_hostd.leader.steps.api import Json
from pp_hostd.leader.steps.port import CONFIG_MAP, NODE, Port, Unwritten, conditional, if_there
from pp_hostd.model.backup import Backup
from pp_hostd.model.keys import NAMESPACE, backup_name
from pp_hostd.model.written import Written


@frozen
class Cordon:
    """Keep workloads off the Node: unschedulable, and the taint that a rebooted kubelet honours (rule 9)."""

    node: str
    uid: str
    resource_version: str
    id: int

    async def run(self, port: Port) -> str:
        change = partial(node_patches.cordon, condemnation_id=self.id)
        return await _change(port, self.node, self.uid, self.resource_version, change)


@frozen
class MarkFreeing:
    """Where the Node is kept: the marker that the gate honours, before anything is freed (rule 12)."""

    node: str
    uid: str
    resource_version: str
    id: int
    out_of_service: bool

    async def run(self, port: Port) -> str:
        change = partial(node_patches.mark_freeing, condemnation_id=self.id, out_of_service=self.out_of_service)
        return await _change(port, self.node, self.uid, self.resource_version, change)


@frozen
class NoteRequest:
    """Note on the Node that remediation is requested again, before its host is back."""

    node: str
    uid: str
    resource_version: str

    async def run(self, port: Port) -> str:
        return await _change(port, self.node, self.uid, self.resource_version, node_patches.note_request)


@frozen
class Uncordon:
    """Take all our marks off the Node."""

    node: str
    uid: str

    async def run(self, port: Port) -> str:
        return await _change(port, self.node, self.uid, None, node_patches.uncordon)


@frozen
class DeleteNode:
    """The write that frees: it carries what was checked last (rule 12)."""

    node: str
    uid: str
    resource_version: str

    async def run(self, port: Port) -> str:
        name, version = self.node, self.resource_version
        return await port.write(
            lambda: port.api.delete(NODES, name, uid=self.uid, resource_version=version), NODE, name, version
        )


@frozen
class Recreate:
    """Create the Node of the backup."""

    backup: Backup

    async def run(self, port: Port) -> str:
        body = node_patches.recreated(self.backup, port.wallclock(), is_machine=port.machines.are_nodes)
        return await port.write(lambda: port.api.create(NODES, body), NODE, self.backup.name, None)


@frozen
class Complete:
    """Give a Node that came back by itself what it lacks of the backup; nothing that it has is overwritten."""

    backup: Backup
    uid: str

    async def run(self, port: Port) -> str:
        change = partial(node_patches.complete, backup=self.backup, is_machine=port.machines.are_nodes)
        return await _change(port, self.backup.name, self.uid, None, change)


@frozen
class SetUnknown:
    """Give a Node that has no Ready condition a fresh Ready=Unknown, so that health checks don't call it healthy."""

    node: str
    uid: str
    resource_version: str

    async def run(self, port: Port) -> str:
        change = partial(node_patches.unheard, now=port.wallclock())
        return await _change(port, self.node, self.uid, self.resource_version, change, "status")


@frozen
class StoreBackup:
    """In place of the stored one of that version; None creates it."""

    backup: Backup
    resource_version: str | None

    async def run(self, port: Port) -> str:
        return await port.store(backup_name(self.backup.name), self.backup.data(), self.resource_version)


@frozen
class DropBackup:
    """The Node is back, or was never deleted: that very one must be there when it is dropped. None: it will not come
    back, and must not be there."""

    node: str
    uid: str | None
    resource_version: str

    async def run(self, port: Port) -> str:
        name, version = backup_name(self.node), self.resource_version
        node = await if_there(
            port.api.get(NODES, self.node)
        )  # the watch may be late, and the backup is all that is left
        if (None if node is None else node["metadata"]["uid"]) != self.uid:
            raise _changed(self.node)
        return await port.write(
            lambda: port.api.delete(CONFIG_MAPS, name, namespace=NAMESPACE, resource_version=version),
            CONFIG_MAP,
            name,
            version,
        )


async def _change(
    port: Port, name: str, uid: str, version: str | None, change: Callable[[Json], Json], part: str | None = None
) -> str:
    """Change the Node as it is now, if it is still the one of this uid and, if one is given, this version."""
    node = await port.api.get(NODES, name)
    found = node["metadata"]["resourceVersion"]
    if node["metadata"]["uid"] != uid or version not in (None, found):
        raise _changed(name)
    patch = change(node)
    if not patch and version is None:  # else it would be planned again and again until the watch shows it
        raise Unwritten(Written.CONFLICT, f"Node {name} is so already, and the watch has not shown it yet")
    if not patch:
        return ""
    patch = conditional(patch, uid, found)
    return await port.write(lambda: port.api.patch(NODES, name, patch, subresource=part), NODE, name, found)


def _changed(name: str) -> Unwritten:
    return Unwritten(Written.CONFLICT, f"Node {name} is no longer what it was when this was planned")
