"""Remediation objects: each requests its machine's remediation, waits for the node, tries again, and gives up at last.

The remedy itself is that of the other flows: an object requests it as a person would, with a claim on the Machine that
tells on whose behalf. So only one of them can have a machine, and whoever comes later says why it waits.

Where Nodes stand for themselves, request and claim go with the Node that a remediation deletes. So the object first
notes the uid of that Node: while the Node has this uid, the request is made if it is missing; with another uid the
attempt is over, whoever recreated the Node, and no leader requests it a second time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pp_hostd.frozen import replace
from pp_hostd.leader.interfaces import Remedy
from pp_hostd.leader.node_memory import NextAction, NodeMemory, Stage, Term
from pp_hostd.leader.plan.memory import awaiting
from pp_hostd.leader.plan.valves import paused, unwanted
from pp_hostd.leader.plan.view import Electorates, View
from pp_hostd.leader.requests.remediation_objects.remediation import (
    SUCCEEDED,
    Phase,
    RemediationsSeen,
    Strategy,
    is_carried_out,
    machine_of,
)
from pp_hostd.leader.requests.remediation_objects.steps import HandToOwner, SetFinalizer, SetRemediated
from pp_hostd.leader.requests.remediation_objects.wanted import Wanted
from pp_hostd.leader.steps.machines import AskFor, Clear, DeleteMachine, DropClaim
from pp_hostd.model.condemnation import last_id
from pp_hostd.model.machine_details import Remediated
from pp_hostd.model.observed import Observed
from pp_hostd.model.record import Unreadable
from pp_hostd.model.settings import Settings

_NO_MACHINES = "in this cluster Nodes stand for themselves (api.machines)"
_AWAITED = {Phase.RUNNING: "a remediation's attempt is carried out", Phase.WAITING: "the node is well again after it"}


def remediations(
    settings: Settings,
    observed: Observed,
    term: Term,
    next_actions: Sequence[NextAction],
    remedies: Sequence[Remedy],
    now: float,
) -> Iterator[tuple[NextAction | None, NodeMemory]]:
    """Yields the next action for every object, and its memory; `next_actions` are those of the machines."""
    told: Mapping[str, NextAction] = {next_action.machine_key: next_action for next_action in next_actions}
    electorates = Electorates(observed.roster)
    objects, machines = sorted(observed.part(RemediationsSeen).seen.items()), settings.api.machines
    holders = {machine_of(observed, found, machines): key for key, found in reversed(objects) if found.holds_node}
    for key, found in objects:
        phase = found.phase if isinstance(found.phase, Phase) else Phase.NEW
        memory = awaiting(term.memories.get(key, NodeMemory()), _AWAITED.get(phase, ""), now)
        machine_key = machine_of(observed, found, machines)
        next_action, seen = told.get(machine_key), observed.machines.get(machine_key)
        if next_action is not None and next_action.stage is Stage.OVER_BUDGET:
            memory = replace(memory, awaited_at=now)
        name = found.node if machines == "node" else "" if seen is None else seen.machine.node or ""
        view = View(settings, observed, electorates, term, memory, name, machine_key, now)
        yield _next_action(Wanted(found, view, next_action, remedies, holders.get(machine_key, ""))), memory


def _next_action(wanted: Wanted) -> NextAction | None:
    found = wanted.remediation
    if found.deleting or not is_carried_out(found.kind, wanted.view.settings):
        return _cleaned_up(wanted) if found.finalized else None
    if isinstance(found.phase, Unreadable):
        return wanted.refuses(f"{found.phase}. Somebody has edited it: delete the object, and request it again")
    if found.phase is Phase.FAILED:
        return _let_go(wanted, "has failed")
    if found.phase is Phase.DELETING and wanted.machine is None:  # the object itself goes with its owner
        return _let_go(wanted, "its Machine was deleted")
    if _is_given_back(wanted):
        told = "recreating its Node" if wanted.told is None else wanted.told.sentence
        return wanted.waits(Stage.REMEDIATING, told)
    trouble = _trouble(wanted)
    if trouble:
        return wanted.refuses(trouble)
    if isinstance(found.strategy, Unreadable):
        return wanted.sets(Phase.FAILED, "BadSpec", f"{found.strategy}. Correct the template, and delete this object")
    by_phase = {Phase.NEW: _begun, Phase.RUNNING: _run, Phase.WAITING: _awaited, Phase.DELETING: _escalated}
    return by_phase[found.phase](wanted, found.strategy)


def _is_given_back(wanted: Wanted) -> bool:
    """Whether a leader has deleted the Node that this object is for, and is about to recreate it."""
    return wanted.is_node and wanted.machine is None and wanted.view.licence is not None


def _trouble(wanted: Wanted) -> str:
    """Why nothing can be done for this object; empty if none."""
    found, machine = wanted.remediation, wanted.machine
    if found.stranger:
        return (
            f"{found.stranger}, so nobody knows what its name means: a health check's object is owned by its Machine, "
            "or by a NodeHealthCheck and then names a Node. Delete the object, and have a health check make one"
        )
    if machine is None:
        called = f"Machine of Node {found.node}" if found.node else f"Machine {found.machine}"
        called = f"Node {found.node}" if found.node and wanted.is_node else called
        why = f": {_NO_MACHINES}" if wanted.is_node and not found.node else ""
        return f"there is no {called}{why}. Delete the object, if none will come"
    if found.machine_uid not in ("", machine.uid):
        return f"it was made for another Machine {found.machine} (uid {found.machine_uid}). Delete the object"
    off = "" if wanted.remedy is None else wanted.remedy.why_off(wanted.view.settings)
    return f"it wants a {found.kind.remedy}, and {off}" if off else ""


def _turn(wanted: Wanted) -> str:
    """Returns why this object waits: the owner's wish, or an earlier request for the machine; empty if none."""
    if wanted.is_ours:
        return ""
    wish = unwanted(wanted.view)
    if wish:
        return f"waits: {wish}"
    if wanted.rival:
        return f"waits its turn: {wanted.rival} has the machine remedied"
    if wanted.is_asked:
        return "waits its turn: the machine's annotation requests its remediation already"
    return ""


