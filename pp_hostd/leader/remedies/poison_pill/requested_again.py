"""A request that is made before a freed host is back is about a death that was dealt with: it begins nothing.

Health checks request again as soon as a Node is missing or not Ready. A note on the Node tells every leader which
request was made so early, from one that is made once the host is back.
"""

from __future__ import annotations

from pp_hostd.leader.node_memory import NextAction, Stage
from pp_hostd.leader.plan.view import View
from pp_hostd.leader.steps.machines import Clear
from pp_hostd.leader.steps.nodes import NoteRequest
from pp_hostd.model.condemnation import Requested
from pp_hostd.model.machine import Machine
from pp_hostd.model.observed import NodeSeen


def held_until_back(view: View, machine: Machine, seen: NodeSeen) -> NextAction | None:
    """Why this request begins nothing. None if it is carried out: it was made later, the host has been back for long
    without a Ready Node, or a person has confirmed that it is dead."""
    if view.memory.fell_back or seen.confirmed is not None or not (seen.away or seen.requested_again):
        return None
    if view.is_claimed:
        return (
            _clear(view, machine, "its workloads are released already, and its host is not back") if seen.away else None
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
    return _clear(view, machine, "its host is back, and its Node Ready; earlier requests are over")


def awaited_return(view: View) -> str:
    """What such a request waits for; empty if there is none."""
    machine, seen = view.machine, view.seen
    if machine is None or seen is None or not (seen.requested_again and isinstance(machine.condemnation, Requested)):
        return ""
    return "the host is back" if seen.away else "the Node of a host that is back is Ready"


def _clear(view: View, machine: Machine, sentence: str) -> NextAction | None:
    if not isinstance(machine.condemnation, Requested):
        return None
    step = Clear(view.subject, machine.uid, machine.resource_version, machine.condemnation.last_id)
    return view.does(Stage.CLEARING, step, f"{sentence}; removing the request from its machine")
