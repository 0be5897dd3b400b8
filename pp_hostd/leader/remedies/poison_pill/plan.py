"""The poison pill on the cluster's side: the next step for a node that is requested, condemned or not yet given back.

Every state is derived from the cluster and this term's own memory, so any step can be repeated, by any leader.
"""

from __future__ import annotations

from dataclasses import replace

from pp_hostd.leader.node_memory import NextAction, Stage
from pp_hostd.leader.plan.freeing import undeletable
from pp_hostd.leader.plan.request_trouble import request_trouble
from pp_hostd.leader.plan.valves import Valves, begun, handed_over, paused
from pp_hostd.leader.plan.view import View
from pp_hostd.leader.remedies.poison_pill.certainty import LOOK_AGAIN_SECONDS, certain, refusal
from pp_hostd.leader.remedies.poison_pill.giving_back import given_back
from pp_hostd.leader.remedies.poison_pill.memory import PillMemory
from pp_hostd.leader.remedies.poison_pill.requested_again import held_until_back
from pp_hostd.leader.remedies.poison_pill.steps import Condemn
from pp_hostd.leader.steps.config_maps import SpendBudget
from pp_hostd.leader.steps.inspection import Inspect
from pp_hostd.leader.steps.nodes import Cordon, DeleteNode, DropBackup, StoreBackup
from pp_hostd.model.condemnation import Condemned, NotRequested, last_id
from pp_hostd.model.machine import Machine
from pp_hostd.model.observed import NodeSeen
from pp_hostd.model.record import Unreadable


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
        f"the Node bears marks of a condemnation, and its machine {view.subject or '(unknown)'} does not exist. If its "
        f"workloads are gone: kubectl uncordon {view.name}, and remove the taint and the annotations of pp-hostd.io/"
    )


def _trouble(view: View, machine: Machine, seen: NodeSeen | None) -> str:
    """Why this remedy can do nothing about this request, and what a person can do; empty if it can."""
    trouble = request_trouble(view, machine, seen)
    if trouble or seen is None:
        return trouble
    if view.name not in view.observed.enrolled:
        unknown = "the node is not enrolled, so the leader can't know when it is dead"
        return f"{unknown}. To enrol it: pp-leader enroll {view.name}"
    if isinstance(machine.condemnation, Condemned):
        return ""
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
        return view.does(Stage.CONDEMNING, Inspect(view.subject, view.name), told)
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
    condemn = Condemn(view.subject, machine.uid, machine.resource_version, fresh)
    return view.does(Stage.CONDEMNING, condemn, "condemning its machine")
