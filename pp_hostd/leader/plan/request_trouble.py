"""Why no remedy can do anything about a request: its marks or its Node are not what they should be."""

from __future__ import annotations

from pp_hostd.leader.plan.view import View
from pp_hostd.model.condemnation import last_id
from pp_hostd.model.keys import CONDEMNATION_ID, CONDEMNED, EXTERNAL_REMEDIATION, NAMESPACE, backup_name
from pp_hostd.model.machine import Machine
from pp_hostd.model.observed import NodeSeen
from pp_hostd.model.record import MAX_COUNT, Unreadable

_WITHDRAW = f"If none will come: remove {EXTERNAL_REMEDIATION} from the machine"
_CORRECT = f"Correct the one that is wrong, or remove {EXTERNAL_REMEDIATION} from the Machine"


def request_trouble(view: View, machine: Machine, seen: NodeSeen | None) -> str:
    """Returns the fault of a request for a machine that must have a Node, and what a person can do; empty if none."""
    if isinstance(machine.condemnation, Unreadable):
        return f"{machine.condemnation}. {_readable(view, machine, seen)}"
    if ids_are_used_up(view, machine):
        return ids_are_used_up(view, machine)
    if machine.node is None:
        named = f"Machine {machine.machine_key} has no nodeRef"
        return f"{named}: there is no Node whose workloads could be freed. {_WITHDRAW}"
    if seen is None:
        return f"there is no Node {machine.node} and no backup of one: nothing can be freed or recreated. {_WITHDRAW}"
    if others_node(machine, seen):
        return f"{others_node(machine, seen)}. {_CORRECT}"
    if machine.node != view.name:
        return (
            f"Node {view.name} names Machine {machine.machine_key}, and that refers to Node {machine.node}. {_CORRECT}"
        )
    return ""


def ids_are_used_up(view: View, machine: Machine) -> str:
    """Why no id is left for another remediation; empty if there is one."""
    if view.term.draw.id_after(last_id(machine.condemnation)) <= MAX_COUNT:
        return ""
    return f"its {CONDEMNATION_ID} can't grow any further. Remove it, and request the remediation again"


def others_node(machine: Machine, seen: NodeSeen) -> str:
    """Why the Node is not this machine's; empty if it is."""
    if seen.machine_key == machine.machine_key:
        return ""
    named = (
        f"names no machine: {seen.machine_key}"
        if isinstance(seen.machine_key, Unreadable)
        else f"names {seen.machine_key}"
    )
    return f"Machine {machine.machine_key} refers to Node {machine.node}, and that Node {named}"


def unreadable_backup(view: View) -> str:
    """Returns the fault of a backup that can't be read, from which a person may still save something; empty if none."""
    stored = view.backup_seen
    if stored is None or not isinstance(stored.backup, Unreadable):
        return ""
    return f"ConfigMap {NAMESPACE}/{backup_name(view.name)}: {stored.backup}. Correct or delete it"


def _readable(view: View, machine: Machine, seen: NodeSeen | None) -> str:
    """How a person makes a condemnation readable again. Its id must not become a lower one (rule 4)."""
    if seen is not None and seen.machine_key == machine.machine_key:
        return f"To make it readable: pp-leader absolve {view.name}"
    return (
        f"Remove {EXTERNAL_REMEDIATION} and the label {CONDEMNED} from the Machine, and set {CONDEMNATION_ID} to a "
        "number that is larger than any before"
    )
