"""The poison pill on the cluster's side: the next step for a node that is requested, condemned or not yet given back.

Every state is derived from the cluster and this term's own memory, so any step can be repeated, by any leader.
"""

from __future__ import annotations

from pp_hostd.frozen import replace
from pp_hostd.leader.node_memory import NextAction, Stage
from pp_hostd.leader.plan.freeing import freed, undeletable
from pp_hostd.leader.plan.request_trouble import request_trouble, unreadable_backup
from pp_hostd.leader.plan.valves import Valves, begun, handed_over, paused
from pp_hostd.leader.plan.view import View
from pp_hostd.leader.remedies.poison_pill.certainty import LOOK_AGAIN_SECONDS, certain, not_enrolled, refusal
from pp_hostd.leader.remedies.poison_pill.memory import PillMemory
from pp_hostd.leader.remedies.poison_pill.steps import Condemn
from pp_hostd.leader.steps.machines import Clear, Inspect
from pp_hostd.leader.steps.nodes import (
    Complete,
    Cordon,
    DeleteNode,
    DropBackup,
    NoteRequest,
    Recreate,
    SetUnknown,
    StoreBackup,
    Uncordon,
)
from pp_hostd.leader.steps.own_objects import SpendBudget
from pp_hostd.leader.steps.workloads import Freeing, FreeWorkloads
from pp_hostd.model.backup import Backup
from pp_hostd.model.condemnation import Condemned, NotRequested, Requested, last_id
from pp_hostd.model.machine import Machine
from pp_hostd.model.observed import BackupSeen, NodeSeen
from pp_hostd.model.record import Unreadable


def held_until_back(view: View, machine: Machine, seen: NodeSeen) -> NextAction | None:
    """Why this request begins nothing. None if it is carried out: it was made later, the host has been back for long
    without a Ready Node, or a person has confirmed that it is dead."""
    if view.memory.fell_back or seen.confirmed is not None or not (seen.away or seen.requested_again):
        return None
    if view.is_claimed:
        return (
            _remove_request(view, machine, "its workloads are released already, and its host is not back")
            if seen.away
            else None
        )
    lacks = "its host is not back" if seen.away else "its Node is not Ready"
    told = f"its workloads are released already, and {lacks}; a request in the meantime begins nothing"
    if not seen.requested_again:
        return view.does(Stage.HELD, NoteRequest(view.name, seen.node.uid, seen.node.resource_version), told)
    seconds = view.settings.power.on_timeout_seconds
    due_at = view.memory.awaited_at + seconds
    if view.now < due_at:
        return view.waits(Stage.HELD, told, due_at)
    if not seen.away:
        return None
    return view.refuses(
        f"its workloads are released already, and {lacks}, {seconds:g} s after it was requested again. See what its "
        f"console and its BMC say. If something was bound to its Node since: pp-leader confirm-dead {view.name}"
    )


def request_over(view: View) -> NextAction | None:
    """Takes such a request off once the host is back with a Ready Node. None if there is none, or it is not."""
    machine, seen = view.machine, view.seen
    if machine is None or seen is None or not (seen.requested_again and seen.ready):
        return None
    return _remove_request(view, machine, "its host is back, and its Node Ready; earlier requests are over")


def awaited_return(view: View) -> str:
    """Returns the event that a repeated request waits for; empty if there is no such request."""
    machine, seen = view.machine, view.seen
    if machine is None or seen is None or not (seen.requested_again and isinstance(machine.condemnation, Requested)):
        return ""
    return "the host is back" if seen.away else "the Node of a host that is back is Ready"


def _remove_request(view: View, machine: Machine, sentence: str) -> NextAction | None:
    if not isinstance(machine.condemnation, Requested):
        return None
    step = Clear(view.machine_key, machine.uid, machine.resource_version, machine.condemnation.last_id)
    return view.does(Stage.CLEARING, step, f"{sentence}; removing the request from its machine")


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
        return freed(view, stored, backup)
    if seen is None:
        why = "condemnation lifted" if lifted else "workloads released"
        return view.does(Stage.RESTORING, Recreate(backup), f"{why}; recreating the Node")
    if seen.freed != backup.id:
        return view.does(Stage.RESTORING, Complete(backup, seen.node.uid), "completing the Node that came back")
    if not seen.conditioned:  # before its requester looks at the Node again
        unknown = SetUnknown(view.name, seen.node.uid, seen.node.resource_version)
        return view.does(Stage.RESTORING, unknown, "the Node that came back reports nothing; setting Ready=Unknown")
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
        return view.does(Stage.RESTORING, complete, "completing the Node that somebody else has recreated")
    drop = DropBackup(view.name, seen.node.uid, stored.resource_version)
    return view.does(Stage.CLEARING, drop, "the Node that somebody else has recreated has all that is in its backup")


def _after_marker(view: View, seen: NodeSeen) -> NextAction:
    if isinstance(seen.node.freeing, Unreadable):
        return view.refuses(f"{seen.node.freeing}. Remove that annotation if its workloads are not being freed")
    # Once it is lifted, the host may live again. A flow of node fences that was ended may leave its marker behind.
    lifted = _is_lifted(view) or (view.condemned is None and bool(seen.fenced_boots))
    if view.memory.left != 0 and not lifted:
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
    step = Clear(view.machine_key, machine.uid, machine.resource_version, condemned.id)
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
        clear = Clear(view.machine_key, machine.uid, machine.resource_version, machine.condemnation.last_id)
        return view.does(Stage.CLEARING, clear, "its remediation is no longer requested; removing the label")
    if seen is not None and seen.marked:
        return _uncordon(view, seen, "its remediation is no longer requested")
    return None


