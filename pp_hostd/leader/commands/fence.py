"""`pp-leader fence list`, `show`, `retry` and `abort`: how far the fencing of nodes has come, and a person's word."""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any

from pp_hostd.errors import UserError
from pp_hostd.kube.client import Json
from pp_hostd.kube.resources import NODE_FENCES
from pp_hostd.leader.commands.administrator import Administrator
from pp_hostd.leader.commands.fence_plan import FencePlan, read_fence_plan
from pp_hostd.leader.commands.status import read_leadership
from pp_hostd.leader.leadership import Leadership, due_text
from pp_hostd.leader.remedies.node_fence.automaton import begun_again
from pp_hostd.leader.remedies.node_fence.fence import NodeFence, State, fence_name, parse_fence, rendered
from pp_hostd.model.moment import render_moment
from pp_hostd.model.record import NAME, Unreadable
from pp_hostd.service.output import confirm, filled, now, say, say_json, table, who

NONE = "No node is being fenced: there is no NodeFence."
NOT_INSTALLED = "This cluster has no NodeFences: their kind is not installed"
INSTALL = (
    "To install it: pp-leader install --flows node-fence (name the other flows that you use as well: a flow that is "
    "left out loses its rights)"
)


# The list.


def list_fences(arguments: Namespace) -> int:
    with closing(Administrator(arguments.kubeconfig)) as administrator:
        installed = administrator.serves(NODE_FENCES)
        found = [(each, parse_fence(each)) for each in administrator.list(NODE_FENCES)]
    if arguments.json:
        fences = [_as_json(body["metadata"]["name"], fence) for body, fence in found]
        say_json({"installed": installed, "fences": fences})
    elif found:
        heads = ["NODE", "STATE", "STEP", "STATUS", "RESTARTS", "FREED", "SINCE", "REASON"]
        say(table(heads, [_row(*each) for each in found]))
    else:
        say(filled(NONE if installed else f"{NOT_INSTALLED}. {INSTALL}."))
    return 0


def _as_json(name: str, fence: NodeFence | Unreadable) -> dict[str, Any]:
    if isinstance(fence, Unreadable):
        return {"name": name, "unreadable": str(fence)}
    progress = fence.progress
    return {
        "name": name,
        "node": fence.node,
        "state": progress.state.value,
        "step": progress.step.value,
        "status": progress.status.value,
        "restarts": progress.restarts,
        "freed": progress.cleaned,
        "gave_up": progress.gave_up,
        "refuted": list(progress.refuted),
        "since": _since(fence) or None,
        "cause": str(fence.cause),
        "reason": progress.reason,
    }


def _row(body: Json, fence: NodeFence | Unreadable) -> list[str]:
    if isinstance(fence, Unreadable):
        return [str(body.get("node") or body["metadata"]["name"]), "-", "-", "-", "-", "-", "-", str(fence)]
    progress = fence.progress
    words = [progress.state.value, progress.step.value, progress.status.value, str(progress.restarts)]
    freed = "yes" if progress.cleaned else "no"
    return [fence.node, *words, freed, _age(fence), f"{'gave up: ' * progress.gave_up}{progress.reason}"]


def _since(fence: NodeFence) -> str:
    """The moment at which the present status began; empty if that is not known."""
    seconds = fence.progress.started_wallclock
    return "" if math.isinf(seconds) else render_moment(datetime.fromtimestamp(seconds, timezone.utc))


def _age(fence: NodeFence) -> str:
    """As short as kubectl has it."""
    seconds = now().timestamp() - fence.progress.started_wallclock
    if math.isinf(seconds):
        return "-"
    size, unit = next((each for each in ((86400, "d"), (3600, "h"), (60, "m")) if seconds >= each[0]), (1, "s"))
    return f"{max(0, int(seconds / size))}{unit}"


# One node.


def show(arguments: Namespace) -> int:
    name = arguments.node
    with closing(Administrator(arguments.kubeconfig)) as administrator:
        fence = _find(administrator, name)
        plan = read_fence_plan(administrator, name, must_exist=fence is None)
        leadership = read_leadership(administrator, now())
    if arguments.json:
        flows = plan.as_json() if isinstance(plan, FencePlan) else None
        say_json({"node": name, "fence": _in_full(name, fence, leadership), "plan": flows})
        return 0
    for sentence in _flow(name, fence, leadership):
        say(sentence)
    say("")
    for line in plan.lines() if isinstance(plan, FencePlan) else [filled(plan)]:
        say(line)
    return 0


def _in_full(name: str, fence: NodeFence | Unreadable | None, leadership: Leadership) -> dict[str, Any] | None:
    if fence is None:
        return None
    told = _as_json(fence_name(name), fence)
    if isinstance(fence, Unreadable):
        return told
    conditions = [dict(zip(("type", "status", "reason", "message"), each)) for each in fence.progress.conditions]
    methods = [{**asdict(each), "outcome": each.outcome.value} for each in fence.progress.methods]
    return {**told, "conditions": conditions, "methods": methods, "waits": _waits(fence, leadership)}


