"""The deletion of a Node whose host is certainly dead, in every flow: backed up first, and that very Node (rule 12).

A gate opens where the Node is missing and no backup of it stands (rule 6). So no deletion, and no freeing after one,
relies on a backup that may be going: this very term has stored it, which voids every earlier request to drop it.
"""

from __future__ import annotations

from pp_hostd.leader.node_memory import NextAction, Stage
from pp_hostd.leader.plan.view import View
from pp_hostd.leader.steps.nodes import DeleteNode, StoreBackup
from pp_hostd.leader.steps.workloads import Freeing, FreeWorkloads
from pp_hostd.model.backup import Backup
from pp_hostd.model.observed import BackupSeen, NodeSeen
from pp_hostd.model.record import Unreadable


def undeletable(found: NodeSeen) -> str:
    """Why its Node can't be deleted at once; empty if it can. Checked before the host is touched, and here."""
    if not found.finalizers:
        return ""
    names = ", ".join(found.finalizers)
    return f"its Node has finalizers, which block a deletion ({names}). Remove them, if nobody needs them"


def deleted(view: View, found: NodeSeen, backup: Backup | Unreadable | None, why: str) -> NextAction:
    """Back it up so, under the id of this remediation; then delete it."""
    node, stored = found.node, view.backup_seen
    trouble = undeletable(found)
    if trouble:
        return view.refuses(f"{why}, but {trouble}")
    if not isinstance(backup, Backup):
        return view.refuses(f"{why}, but no backup can be made of its Node: {backup}")
    if stored is None or stored.backup != backup or view.memory.stored != backup.id:
        store = StoreBackup(backup, None if stored is None else stored.resource_version)
        return view.does(Stage.FREEING, store, f"{why}; backing up its Node")
    delete = DeleteNode(node.name, node.uid, node.resource_version)
    return view.does(Stage.FREEING, delete, f"{why}; deleting its Node")


def freed(view: View, stored: BackupSeen, backup: Backup) -> NextAction:
    """Frees the workloads of a Node that a leader has deleted, once this term has stored its backup."""
    left = "" if view.memory.left is None else f" ({view.memory.left} are left)"
    if view.memory.stored != backup.id:
        store = StoreBackup(backup, stored.resource_version)
        return view.does(Stage.FREEING, store, "keeping the backup of its Node while its workloads are freed")
    return view.does(Stage.FREEING, FreeWorkloads(view.name, Freeing.ALL), f"freeing its workloads{left}")