def _uncordon(view: View, seen: NodeSeen, sentence: str) -> NextAction:
    return view.does(Stage.CLEARING, Uncordon(view.name, seen.node.uid), sentence)


def poisoned(view: View, valves: Valves) -> NextAction | None:
    """Returns the next step for this node, or None if this remedy has nothing to do."""
    begun = given_back(view)
    if begun is not None:  # also while it is paused: a Node that is missing must come back
        return begun
    next_action, stored, seen = _asked_for(view, valves), view.backup_seen, view.seen
    if stored is not None and seen is not None and not _is_needed(view, next_action):
        drop = DropBackup(view.name, seen.node.uid, stored.resource_version)
        return view.does(Stage.CHECKING, drop, "its Node is not deleted after all; dropping the backup")
    return next_action


def _is_needed(view: View, next_action: NextAction | None) -> bool:
    """Whether the backup stands. Without its Node it is a licence to free, so it stands only while the deletion comes
    next; an early one stands while its Node is condemned, or about to be."""
    step = next_action and next_action.step
    if view.licence is not None:
        return isinstance(step, (Inspect, StoreBackup, DeleteNode))
    comes_next = isinstance(step, (SpendBudget, Inspect, StoreBackup, Cordon, Condemn))
    return view.condemned is not None or begun(view.seen) or comes_next


def _asked_for(view: View, valves: Valves) -> NextAction | None:
    machine, seen = view.machine, view.seen
    if machine is None:
        return None if seen is None else view.refuses(_without_machine(view))
    if isinstance(machine.condemnation, NotRequested):
        return None
    trouble = _trouble(view, machine, seen)
    if trouble or seen is None:
        return view.refuses(trouble)
    return _remedied(view, machine, seen, valves)


def _without_machine(view: View) -> str:
    return (
        f"the Node bears marks of a condemnation, and its machine {view.machine_key or '(unknown)'} does not exist. If "
        f"its workloads are gone: kubectl uncordon {view.name}, and remove the taint and the annotations of "
        "pp-hostd.io/"
    )


def _trouble(view: View, machine: Machine, seen: NodeSeen | None) -> str:
    """Why this remedy can do nothing about this request, and what a person can do; empty if it can."""
    trouble = request_trouble(view, machine, seen)
    if trouble or seen is None:
        return trouble
    if isinstance(machine.condemnation, Condemned) or not_enrolled(view):
        return not_enrolled(view)
    by_deletion = view.settings.leader.strategy == "node-delete"
    return refusal(view, seen, machine.uid) or (undeletable(seen) if by_deletion else "")


def _remedied(view: View, machine: Machine, seen: NodeSeen, valves: Valves) -> NextAction:
    begins = not isinstance(machine.condemnation, Condemned) and not begun(seen)
    too_early = held_until_back(view, machine, seen) if begins else None
    if too_early is not None:
        return too_early
    order = paused(view)
    if order:
        return view.waits(Stage.HELD, order)
    held = valves.held(view) if begins else None
    if held is not None:
        return held
    write = valves.allowance.next_write(view, Stage.CONDEMNING) if begins else None
    return handed_over(view) or write or _backed_up(view, seen) or _condemned(view, machine, seen) or certain(view)


def _backed_up(view: View, seen: NodeSeen) -> NextAction | None:
    """Before it is touched: whoever deletes the Node from here on, it gets back what it had. None once that stands."""
    if view.backup_seen is not None:  # of this very Node: what was another's is given back, or dropped, before
        return None
    inspection = view.memory.inspection
    if inspection is None or inspection.node != seen or inspection.backup is None:
        due_at = 0.0 if inspection is None else inspection.began_at + LOOK_AGAIN_SECONDS
        told = "reading its Node, to back it up"
        if view.now < due_at:
            return view.waits(Stage.CONDEMNING, told, due_at)
        return view.does(Stage.CONDEMNING, Inspect(view.machine_key, view.name), told)
    if isinstance(inspection.backup, Unreadable):
        return view.refuses(f"no backup can be made of its Node: {inspection.backup}")
    return view.does(Stage.CONDEMNING, StoreBackup(replace(inspection.backup, early=True), None), "backing up its Node")


def _condemned(view: View, machine: Machine, seen: NodeSeen) -> NextAction | None:
    """Rule 9: cordon first, then condemn, each term under an id of its own; None once that stands."""
    node, condemnation = seen.node, machine.condemnation
    if isinstance(condemnation, Unreadable):
        return None
    pill = view.memory.part(PillMemory)
    own = isinstance(condemnation, Condemned) and condemnation.id == pill.id
    newest = last_id(condemnation)
    fresh = pill.drawn or view.term.draw.id_after(newest)
    if not node.tainted or not node.unschedulable:
        cordon = Cordon(node.name, node.uid, node.resource_version, newest if own else fresh)
        return view.does(Stage.CONDEMNING, cordon, "cordoning its Node")
    if own:
        return None
    condemn = Condemn(view.machine_key, machine.uid, machine.resource_version, fresh)
    return view.does(Stage.CONDEMNING, condemn, "condemning its machine")