# Forward.


def _begun(wanted: Wanted, _strategy: Strategy) -> NextAction:
    turn = _turn(wanted)
    reason, sentence = ("", "") if wanted.remedy is None else wanted.remedy.unfit(wanted.view)
    if reason:
        return wanted.sets(Phase.FAILED, reason, sentence)
    if turn:
        return _noted(wanted, "WaitsItsTurn", turn) or wanted.waits(Stage.HELD, turn)
    return wanted.sets(Phase.RUNNING, "Running", "begins")


def _run(wanted: Wanted, strategy: Strategy) -> NextAction:
    found, machine, turn = wanted.remediation, wanted.machine, _turn(wanted)
    if not found.finalized:
        return wanted.does(Stage.REMEDIATING, SetFinalizer(found, present=True), "is being cleaned up")
    if wanted.was_replaced:
        return _attempted(wanted)
    if turn:
        return _noted(wanted, "WaitsItsTurn", turn) or wanted.waits(Stage.HELD, turn)
    if machine is not None and not wanted.is_ours:
        if wanted.is_node and not found.node_uid:
            return wanted.notes_node(machine)
        step = AskFor(machine.machine_key, machine.uid, machine.resource_version, wanted.claim)
        called = "Node" if wanted.is_node else "Machine"
        return wanted.does(Stage.REMEDIATING, step, f"requesting the remediation of {called} {machine.machine_key}")
    if not wanted.is_asked:
        return wanted.sets(Phase.WAITING, "Waiting", "workloads released; waiting until the node is well again")
    return _under_way(wanted, strategy)


def _attempted(wanted: Wanted) -> NextAction:
    """The Node whose remediation was requested is no more, and the request and its claim went with it."""
    view = wanted.view
    freed = view.licence is not None or (view.seen is not None and view.seen.freed is not None)
    why = "workloads released" if freed else "somebody else has replaced its Node"
    return wanted.sets(Phase.WAITING, "Waiting", f"{why}; waiting until the node is well again")


def _under_way(wanted: Wanted, strategy: Strategy) -> NextAction:
    """Passes on the sentence of the machine's own next action; refuses if that action does, or takes longer than this
    object allows."""
    again = _told_health_check(wanted, Remediated.AWAITED, "is remedied again")
    if again is not None:
        return again
    memory, told = wanted.view.memory, wanted.told
    sentence = "is carried out" if told is None else told.sentence
    late = strategy.off_seconds is not None and wanted.view.now >= memory.awaited_at + strategy.off_seconds
    if late:
        sentence = f"not carried out within {strategy.off_seconds:g} s: {sentence}"
    refused = late or (told is not None and told.refused)
    noted = _noted(wanted, "Refused" if refused else "Running", sentence)
    return noted or (wanted.refuses(sentence) if refused else wanted.waits(Stage.REMEDIATING, sentence))


def _noted(wanted: Wanted, reason: str, sentence: str) -> NextAction | None:
    """Have its condition say so, where there is one; once for each reason."""
    found = wanted.remediation
    if not found.kind.conditions or found.reason == reason or isinstance(found.phase, Unreadable):
        return None
    return wanted.sets(found.phase, reason, sentence)


def _awaited(wanted: Wanted, strategy: Strategy) -> NextAction | None:
    """Attempted: whoever made the object deletes it when the node is well. While it is not, it is tried again."""
    found, due_at = wanted.remediation, wanted.view.memory.awaited_at + strategy.timeout_seconds
    if _is_well(wanted):
        well = "the node is well again"
        return _noted(wanted, SUCCEEDED, well) or _let_go(wanted, well, Remediated.SUCCEEDED)
    if wanted.view.now < due_at:
        return wanted.waits(Stage.REMEDIATING, "waiting until the node is well again", due_at)
    if wanted.is_asked or wanted.view.backup_seen is not None:
        return wanted.waits(Stage.REMEDIATING, "the Node is not usable again after the last attempt")
    if wanted.is_ours:
        return _dropped(wanted, "the node is not well in time")
    if found.retry_count < strategy.retry_limit:
        told = f"the node is not well in time; trying again ({found.retry_count + 1} of {strategy.retry_limit})"
        return wanted.tries_again(told)
    told, kept = f"the node is not well after {found.retry_count + 1} attempts", _kept(wanted, strategy)
    if kept:
        return wanted.sets(Phase.FAILED, "NotEscalated", f"{told}, and {kept}")
    return wanted.sets(Phase.DELETING, "Escalated", told)


