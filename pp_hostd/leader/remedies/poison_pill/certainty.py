"""When a condemned host is certainly dead: acknowledgements, the wait or evidence, and the check at the end.

Rules 10, 11 and 12. Each course that is not the freeing itself says what is still missing.
"""

from __future__ import annotations

from collections.abc import Container
from itertools import chain, islice
from typing import NamedTuple

from pp_hostd.frozen import replace
from pp_hostd.leader.node_memory import NextAction, Stage
from pp_hostd.leader.plan.freeing import deleted
from pp_hostd.leader.plan.view import Evidence, View
from pp_hostd.leader.remedies.poison_pill.memory import PillMemory, overtaken, wait_seconds
from pp_hostd.leader.remedies.poison_pill.steps import AskPeers
from pp_hostd.leader.steps.machines import Clear, Inspect
from pp_hostd.leader.steps.nodes import MarkFreeing
from pp_hostd.leader.steps.port import Inspection
from pp_hostd.model.backup import Backup
from pp_hostd.model.condemnation import Confirmation
from pp_hostd.model.moment import render_moment
from pp_hostd.model.node import is_of_this_boot
from pp_hostd.model.observed import NodeSeen
from pp_hostd.model.promise import (
    Armed,
    Committed,
    GateClosed,
    GateKind,
    WatchdogKind,
    Withdrawn,
    promise_in,
)
from pp_hostd.model.record import Unreadable
from pp_hostd.model.roster import Electorate

KUBELET_SILENT_SECONDS = 20.0
"""Rule 6: two renewal periods of a kubelet's Lease, which it renews every 10 s."""
LOOK_AGAIN_SECONDS = 1.0
"""Between two inspections, while the watch has not shown yet what one of them found."""
KUBELET_LOOK_SECONDS = 5.0
_KUBELET_BACK = "its kubelet is back under the taint, and has rejected its pods itself"
ASKED_AT_ONCE = 2
"""So many times the acknowledgements that are missing, for some peers may be silent."""
MOST_ASKED = 500
"""In one round, so that no plan becomes slow by it."""


OTHER_BOOT = "its kubelet has reported another boot than the one promised"


class Trouble(NamedTuple):
    """Why no wait for a host can be computed: a reason in one word, as conditions have it, and a sentence."""

    reason: str
    sentence: str


def not_enrolled(view: View) -> str:
    """Returns a sentence with what to do about it; empty if the node is enrolled."""
    if view.name in view.observed.enrolled:
        return ""
    unknown = "the node is not enrolled, so the leader can't know when it is dead"
    return f"{unknown}. To enrol it: pp-leader enroll {view.name}"


def _promise_trouble(view: View, promise: Armed, machine_uid: str) -> Trouble | None:
    """Why no wait can be computed from this promise; None if one can."""
    if promise.machine_uid != machine_uid:
        told = f"its promise is about another machine (uid {promise.machine_uid}, not {machine_uid})"
        return Trouble("OtherMachine", told)
    if promise.watchdog is WatchdogKind.SOFTWARE_ONLY and not view.settings.leader.accept_software_only:
        return Trouble("NoWatchdog", "it has no watchdog, and leader.accept_software_only is false")
    if promise.watchdog is WatchdogKind.SOFTDOG and not view.settings.leader.accept_softdog:
        told = "its watchdog is softdog, which a hung kernel stops, and leader.accept_softdog is false"
        return Trouble("Softdog", told)
    electorate = view.electorates.of(promise)
    if isinstance(electorate, Unreadable):
        return Trouble("UnknownRoster", str(electorate))
    if view.electorates.member(electorate, view.name) is not None:
        return None
    return Trouble("NotListed", f"it has promised version {electorate.version} of the roster, which does not list it")


def unbound(view: View, seen: NodeSeen, machine_uid: str) -> Trouble | None:
    """Why the host that states this is not bound by a promise that the leader can wait for; None if it is."""
    record = seen.node.agent
    promise = promise_in(record)
    if promise is not None:
        return _promise_trouble(view, promise, machine_uid)
    if isinstance(record, Withdrawn):
        order = record.maintenance
        if order is None:
            return Trouble("Withdrawn", "its agent has withdrawn its promise")
        told = f"it is in maintenance by {order.who} until {render_moment(order.until_wallclock)}: {order.why}"
        return Trouble("Maintenance", told)
    if isinstance(record, GateClosed):
        return Trouble("Booting", "its gate is closed, and its agent has promised nothing in this boot yet")
    return (
        Trouble("NoPromise", "its agent has promised nothing") if record is None else Trouble("Unreadable", str(record))
    )


def refusal(view: View, seen: NodeSeen, machine_uid: str) -> str:
    """Why a host that states this can't be fenced by waiting, with what else can fence it; empty if it can."""
    record = seen.node.agent
    if _confirmed(seen) or isinstance(record, GateClosed) or (record is None and isinstance(seen.freed, int)):
        return ""
    trouble = unbound(view, seen, machine_uid)
    return "" if trouble is None else _or_a_word(trouble.sentence, seen.node.name)


