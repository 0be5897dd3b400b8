"""Methods that another remedy carries out: the NodeFence requests it, as remediation objects do, and waits."""

from __future__ import annotations

from pp_hostd.frozen import replace
from pp_hostd.leader.node_memory import NextAction, Stage
from pp_hostd.leader.plan.view import View
from pp_hostd.leader.remedies.node_fence.fence import MethodRun, NodeFence, Outcome
from pp_hostd.leader.remedies.node_fence.methods import BuiltIn
from pp_hostd.leader.steps.machines import AskFor, DropClaim
from pp_hostd.model.condemnation import NotRequested, last_id
from pp_hostd.model.machine_details import Claim
from pp_hostd.model.observed import NodeSeen

_FLOWS = {BuiltIn.POWER_CYCLE: "power-cycle", BuiltIn.POISON_PILL: "poison-pill", BuiltIn.RESTART_INSTANCE: ""}
OTHER_REMEDIES = frozenset(each.value for each in _FLOWS)
"""The names of these methods."""


def has_claimed(view: View, fence: NodeFence) -> bool:
    """Whether the machine bears this NodeFence's claim."""
    claim = None if view.machine_seen is None else view.machine_seen.host.claim
    return isinstance(claim, Claim) and claim.uid == fence.uid


def delegates(fence: NodeFence) -> bool:
    """Whether the method that runs is another remedy's to carry out, whoever has requested that one."""
    last = fence.progress.methods[-1] if fence.progress.methods else None
    return last is not None and last.outcome is Outcome.RUNNING and not last.action and last.name in OTHER_REMEDIES


def delegated(
    view: View, seen: NodeSeen, fence: NodeFence, what: BuiltIn, running: MethodRun, told: str
) -> NextAction | MethodRun | str:
    """Returns the next action; the method with a note to store first; or, once the other remedy is done, why it has
    failed, empty if it has not."""
    machine = view.machine
    if machine is None:
        return "its machine is not known, so no other remedy can be requested for it"
    if not isinstance(machine.condemnation, NotRequested):
        return view.waits(Stage.FENCING, f"{told}: another remediation of it is requested")
    newest = last_id(machine.condemnation)
    if not running.job:
        return replace(running, job=f"{seen.node.uid}/{newest}")
    uid, _, before = running.job.partition("/")
    if uid == seen.node.uid and before == str(newest):
        claim = Claim(fence.key, fence.uid, _FLOWS[what])
        step = AskFor(machine.machine_key, machine.uid, machine.resource_version, claim)
        return view.does(Stage.FENCING, step, f"{told}: requesting it")
    if has_claimed(view, fence):
        drop = DropClaim(machine.machine_key, machine.uid, machine.resource_version)
        return view.does(Stage.FENCING, drop, f"{told}: it is done")
    return ""
