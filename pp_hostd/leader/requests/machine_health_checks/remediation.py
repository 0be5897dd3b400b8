"""How one unhealthy Machine is remediated, and what holds that back: of a deletion nobody can think better."""

from __future__ import annotations

from typing import Union

from pp_hostd.frozen import frozen
from pp_hostd.leader.facts.nodes import READY
from pp_hostd.leader.plan.valves import most_of, paused, unwanted
from pp_hostd.leader.plan.view import View
from pp_hostd.leader.requests.health_checks.judge import Opinion
from pp_hostd.leader.requests.machine_health_checks.check import MachineHealthCheck
from pp_hostd.leader.requests.machine_health_checks.facts import FAILED, MachineFacts, MachineHealthSeen
from pp_hostd.leader.requests.machine_health_checks.judge import Remediations
from pp_hostd.leader.requests.machine_health_checks.rules import Rules
from pp_hostd.leader.requests.machine_health_checks.steps import (
    MakeObject,
    Notice,
    RemoveMachine,
    RequestByAnnotation,
    Tell,
)


@frozen
class ToOwner:
    """Its owner is told, by conditions, to replace it."""


@frozen
class Held:
    """Why it is not remediated yet. `refused`: that needs an operator."""

    sentence: str
    due_at: float | None = None
    refused: bool = False


Course = Union[MakeObject, RequestByAnnotation, RemoveMachine, Tell, ToOwner, Held]


@frozen
class Counts:
    """Of all health checks: the unhealthy Machines."""

    unhealthy: int


def course(
    check: MachineHealthCheck, rules: Rules, machine: MachineFacts, said: Opinion, view: View, counts: Counts
) -> Course | None:
    """None if nothing is left to do, since it is being deleted. One whose remediation is requested is not unhealthy."""
    requests = rules.template is not None or (rules.external and machine.phase != FAILED)
    wish = unwanted(view)
    if requests and wish:
        return Held(wish)
    if rules.template is not None:
        return MakeObject(check, rules.template, machine, said.sentence)
    if requests:
        return RequestByAnnotation(check, machine, said.sentence)
    if machine.deleting:
        return None
    if check.spelling.is_cluster_api:
        return _held_by_limits(view, counts) or ToOwner()
    return _deletion(check, machine, said, view, counts)


def _deletion(check: MachineHealthCheck, machine: MachineFacts, said: Opinion, view: View, counts: Counts) -> Course:
    if not machine.owned:
        told = f"{check.key} finds it unhealthy, but no controller owns it, so it is not deleted: {said.sentence}"
        return Tell(check, (Notice("SkippedNoController", told),), machine)
    held = _held_by_limits(view, counts)
    if held is not None:
        return held
    return RemoveMachine(check, machine, said.sentence)


def _held_by_limits(view: View, counts: Counts) -> Held | None:
    """The leader's own limits, for what is no request that it would limit later."""
    settings = view.settings.leader
    settled_at = view.term.began_at + settings.start_grace_seconds
    if view.now < settled_at:
        return Held("this leader has just begun, and its view may still settle", settled_at)
    wish = paused(view)
    if wish:
        return Held(wish)
    most = most_of(settings.max_unhealthy, len(view.observed.nodes), 1)
    silent = len(view.observed.not_ready)
    if max(counts.unhealthy, silent) > most:
        each = f"{counts.unhealthy} Machines are unhealthy, and {silent} nodes do not respond"
        return Held(f"{each}: leader.max_unhealthy allows {most}")
    return None


def quorum_trouble(machine: MachineFacts, seen: MachineHealthSeen, remediations: Remediations) -> str:
    """Why this control-plane Machine must not be deleted: never a second one at a time, and never against the quorum.
    Empty if it may be, or is no control-plane Machine."""
    if not machine.control_plane:
        return ""
    all_of_them = [each for each in seen.machines.values() if each.control_plane]
    others = [each for each in all_of_them if each.key != machine.key and not _is_up(each, seen, remediations)]
    if others:
        return f"control-plane Machine {others[0].key} is not up either, and one at a time is deleted at most"
    if (len(all_of_them) - 1) // 2 < 1:
        return f"one more of {len(all_of_them)} control-plane Machines would leave no quorum"
    return ""


def _is_up(machine: MachineFacts, seen: MachineHealthSeen, remediations: Remediations) -> bool:
    node = seen.nodes.get(machine.node)
    ready = None if node is None else node.condition(READY)
    is_well = ready is not None and ready.status == "True"
    return is_well and not machine.deleting and not remediations.has(machine)