def _or_a_word(trouble: str, name: str) -> str:
    return f"{trouble}. If the host is certainly off: pp-leader confirm-dead {name}"


def certain(view: View) -> NextAction:
    """The next step towards freeing, or the freeing itself."""
    memory = view.memory
    inspection, seen = memory.inspection, view.seen
    if inspection is None:
        return _inspect(view, "reading the host's promise")
    found, machine = inspection.node, inspection.machine
    if seen is None or found is None or machine is None:
        return look_again(view, inspection, "the Node or its machine was not there")
    if isinstance(view.evidence, str):
        return look_again(view, inspection, view.evidence)
    if found.node.agent != seen.node.agent or found.confirmed != seen.confirmed:
        return look_again(view, inspection, "the host has stated something new")
    evidence = view.evidence
    trouble = "" if evidence else refusal(view, found, machine.uid) or _boot_trouble(found)
    if trouble:
        return view.refuses(f"condemned, and not freed: {trouble}")
    evidence = evidence or _evidence(view, inspection, found)
    if evidence is not None:
        return _on_evidence(view, inspection, found, evidence)
    if isinstance(found.node.agent, (Armed, Committed)):
        return _on_promise(view, inspection, found)
    return _on_nothing(view, inspection, found)


def _boot_trouble(found: NodeSeen) -> str:
    """A promise ends with its boot: workloads may run in another one, which its agent never reported."""
    if not isinstance(found.node.agent, (Armed, Committed)) or _confirmed(found) or not overtaken(found.node):
        return ""
    return _or_a_word(OTHER_BOOT, found.node.name)


def _inspect(view: View, sentence: str, stage: Stage = Stage.ACKNOWLEDGING) -> NextAction:
    return view.does(stage, Inspect(view.machine_key, view.name, view.looks), sentence)


def look_again(view: View, inspection: Inspection, sentence: str) -> NextAction:
    due_at = inspection.began_at + LOOK_AGAIN_SECONDS
    if view.now < due_at:
        return view.waits(Stage.CHECKING, sentence, due_at)
    return _inspect(view, sentence, Stage.CHECKING)


def _evidence(view: View, inspection: Inspection, found: NodeSeen) -> Evidence | None:
    pill, record, at_once = view.memory.part(PillMemory), found.node.agent, inspection.began_at
    if _confirmed(found) and isinstance(found.confirmed, Confirmation):
        return Evidence(f"{found.confirmed.who} has confirmed that it is dead", at_once, held=True)
    if record is None and inspection.kubelet_renewed == "":  # its Lease went with the Node before this one
        return Evidence("it was freed before, and the host has not come back since", at_once, held=True)
    if isinstance(record, GateClosed) and not overtaken(found.node) and _nothing_started(record, pill.promise):
        return Evidence("it has booted again, and its gate is closed", at_once, held=record.gate is GateKind.HOLD)
    if isinstance(record, Committed) and pill.committed_at is not None:
        seconds = record.promise.watchdog_timeout_seconds + view.settings.leader.margin_seconds
        held = record.promise.gate is GateKind.HOLD
        return Evidence("it has decided to reset", pill.committed_at + seconds, held)
    return None


def _nothing_started(closed: GateClosed, promise: Armed | None) -> bool:
    """A taint keeps nothing from starting in a boot that was there before it: the promise of another boot must have
    been seen under this condemnation, and so under the taint."""
    return closed.gate is GateKind.HOLD if promise is None else closed.boot != promise.boot


def _confirmed(seen: NodeSeen) -> bool:
    """Whether a person's word about it stands."""
    return isinstance(seen.confirmed, Confirmation) and is_of_this_boot(seen.confirmed, seen.node)


def _on_evidence(view: View, inspection: Inspection, found: NodeSeen, evidence: Evidence) -> NextAction:
    if view.now < evidence.act_at:
        return view.waits(Stage.WAITING, f"{evidence.sentence}; its watchdog resets it at the latest", evidence.act_at)
    if inspection.began_at < evidence.act_at:
        return _inspect(view, f"{evidence.sentence}; checking once more", Stage.CHECKING)
    if not evidence.held:
        kubelet = _kubelet(view, inspection)
        if kubelet is not None:
            return kubelet
    return _free(view, inspection, found, evidence.sentence)


def _on_promise(view: View, inspection: Inspection, found: NodeSeen) -> NextAction:
    pill = view.memory.part(PillMemory)
    promise = pill.promise
    electorate = None if promise is None else view.electorates.of(promise)
    if promise is None or electorate is None or isinstance(electorate, Unreadable):  # refused before
        return view.refuses("condemned, and not freed: its promise can't be read")
    if pill.t0_at is None:
        return _ask(view, electorate)
    seconds = wait_seconds(view.settings, promise)
    over_at = pill.t0_at + seconds
    if view.now < over_at:
        told = f"at least half of {electorate.n} nodes know; it is dead {seconds:g} s after they did, at the latest"
        return view.waits(Stage.WAITING, told, over_at)
    if 2 * len(pill.again) < electorate.n:
        return _ask_again(view, electorate)
    if inspection.began_at < over_at:
        return _inspect(view, "the wait is over; checking once more before anything is freed", Stage.CHECKING)
    if promise.gate is not GateKind.HOLD:
        kubelet = _kubelet(view, inspection)
        if kubelet is not None:
            return kubelet
    return _free(view, inspection, found, f"it had {seconds:g} s to reset itself")


