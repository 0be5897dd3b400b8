"""The poison pill on the cluster's side: for a node that is asked for, condemned or not yet given back, what next.

Every state is derived from the cluster and this term's own memory, so any step can be repeated, by any leader.
"""

from __future__ import annotations

from dataclasses import replace

from pp_hostd.leader.plan.certainty import LOOK_AGAIN_SECONDS, certain, refusal
from pp_hostd.leader.plan.freeing import undeletable
from pp_hostd.leader.plan.giving_back import given_back
from pp_hostd.leader.plan.requested_again import held_until_back
from pp_hostd.leader.plan.valves import Valves, begun, paused
from pp_hostd.leader.plan.view import View
from pp_hostd.model.case import Course, Stage
from pp_hostd.model.condemnation import Condemned, NotRequested, last_id
from pp_hostd.model.keys import CONDEMNATION_ID, CONDEMNED, EXTERNAL_REMEDIATION
from pp_hostd.model.machine import Machine
from pp_hostd.model.observed import NodeSeen
from pp_hostd.model.record import MAX_COUNT, Unreadable
from pp_hostd.model.remedy import Condemn, Cordon, DeleteNode, DropBackup, HandOver, Inspect, SpendBudget, StoreBackup

_WITHDRAW = f"If none will come: remove {EXTERNAL_REMEDIATION} from the machine"
_CORRECT = f"Correct the one that is wrong, or remove {EXTERNAL_REMEDIATION} from the Machine"


def poisoned(view: View, valves: Valves) -> Course | None:
    """The next step for this node; None: nothing of it."""
    begun = given_back(view)
    if begun is not None:  # also while it is paused: a Node that is missing must come back
        return begun
    course, stored, seen = _asked_for(view, valves), view.backup_seen, view.seen
    if stored is not None and seen is not None and not _is_needed(view, course):
        drop = DropBackup(view.name, seen.node.uid, stored.resource_version)
        return view.does(Stage.CHECKING, drop, "its Node is not deleted after all: drops the backup")
    return course


def _is_needed(view: View, course: Course | None) -> bool:
    """Whether the backup stands. Without its Node it is a licence to free, so it stands only while the deletion comes
    next; an early one stands while its Node is condemned, or about to be."""
    step = course and course.step
    if view.licence is not None:
        return isinstance(step, (Inspect, StoreBackup, DeleteNode))
    comes_next = isinstance(step, (SpendBudget, Inspect, StoreBackup, Cordon, Condemn))
    return view.condemned is not None or begun(view.seen) or comes_next


def _asked_for(view: View, valves: Valves) -> Course | None:
    machine, seen = view.machine, view.seen
    if machine is None:
        return None if seen is None else view.refuses(_without_machine(view))
    if isinstance(machine.condemnation, NotRequested):
        return None
    trouble = trouble_with(view, machine, seen)
    if trouble or seen is None:
        return view.refuses(trouble)
    return _remedied(view, machine, seen, valves)


def _without_machine(view: View) -> str:
    return (
        f"it bears marks of a condemnation, and its machine {view.subject or '(unknown)'} does not exist. If its "
        f"workloads are gone: kubectl uncordon {view.name}, and remove the taint and the annotations of pp-hostd.io/"
    )


def trouble_with(view: View, machine: Machine, seen: NodeSeen | None) -> str:
    """Why nothing can be done about this request, or nothing, and what a person can do."""
    if isinstance(machine.condemnation, Unreadable):
        return f"{machine.condemnation}. {_readable(view, machine, seen)}"
    if view.term.draw.id_after(last_id(machine.condemnation)) > MAX_COUNT:
        return f"its {CONDEMNATION_ID} can't grow any further. Remove it, and request the remediation again"
    if machine.node is None:
        return f"Machine {machine.subject} has no nodeRef: there is no Node whose workloads could be freed. {_WITHDRAW}"
    if seen is None:
        return f"there is no Node {machine.node} and no backup of one: nothing can be freed or given back. {_WITHDRAW}"
    if seen.subject != machine.subject:
        named = f"names no machine: {seen.subject}" if isinstance(seen.subject, Unreadable) else f"names {seen.subject}"
        return f"Machine {machine.subject} refers to Node {machine.node}, and that Node {named}. {_CORRECT}"
    if machine.node != view.name:
        return f"Node {view.name} names Machine {machine.subject}, and that refers to Node {machine.node}. {_CORRECT}"
    if view.name not in view.observed.enrolled:
        return (
            f"the node is not enrolled, so it can't be known when it is dead. To enrol it: pp-leader enroll {view.name}"
        )
    if isinstance(machine.condemnation, Condemned):
        return ""
    by_deletion = view.settings.leader.strategy == "node-delete"
    return refusal(view, seen, machine.uid) or (undeletable(seen) if by_deletion else "")


def _readable(view: View, machine: Machine, seen: NodeSeen | None) -> str:
    """How a person makes a condemnation readable again. Its id must not become a lower one (rule 4)."""
    if seen is not None and seen.subject == machine.subject:
        return f"To make it readable: pp-leader absolve {view.name}"
    return (
        f"Remove {EXTERNAL_REMEDIATION} and the label {CONDEMNED} from the Machine, and set {CONDEMNATION_ID} to a "
        "number that is larger than any before"
    )


def _remedied(view: View, machine: Machine, seen: NodeSeen, valves: Valves) -> Course:
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
    if view.name == view.term.own_node:
        return view.does(Stage.HELD, HandOver(), "this leader runs on that very host: another must lead")  # rule 14
    write = valves.allowance.next_write(view, Stage.CONDEMNING) if begins else None
    return write or _backed_up(view, seen) or _condemned(view, machine, seen) or certain(view)


def _backed_up(view: View, seen: NodeSeen) -> Course | None:
    """Before it is touched: whoever deletes the Node from here on, it gets back what it had. None once that stands."""
    if view.backup_seen is not None:  # of this very Node: what was another's is given back, or dropped, before
        return None
    inspection = view.case.inspection
    if inspection is None or inspection.node != seen or inspection.backup is None:
        due_at = 0.0 if inspection is None else inspection.began_at + LOOK_AGAIN_SECONDS
        told = "reads its Node, to back it up"
        if view.now < due_at:
            return view.waits(Stage.CONDEMNING, told, due_at)
        return view.does(Stage.CONDEMNING, Inspect(view.subject, view.name), told)
    if isinstance(inspection.backup, Unreadable):
        return view.refuses(f"no backup can be made of its Node: {inspection.backup}")
    return view.does(Stage.CONDEMNING, StoreBackup(replace(inspection.backup, early=True), None), "backs its Node up")


def _condemned(view: View, machine: Machine, seen: NodeSeen) -> Course | None:
    """Rule 9: cordon first, then condemn, each term under an id of its own; None once that stands."""
    node, condemnation = seen.node, machine.condemnation
    if isinstance(condemnation, Unreadable):
        return None
    own = isinstance(condemnation, Condemned) and condemnation.id == view.case.id
    newest = last_id(condemnation)
    fresh = view.case.drawn or view.term.draw.id_after(newest)
    if not node.tainted or not node.unschedulable:
        cordon = Cordon(node.name, node.uid, node.resource_version, newest if own else fresh)
        return view.does(Stage.CONDEMNING, cordon, "cordons its Node")
    if own:
        return None
    condemn = Condemn(view.subject, machine.uid, machine.resource_version, fresh)
    return view.does(Stage.CONDEMNING, condemn, "condemns its machine")
