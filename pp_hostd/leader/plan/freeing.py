"""The deletion of a Node whose host is certainly dead, in every flow: backed up first, and that very Node (rule 12)."""

from __future__ import annotations

from dataclasses import replace

from pp_hostd.leader.plan.view import View
from pp_hostd.model.backup import Backup
from pp_hostd.model.bare_metal_host import BareMetalHost
from pp_hostd.model.case import Course, Stage
from pp_hostd.model.observed import NodeSeen
from pp_hostd.model.remedy import DeleteNode, Inspection, StoreBackup


def undeletable(found: NodeSeen) -> str:
    """Why its Node can't be deleted at once; empty if it can. Checked before the host is touched, and here."""
    if not found.finalizers:
        return ""
    return (
        f"its Node has finalizers and would not go ({', '.join(found.finalizers)}). Remove them, if nobody needs them"
    )


def deleted(
    view: View, inspection: Inspection, found: NodeSeen, backup_id: int, host: BareMetalHost | None, why: str
) -> Course:
    """Back it up under this id, with the BareMetalHost that was switched off for it, if one was; then delete it."""
    node, stored = found.node, view.backup_seen
    trouble = undeletable(found)
    if trouble:
        return view.refuses(f"{why}, but {trouble}")
    if not isinstance(inspection.backup, Backup):
        return view.refuses(f"{why}, but no backup can be made of its Node: {inspection.backup}")
    wanted = replace(inspection.backup, id=backup_id)
    if host is not None:
        wanted = replace(wanted, host=host.subject, off=host.resource_version)
    if stored is None or stored.backup != wanted:
        store = StoreBackup(wanted, None if stored is None else stored.resource_version)
        return view.does(Stage.FREEING, store, f"{why}: backs its Node up")
    delete = DeleteNode(node.name, node.uid, node.resource_version)
    return view.does(Stage.FREEING, delete, f"{why}: deletes its Node")