def _on_nothing(view: View, inspection: Inspection, found: NodeSeen) -> NextAction:
    """No promise binds the host, and yet something may have been started on it: only its kubelet may still help."""
    if view.memory.part(PillMemory).kubelet_back:
        return _lift(view, _KUBELET_BACK)
    trouble = "its kubelet was seen after it was freed, and its agent has promised nothing"
    if found.node.agent is not None:
        trouble = "its gate is closed, but something may have been started before"
    told, due_at = _or_a_word(trouble, view.name), inspection.ended_at + KUBELET_LOOK_SECONDS
    next_action = view.waits(Stage.HELD, told, due_at) if view.now < due_at else _inspect(view, told, Stage.HELD)
    return replace(next_action, refused=True)


def _ask(view: View, electorate: Electorate) -> NextAction:
    pill = view.memory.part(PillMemory)
    missing = (electorate.n + 1) // 2 - len(pill.tokens)
    told = f"{len(pill.tokens)} of {electorate.n} nodes have acknowledged, and {missing} more must"
    if electorate.n == 1 and electorate.names == (view.name,):
        return view.refuses(f"{told}; no more nodes are left to ask")
    most = min(ASKED_AT_ONCE * missing, MOST_ASKED)
    return _asks(view, Stage.ACKNOWLEDGING, electorate, view.electorates.names(electorate), pill.tokens, most, told)


def _ask_again(view: View, electorate: Electorate) -> NextAction:
    pill = view.memory.part(PillMemory)
    told = f"the wait is over; asking the same nodes again ({len(pill.again)} of {electorate.n} answered, half must)"
    return _asks(view, Stage.CHECKING, electorate, tuple(pill.tokens), pill.again, MOST_ASKED, told)


def _asks(
    view: View,
    stage: Stage,
    electorate: Electorate,
    names: tuple[str, ...],
    known: Container[str],
    most: int,
    told: str,
) -> NextAction:
    """Ask so many of them that are not yet known, each in turn: some may be silent for ever."""
    pill = view.memory.part(PillMemory)
    told = "; ".join([told, *(f"{name}: {why}" for name, why in islice(pill.silent.items(), 3))])
    if view.now < pill.ask_not_before_at:
        return view.waits(stage, told, pill.ask_not_before_at)
    turn = pill.asked % len(names)
    in_turn = chain(islice(names, turn, None), islice(names, turn))
    chosen = islice((name for name in in_turn if name != view.name and name not in known), most)
    found = (view.electorates.member(electorate, name) for name in chosen)
    members = tuple(member for member in found if member is not None)
    return view.does(stage, AskPeers(view.machine_key, "" if view.machine is None else view.machine.uid, members), told)


def _kubelet(view: View, inspection: Inspection) -> NextAction | None:
    """Rule 6: a kubelet that nothing holds must have been silent; one that is back under the taint has rejected its
    pods itself, and then only the condemnation is lifted."""
    pill = view.memory.part(PillMemory)
    silent_at = (inspection.ended_at if pill.kubelet_at is None else pill.kubelet_at) + KUBELET_SILENT_SECONDS
    if inspection.began_at >= silent_at:
        return None
    if view.memory.part(PillMemory).kubelet_back:
        return _lift(view, _KUBELET_BACK)
    told = "no gate holds its kubelet, so the kubelet must have been silent for two renewal periods"
    due_at = min(silent_at, inspection.ended_at + KUBELET_LOOK_SECONDS)
    return view.waits(Stage.WAITING, told, due_at) if view.now < due_at else _inspect(view, told, Stage.WAITING)


def _lift(view: View, sentence: str) -> NextAction:
    machine, condemned = view.machine, view.condemned
    if machine is None or condemned is None:
        return view.waits(Stage.CLEARING, sentence)
    step = Clear(view.machine_key, machine.uid, machine.resource_version, condemned.id)
    return view.does(Stage.CLEARING, step, sentence)


def _free(view: View, inspection: Inspection, found: NodeSeen, why: str) -> NextAction:
    """Rule 12: the condemnation stood all the time, by the watch and by a read, and both saw the same machine
    and Node: also what was weighed by the watch alone (a pause, the taint) is as it was read."""
    if inspection.machine != view.machine or view.condemned is None or found != view.seen:
        return look_again(view, inspection, "the machine or its Node has changed since the last check")
    node, case_id = found.node, view.memory.part(PillMemory).id or 0
    if view.settings.leader.strategy != "node-delete":
        out_of_service = view.settings.leader.strategy == "out-of-service"
        mark = MarkFreeing(node.name, node.uid, node.resource_version, case_id, out_of_service)
        return view.does(Stage.FREEING, mark, f"{why}; freeing its workloads")
    backup = inspection.backup
    return deleted(view, found, replace(backup, id=case_id) if isinstance(backup, Backup) else backup, why)
