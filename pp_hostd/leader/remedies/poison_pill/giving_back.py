"""What follows once a node's workloads may be freed: free them, give the Node back, lift the condemnation.

It is derived from what stands in the cluster alone (a backup without its Node, the marker), so any leader finishes it.
"""

from __future__ import annotations

from pp_hostd.leader.node_memory import NextAction, Stage
from pp_hostd.leader.plan.request_trouble import unreadable_backup
from pp_hostd.leader.plan.view import View
from pp_hostd.leader.remedies.poison_pill.requested_again import request_over
from pp_hostd.leader.steps.machines import Clear
from pp_hostd.leader.steps.nodes import Complete, DropBackup, Recreate, SetUnknown, Uncordon
from pp_hostd.leader.steps.workloads import Freeing, FreeWorkloads
from pp_hostd.model.backup import Backup
from pp_hostd.model.condemnation import NotRequested
from pp_hostd.model.observed import BackupSeen, NodeSeen
from pp_hostd.model.record import Unreadable


def given_back(view: View) -> NextAction | None:
    """The next step for a Node that was deleted or marked, or whose condemnation was lifted; None if there is none."""
    stored, seen = view.backup_seen, view.seen
    if unreadable_backup(view):
        return view.refuses(unreadable_backup(view))
    backup = stored.backup if stored is not None and isinstance(stored.backup, Backup) else None
    if stored is not None and backup is not None and (seen is None or seen.node.uid != backup.uid):
        return _after_others(view, stored, backup) if backup.early else _after_deletion(view, stored, backup)
    if seen is not None and seen.node.freeing is not None:
        return _after_marker(view, seen)
    return request_over(view) or _lifted(view, seen)


def _after_deletion(view: View, stored: BackupSeen, backup: Backup) -> NextAction:
    seen = view.seen
    # If the condemnation was lifted, somebody else may have deleted the Node, of a host that lives.
    lifted = _is_lifted(view)
    if seen is None and view.memory.left != 0 and not lifted:
        return _frees(view, Freeing.ALL)
    if seen is None:
        why = "condemnation lifted" if lifted else "workloads released"
        return view.does(Stage.GIVING_BACK, Recreate(backup), f"{why}; recreating the Node")
    if seen.freed != backup.id:
        return view.does(Stage.GIVING_BACK, Complete(backup, seen.node.uid), "completing the Node that came back")
    if not seen.conditioned:  # before its requester looks at the Node again
        unknown = SetUnknown(view.name, seen.node.uid, seen.node.resource_version)
        return view.does(Stage.GIVING_BACK, unknown, "the Node that came back reports nothing; setting Ready=Unknown")
    clear = _clear(view, backup.id)
    if clear is not None:
        return clear
    drop = DropBackup(view.name, seen.node.uid, stored.resource_version)
    return view.does(Stage.CLEARING, drop, "its Node is back")


def _after_others(view: View, stored: BackupSeen, backup: Backup) -> NextAction:
    """Somebody else has deleted the Node, of a host that may live: nothing is freed. It gets back what it had."""
    seen = view.seen
    if seen is None and view.name not in view.observed.enrolled:
        drop = DropBackup(view.name, None, stored.resource_version)
        return view.does(Stage.CLEARING, drop, "somebody else has deleted its Node, and it is not enrolled any more")
    if seen is None:
        return view.refuses(
            "somebody else has deleted its Node, and its host may live: nothing is freed. The Node gets its labels, "
            f"annotations and taints back once it is registered again. To recreate it now: pp-leader restore "
            f"{view.name}. If the host is gone for good: pp-leader unenroll {view.name} --force"
        )
    if seen.replaces != backup.uid:
        complete = Complete(backup, seen.node.uid)
        return view.does(
            Stage.GIVING_BACK, complete, "completing the Node by which somebody else has replaced the old one"
        )
    drop = DropBackup(view.name, seen.node.uid, stored.resource_version)
    return view.does(Stage.CLEARING, drop, "the Node that somebody else has replaced has all that it had")


def _after_marker(view: View, seen: NodeSeen) -> NextAction:
    if isinstance(seen.node.freeing, Unreadable):
        return view.refuses(f"{seen.node.freeing}. Remove that annotation if its workloads are not being freed")
    if view.memory.left != 0 and not _is_lifted(view):  # once it is, the host may live again
        return _frees(view, Freeing.AWAIT if seen.out_of_service else Freeing.SPARING)
    condemned = view.condemned
    clear = None if condemned is None else _clear(view, condemned.id)
    why = "workloads released" if view.memory.left == 0 else "condemnation lifted"
    return clear or _uncordon(view, seen, f"{why}; making the Node usable again")


def _is_lifted(view: View) -> bool:
    return view.machine is not None and view.condemned is None


def _frees(view: View, freeing: Freeing) -> NextAction:
    left = "" if view.memory.left is None else f" ({view.memory.left} are left)"
    return view.does(Stage.FREEING, FreeWorkloads(view.name, freeing), f"freeing its workloads{left}")


def _clear(view: View, last_id: int) -> NextAction | None:
    """Lift the condemnation that was carried out; one that came after it is another matter."""
    machine, condemned = view.machine, view.condemned
    if machine is None or condemned is None or condemned.id > last_id:
        return None
    step = Clear(view.subject, machine.uid, machine.resource_version, condemned.id)
    return view.does(Stage.CLEARING, step, "workloads released; lifting the condemnation")


def _lifted(view: View, seen: NodeSeen | None) -> NextAction | None:
    """Somebody lifted the condemnation, or took the request back, before anything was freed."""
    machine, stored = view.machine, view.backup_seen
    if machine is None or not isinstance(machine.condemnation, NotRequested):
        return None
    if stored is not None and seen is not None:  # first of all: without its Node it is a licence to free
        drop = DropBackup(view.name, seen.node.uid, stored.resource_version)
        return view.does(Stage.CLEARING, drop, "its remediation is no longer requested")
    if machine.labelled:  # somebody has removed the annotation alone
        clear = Clear(view.subject, machine.uid, machine.resource_version, machine.condemnation.last_id)
        return view.does(Stage.CLEARING, clear, "its remediation is no longer requested; removing the label")
    if seen is not None and seen.marked:
        return _uncordon(view, seen, "its remediation is no longer requested")
    return None


def _uncordon(view: View, seen: NodeSeen, sentence: str) -> NextAction:
    return view.does(Stage.CLEARING, Uncordon(view.name, seen.node.uid), sentence)