def _flow(name: str, fence: NodeFence | Unreadable | None, leadership: Leadership) -> Iterator[str]:
    if fence is None:
        yield filled(f"{name} is not being fenced: it has no NodeFence.")
        return
    if isinstance(fence, Unreadable):
        hint = f"Correct it, or delete it: pp-leader fence abort {name}"
        yield filled(f"NodeFence {fence_name(name)}: {fence}. Nothing is done for its node. {hint}.")
        return
    progress = fence.progress
    since = _since(fence) and f" since {_since(fence)}"
    step = f"{progress.step.value} {progress.status.value}"
    yield filled(f"{fence.key}: {progress.state.value} ({step}){since}, for {fence.cause}.")
    yield filled(f"Reason: {progress.reason or 'none is given'}.")
    freed = "Its workloads were freed." if progress.cleaned else "Its workloads were not freed."
    yield filled(f"The flow began again {progress.restarts} times. {freed}")
    if progress.refuted:
        told = f"Not believed any more: {', '.join(progress.refuted)}. The host was heard after it had been called dead"
        yield filled(f"{told}. Correct that, then: pp-leader fence retry {name}.")
    for of_type, value, reason, message in progress.conditions:
        yield filled(f"{of_type}={value} ({reason}): {message}.", indent=2)
    yield filled(_waits(fence, leadership))
    if progress.methods:
        rows = [
            [each.name, each.action or "-", each.outcome.value, str(each.tried), each.job or "-", each.message]
            for each in progress.methods
        ]
        yield "\n" + table(["METHOD", "ACTION", "OUTCOME", "TRIED", "JOB", "MESSAGE"], rows)


def _waits(fence: NodeFence, leadership: Leadership) -> str:
    if fence.progress.gave_up:
        retry, abort = (f"pp-leader fence {word} {fence.node}" for word in ("retry", "abort"))
        return f"It waits for a person: the cordon stays until then. To begin again: {retry}. To end it: {abort}."
    if not leadership.leads:
        return f"Nothing is done about it: {leadership.sentence()}."
    course = leadership.course(fence.node)
    if course is None:
        return f"{leadership.host} leads, and has said nothing about it yet."
    due = due_text(course, now())
    return f"{leadership.host} leads: {course.sentence}{due and f' ({due})'}."


def _find(administrator: Administrator, node: str) -> NodeFence | Unreadable | None:
    found = administrator.get(NODE_FENCES, fence_name(node)) if NAME.pattern.fullmatch(node) else None
    return None if found is None else parse_fence(found)


def _needed(administrator: Administrator, node: str) -> NodeFence | Unreadable:
    """The NodeFence, for a command that can't do without."""
    found = _find(administrator, node)
    if found is None and not administrator.serves(NODE_FENCES):
        raise UserError(NOT_INSTALLED[0].lower() + NOT_INSTALLED[1:], f"{INSTALL}.")
    if found is None:
        raise UserError(f"{node} is not being fenced: it has no NodeFence", "See: pp-leader fence list")
    return found


# A person's word.


def retry(arguments: Namespace) -> int:
    name, person = arguments.node, who(arguments.who)
    with closing(Administrator(arguments.kubeconfig)) as administrator:
        _needed(administrator, name)
        if not administrator.change(NODE_FENCES, fence_name(name), None, lambda body: _retried(body, person)):
            raise UserError(f"nothing was changed: the NodeFence of {name} is gone", "See: pp-leader fence list")
        leadership = read_leadership(administrator, now())
    said = [f"The fencing of {name} begins again: the leader runs its methods from the first one on."]
    said += [] if leadership.leads else [f"Now {leadership.sentence()}."]
    say(filled(" ".join([*said, f"To follow it: pp-leader fence show {name}"])))
    return 0


def _retried(body: Json, person: str) -> Json:
    fence, see = parse_fence(body), f"See: pp-leader fence show {body.get('node')}"
    if isinstance(fence, Unreadable):
        raise UserError(f"nothing was changed: {fence}", see)
    progress = fence.progress
    if progress.state is not State.ERROR:
        told = f"is {progress.state.value} ({progress.step.value} {progress.status.value})"
        raise UserError(f"nothing was changed: the fencing of {fence.node} has not failed, it {told}", see)
    moment = render_moment(now())
    return rendered(begun_again(progress, f"begun again by {person}"), body, moment, moment)


ABORTED = (
    "This ends the fencing of {name}. The leader takes its cordon and its marks off the Node, and frees nothing more: "
    "workloads that are not freed yet stay where they are. A host that is off stays off, and a port that is off stays "
    "off. Whatever has begun the fencing may begin it again."
)


def abort(arguments: Namespace) -> int:
    name = arguments.node
    with closing(Administrator(arguments.kubeconfig)) as administrator:
        _needed(administrator, name)
        uid = (administrator.get(NODE_FENCES, fence_name(name)) or {}).get("metadata", {}).get("uid", "")
        say(filled(ABORTED.format(name=name)))
        confirm(name, yes=arguments.yes)
        if not administrator.delete(NODE_FENCES, fence_name(name), uid=uid):
            raise UserError(f"nothing was deleted: that NodeFence of {name} is gone", "See: pp-leader fence list")
        leadership = read_leadership(administrator, now())
    then = "The leader takes its marks off the Node now." if leadership.leads else f"Now {leadership.sentence()}."
    say(filled(f"Deleted. {then} See: pp-leader explain {name}"))
    return 0