def _kept(wanted: Wanted, strategy: Strategy) -> str:
    """Why the machine is not left to its owner after the last attempt; empty if it is."""
    if wanted.is_node:
        return f"there is no Machine that an owner could replace: {_NO_MACHINES}"
    kept = wanted.about.kept if _deletes(wanted, strategy) else ""
    return f"its Machine is kept, since {kept}" if kept else ""


def _is_well(wanted: Wanted) -> bool:
    view = wanted.view
    given_back = view.backup_seen is None and not wanted.is_marked and not wanted.is_asked
    return given_back and view.seen is not None and view.seen.ready


def _deletes(wanted: Wanted, strategy: Strategy) -> bool:
    """OpenShift's owners don't know the condition by which others are told."""
    return strategy.deletes or wanted.view.settings.api.machines == "openshift"


def _escalated(wanted: Wanted, strategy: Strategy) -> NextAction | None:
    machine, about = wanted.machine, wanted.about
    if wanted.is_node:
        return wanted.sets(Phase.FAILED, "NotEscalated", f"all attempts have failed, and {_kept(wanted, strategy)}")
    if machine is None or about.deleting or about.escalated:
        return _let_go(wanted, "its owner deals with it now")
    held = paused(wanted.view)
    if held:
        return wanted.waits(Stage.HELD, held)
    told = "all attempts have failed"
    if not _deletes(wanted, strategy):
        step = HandToOwner(machine.machine_key, machine.uid, f"{wanted.remediation.key}: {told}")
        return wanted.does(Stage.REMEDIATING, step, f"{told}; leaving Machine {machine.machine_key} to its owner")
    delete = DeleteMachine(machine.machine_key, machine.uid, machine.resource_version)
    return wanted.does(Stage.REMEDIATING, delete, f"{told}; deleting Machine {machine.machine_key}")


# Back.


def _told_health_check(wanted: Wanted, word: Remediated, sentence: str) -> NextAction | None:
    """Have the condition say so by which Cluster API's health check has marked the Machine of this object."""
    machine, found = wanted.machine, wanted.remediation
    if machine is None or machine.uid != found.machine_uid or wanted.rival:
        return None
    if not any(map(word.replaces, wanted.about.external)):
        return None
    step = SetRemediated(machine.machine_key, machine.uid, word, f"{found.key}: {sentence}")
    return wanted.does(Stage.REMEDIATING, step, f"{sentence}; reporting that on Machine {machine.machine_key}")


def _let_go(wanted: Wanted, sentence: str, word: Remediated = Remediated.FAILED) -> NextAction | None:
    """Nothing of it is left on the machine but how it ended, and then nothing keeps the object."""
    told = _told_health_check(wanted, word, sentence)
    if told is not None:
        return told
    if wanted.is_ours:
        return _dropped(wanted, sentence)
    if wanted.remediation.finalized:
        return wanted.does(Stage.CLEARING, SetFinalizer(wanted.remediation, present=False), f"{sentence}: is done")
    return None


def _dropped(wanted: Wanted, sentence: str) -> NextAction:
    machine = wanted.machine
    if machine is None:
        return wanted.waits(Stage.CLEARING, sentence)
    step = DropClaim(machine.machine_key, machine.uid, machine.resource_version)
    return wanted.does(Stage.CLEARING, step, sentence)


def _cleaned_up(wanted: Wanted) -> NextAction | None:
    """It was deleted, perhaps since the node is well: what can still be stopped is, what was begun is given back."""
    view, machine = wanted.view, wanted.machine
    told = "was deleted" if wanted.remediation.deleting else "objects of its kind are not carried out any more"
    word = Remediated.SUCCEEDED if _is_well(wanted) else Remediated.WITHDRAWN
    if machine is None or not wanted.is_ours:
        if wanted.is_node and wanted.remediation.node_uid and view.licence is not None:
            return wanted.waits(Stage.CLEARING, f"{told}; waiting until its Node is usable again")
        return _let_go(wanted, told, word)
    if isinstance(machine.condemnation, Unreadable):
        return wanted.refuses(f"{told}, and its Machine's {machine.condemnation}")
    if wanted.is_asked and not any(remedy.has_freed(view) for remedy in wanted.remedies):
        step = Clear(machine.machine_key, machine.uid, machine.resource_version, last_id(machine.condemnation))
        return wanted.does(Stage.CLEARING, step, f"{told}: the remediation is no longer requested")
    if wanted.is_under_way:
        return wanted.waits(Stage.CLEARING, f"{told}; waiting until its Node is usable again")
    return _let_go(wanted, told, word)
