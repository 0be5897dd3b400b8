"""What follows once a node's workloads may be freed: free them, give the Node back, lift the condemnation.

It is derived from what stands in the cluster alone (a backup without its Node, the marker), so any leader finishes it.
"""

from __future__ import annotations

from pp_hostd.leader.plan.requested_again import request_over
from pp_hostd.leader.plan.view import View
from pp_hostd.model.backup import Backup
from pp_hostd.model.case import Course, Stage
from pp_hostd.model.condemnation import NotRequested
from pp_hostd.model.keys import NAMESPACE, backup_name
from pp_hostd.model.observed import BackupSeen, NodeSeen
from pp_hostd.model.record import Unreadable
from pp_hostd.model.remedy import Clear, Complete, DropBackup, Freeing, FreeWorkloads, Recreate, SetUnknown, Uncordon


def given_back(view: View) -> Course | None:
    """The next step for a Node that was deleted or marked, or whose condemnation was lifted; None: nothing of it."""
    stored, seen = view.backup_seen, view.seen
    if stored is not None and isinstance(stored.backup, Unreadable):  # a person may still save what it held
        return view.refuses(f"ConfigMap {NAMESPACE}/{backup_name(view.name)}: {stored.backup}. Correct or delete it")
    backup = stored.backup if stored is not None and isinstance(stored.backup, Backup) else None
    if stored is not None and backup is not None and (seen is None or seen.node.uid != backup.uid):
        return _after_others(view, stored, backup) if backup.early else _after_deletion(view, stored, backup)
    if seen is not None and seen.node.freeing is not None:
        return _after_marker(view, seen)
    return request_over(view) or _lifted(view, seen)


def _after_deletion(view: View, stored: BackupSeen, backup: Backup) -> Course:
    seen = view.seen
    # If the condemnation was lifted, somebody else may have deleted the Node, of a host that lives.
    lifted = _is_lifted(view)
    if seen is None and view.case.left != 0 and not lifted:
        return _frees(view, Freeing.ALL)
    if seen is None:
        why = "its condemnation was lifted" if lifted else "its workloads are free"
        return view.does(Stage.GIVING_BACK, Recreate(backup), f"{why}: makes its Node anew")
    if seen.freed != backup.id:
        return view.does(Stage.GIVING_BACK, Complete(backup, seen.node.uid), "completes the Node that came back")
    if not seen.conditioned:  # before whoever asked for it looks at the Node again
        unknown = SetUnknown(view.name, seen.node.uid, seen.node.resource_version)
        return view.does(Stage.GIVING_BACK, unknown, "the Node that came back reports nothing: sets Ready=Unknown")
    clear = _clear(view, backup.id)
    if clear is not None:
        return clear
    drop = DropBackup(view.name, seen.node.uid, stored.resource_version)
    return view.does(Stage.CLEARING, drop, "its Node is back")


def _after_others(view: View, stored: BackupSeen, backup: Backup) -> Course:
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
        return view.does(Stage.GIVING_BACK, complete, "completes the Node by which somebody else has replaced its own")
    drop = DropBackup(view.name, seen.node.uid, stored.resource_version)
    return view.does(Stage.CLEARING, drop, "the Node that somebody else has replaced has all that it had")


def _after_marker(view: View, seen: NodeSeen) -> Course:
    if isinstance(seen.node.freeing, Unreadable):
        return view.refuses(f"{seen.node.freeing}. Remove that annotation if its workloads are not being freed")
    if view.case.left != 0 and not _is_lifted(view):  # once it is, the host may live again
        return _frees(view, Freeing.AWAIT if seen.out_of_service else Freeing.SPARING)
    condemned = view.condemned
    clear = None if condemned is None else _clear(view, condemned.id)
    why = "its workloads are free" if view.case.left == 0 else "its condemnation was lifted"
    return clear or _uncordon(view, seen, f"{why}: the Node may be used again")


def _is_lifted(view: View) -> bool:
    return view.machine is not None and view.condemned is None


def _frees(view: View, freeing: Freeing) -> Course:
    left = "" if view.case.left is None else f" ({view.case.left} are left)"
    return view.does(Stage.FREEING, FreeWorkloads(view.name, freeing), f"frees its workloads{left}")


def _clear(view: View, last_id: int) -> Course | None:
    """Lift the condemnation that was carried out; one that came after it is another matter."""
    machine, condemned = view.machine, view.condemned
    if machine is None or condemned is None or condemned.id > last_id:
        return None
    step = Clear(view.subject, machine.uid, machine.resource_version, condemned.id)
    return view.does(Stage.CLEARING, step, "its workloads are free: lifts the condemnation")


def _lifted(view: View, seen: NodeSeen | None) -> Course | None:
    """Somebody lifted the condemnation, or took the request back, before anything was freed."""
    machine, stored = view.machine, view.backup_seen
    if machine is None or not isinstance(machine.condemnation, NotRequested):
        return None
    if stored is not None and seen is not None:  # first of all: without its Node it is a licence to free
        drop = DropBackup(view.name, seen.node.uid, stored.resource_version)
        return view.does(Stage.CLEARING, drop, "nobody asks for it any more")
    if machine.labelled:  # somebody has removed the annotation alone
        clear = Clear(view.subject, machine.uid, machine.resource_version, machine.condemnation.last_id)
        return view.does(Stage.CLEARING, clear, "nobody asks for it any more: takes the label off its machine")
    if seen is not None and seen.marked:
        return _uncordon(view, seen, "nobody asks for it any more")
    return None


def _uncordon(view: View, seen: NodeSeen, sentence: str) -> Course:
    return view.does(Stage.CLEARING, Uncordon(view.name, seen.node.uid), sentence)
