"""The next step for a node that has a NodeFence: a transition of its automaton, a method, or the freeing between two.

Every state is derived from the NodeFence, the Node and this term's own memory, so any step can be repeated, by any
leader.
"""

from __future__ import annotations

from pp_hostd.frozen import replace
from pp_hostd.leader.node_memory import NextAction, Stage
from pp_hostd.leader.plan.valves import Valves, handed_over, in_maintenance, paused
from pp_hostd.leader.plan.view import View
from pp_hostd.leader.remedies.node_fence.agent_jobs import by_executor
from pp_hostd.leader.remedies.node_fence.automaton import Move, Situation, Wait, Work, next_move
from pp_hostd.leader.remedies.node_fence.configuration import ConfigurationsSeen, Fences, RemedyRules, Threshold
from pp_hostd.leader.remedies.node_fence.delegation import OTHER_REMEDIES
from pp_hostd.leader.remedies.node_fence.evidence import LOOK_SECONDS, contradiction, freed
from pp_hostd.leader.remedies.node_fence.fence import FENCED, NodeFence, Outcome, Progress, State, Status, Step
from pp_hostd.leader.remedies.node_fence.flow import Flow, at_work, is_well, still_runs
from pp_hostd.leader.remedies.node_fence.memory import Proof
from pp_hostd.leader.remedies.node_fence.methods import BuiltInMethod, methods_of
from pp_hostd.leader.remedies.node_fence.running import next_of_method
from pp_hostd.leader.remedies.node_fence.seen import DumpsSeen, FencesSeen
from pp_hostd.leader.remedies.node_fence.steps import BeginFence, DeleteFence, LookAtNode, NoteBoot, WriteFence
from pp_hostd.leader.remedies.node_fence.survey import probed, surveyed
from pp_hostd.leader.steps.nodes import Uncordon
from pp_hostd.model.observed import Observed
from pp_hostd.model.record import Unreadable

RETRY_SECONDS = 5.0
"""Before a method that has failed is tried again."""


def fenced(view: View, valves: Valves) -> NextAction | None:
    """Returns the next step for this node. None if it has no NodeFence."""
    every, seen = view.observed.part(FencesSeen), view.seen
    fence = every.fences.get(view.name)
    if fence is None:
        return None
    if seen is None:
        return view.does(Stage.CLEARING, DeleteFence(fence), "its Node is gone; nothing is left to fence")
    config = every.config_maps.cluster
    if isinstance(config, Unreadable):
        return view.refuses(f"ConfigMap fence-cluster-config: {config}. Correct it, or delete it")
    gone = _cause_gone(view.observed, fence) if at_work(fence) else ""
    if gone:
        return view.refuses(f"{gone}. Correct it, or: pp-leader fence abort {view.name}")
    rules, cause = _threshold(view.observed, fence)
    provider = every.providers.get(view.name, "")
    methods = methods_of(fence.progress.step, view.name, provider, every.config_maps, rules, cause)
    methods = methods if isinstance(methods, Unreadable) else by_executor(methods, config)
    if isinstance(methods, Unreadable):
        return view.refuses(f"{methods}. Correct it; nothing is done until then")
    flow = Flow(view, seen, fence, config, rules, cause, methods)
    order = paused(view)
    if order and not _frees(flow):
        return view.waits(Stage.HELD, order)
    handed = handed_over(view) if at_work(fence) else None
    if handed is not None:
        return handed
    doubted = _doubted(flow)
    return _dumped(flow) or doubted or _moved(flow, next_move(fence.progress, _situation(flow), config), valves)


def _seems_well(flow: Flow) -> bool:
    return is_well(flow.view, flow.seen, flow.fence, flow.cause)


def _is_heard(flow: Flow) -> bool:
    """Whether its kubelet was heard since the present status began, and since the last method ended. A Node is called
    Ready for a while after its host was switched off. A flow need not look that has done nothing, or that waits for
    another boot."""
    if not at_work(flow.fence) or still_runs(flow.seen):
        return True
    ended = (each.at for each in flow.part.ended.values())
    return flow.part.alive_at >= max((flow.part.since_at, *ended))


def _doubted(flow: Flow) -> NextAction | None:
    """Looks whether the kubelet of a Node that is called Ready is heard. None once it is, or was silent for so long
    that the node is not well, or while it does not matter."""
    progress, part, view = flow.fence.progress, flow.part, flow.view
    runs = progress.methods and progress.methods[-1].outcome is Outcome.RUNNING
    over = progress.state in (State.ERROR, State.FINAL) or progress.step is Step.RECOVERY
    if over or runs or not _seems_well(flow) or _is_heard(flow):
        return None
    told = "its Node is called Ready; looking whether its kubelet is heard"
    due_at = part.looked_at + LOOK_SECONDS
    if view.now >= due_at:
        return view.does(Stage.FENCING, LookAtNode(view.name), told)
    is_silent = part.looked_at >= part.renewed_at + part.silent_seconds
    return None if is_silent else view.waits(Stage.FENCING, told, due_at)


def _dump(flow: Flow) -> Proof | None:
    """A kernel that has crashed in this boot, since this leader works on the flow, says so again and again: it is dead,
    and another one saves its dump. None if it has not, or if nobody wants to know. A message that is older may be of a
    boot before."""
    address = flow.seen.node.address
    heard_at = flow.view.observed.part(DumpsSeen).heard.get(address or "")
    if not flow.config.kdump or heard_at is None or heard_at < flow.part.boot_at or not at_work(flow.fence):
        return None
    return Proof(Fences.POWER, heard_at, f"its kernel has crashed and saves its dump (kdump, from {address})")


def _dumped(flow: Flow) -> NextAction | None:
    """Frees the workloads of a kernel that has crashed, beside whatever the flow does. None if there are none."""
    proof = _dump(flow)
    if proof is None or (still_runs(flow.seen) and flow.fence.progress.cleaned):
        return None
    if flow.fence.progress.boot != flow.seen.node.boot or contradiction(flow.view, flow.fence, proof):
        return None
    progress = flow.fence.progress
    told = progress.with_condition(FENCED, "KernelCrashed", proof.sentence)
    freed_by = replace(progress, cleaned=True, conditions=told)
    return freed(flow.view, flow.seen, flow.fence, proof) or flow.writes(freed_by, proof.sentence)


def _frees(flow: Flow) -> bool:
    """Whether its workloads are being freed: that goes on to its end."""
    return flow.seen.node.freeing is not None


def _threshold(observed: Observed, fence: NodeFence) -> tuple[RemedyRules | None, Threshold | None]:
    """The threshold that has triggered the flow; None where a person has, or where it is no more."""
    found = observed.part(ConfigurationsSeen).configurations.get(fence.cause.configuration)
    if found is None or isinstance(found.rules, Unreadable):
        return None, None
    named = fence.cause.condition, fence.cause.status
    matching = (each for each in found.rules.thresholds if (each.condition, each.status) == named)
    return found.rules, next(matching, None)


def _cause_gone(observed: Observed, fence: NodeFence) -> str:
    """Why the threshold that has triggered the flow is not known any more; empty if it is, or if a person did that.
    The node's own lists are not what its ladder was."""
    name = fence.cause.configuration
    if not name:
        return ""
    found = observed.part(ConfigurationsSeen).configurations.get(name)
    if found is None:
        return f"NodeRemedyConfiguration {name}, which has caused this flow, is gone"
    if isinstance(found.rules, Unreadable):
        return f"{found.key}: {found.rules}"
    if _threshold(observed, fence)[1] is None:
        return f"{found.key} has no threshold for {fence.cause.condition}={fence.cause.status} any more"
    return ""


def _situation(flow: Flow) -> Situation:
    progress, part, now = flow.fence.progress, flow.part, flow.view.now
    return Situation(
        is_well=_seems_well(flow) and _is_heard(flow),
        needs_boot=still_runs(flow.seen),
        age_seconds=now - part.since_at,
        methods=len(flow.methods),
        pause_seconds=_pause_seconds(flow),
        dump_seconds=0.0 if _dump(flow) is None else flow.config.kdump_seconds,
        climbs=flow.climbs and progress.step is Step.ISOLATION,
    )


def _pause_seconds(flow: Flow) -> float:
    """Before the same method is tried again, or the next one of a ladder."""
    methods = flow.fence.progress.methods
    if not methods or flow.fence.progress.status is not Status.RUNNING:
        return 0.0
    last, ended = methods[-1], flow.part.ended.get(flow.run_key(len(methods) - 1))
    ended_at = flow.part.since_at if ended is None else ended.at
    seconds = 0.0
    if last.outcome is Outcome.FAILED and flow.fence.progress.retries < flow.config.step_retries:
        seconds = RETRY_SECONDS
    elif flow.climbs and flow.fence.progress.step is Step.ISOLATION and not flow.is_amid_reboot(len(methods) - 1):
        rung = flow.rung(len(methods) - 1)
        seconds = 0.0 if rung is None else rung.period_seconds
    return max(0.0, ended_at + seconds - flow.view.now)


def _moved(flow: Flow, move: Move, valves: Valves) -> NextAction | None:
    view, fence = flow.view, flow.fence
    if isinstance(move, Wait):
        cleared = _cleared(flow) if fence.progress.state is State.FINAL else None
        return cleared or view.waits(Stage.FENCING, _told(flow, move.sentence), view.now + move.seconds)
    if move is Work.FORGET:
        why = "it is over" if fence.progress.state is State.FINAL else "its node is well, and nothing was done"
        return _cleared(flow) or view.does(Stage.CLEARING, DeleteFence(fence), f"{why}; deleting {fence.key}")
    if move is Work.STAY:
        told = f"{fence.progress.reason}. To begin again: pp-leader fence retry {view.name}"
        return view.refuses(f"gave up fencing it: {told}. To end it: pp-leader fence abort {view.name}")
    if move is Work.RUN:
        return next_of_method(flow)
    begins = move.step is Step.ISOLATION and move.status is Status.RUNNING and fence.progress.status is Status.NEW
    return (
        _begun(flow, move, valves)
        if begins
        else flow.writes(move, _told(flow, f"{move.step.value} {move.status.value}"))
    )


def _told(flow: Flow, sentence: str) -> str:
    return f"{sentence}, by {flow.fence.key} ({flow.fence.cause})"


def _begun(flow: Flow, move: Progress, valves: Valves) -> NextAction:
    """Rules 13 to 16: a flow begins only where a remediation may."""
    view, others = flow.view, _others(flow)
    held = None if flow.fence.progress.restarts else valves.held(view)
    if held is not None:
        return held
    why = flow.storm() or in_maintenance(view)
    if why:
        return view.waits(Stage.HELD, why)
    if len(others) + valves.beginning >= flow.config.max_at_once and not flow.fence.progress.restarts:
        told = f"{', '.join(others) or 'another node'} is being fenced, and max_at_once is {flow.config.max_at_once}"
        return view.waits(Stage.HELD, told)
    handed = handed_over(view)
    if handed is not None:
        return handed
    if not flow.seen.node.boot:
        return view.refuses("its kubelet reports no boot (status.nodeInfo.bootID), by which another one could be told")
    if flow.part.renewed is None:
        return view.does(Stage.FENCING, LookAtNode(view.name), "looking at its kubelet before anything is done")
    around = probed(flow) or surveyed(flow)
    if around is not None:
        return around
    counted = None if _is_counted(flow) else valves.allowance.next_write(view, Stage.FENCING)
    if counted is not None:
        return counted
    number = flow.fence.progress.id or view.term.draw.id_above_all(0)
    reason = flow.fence.progress.reason or str(flow.fence.cause)
    move = replace(move, id=number, boot=flow.seen.node.boot, reason=reason)
    step = BeginFence(WriteFence(flow.fence, move, flow.seen.node.uid))
    return view.does(Stage.FENCING, step, _told(flow, "isolation begins"))


def _is_counted(flow: Flow) -> bool:
    """Whether this flow is counted among the remediations of this hour before, or will be by another remedy."""
    every = flow.view.observed.part(FencesSeen)
    config, progress = every.config_maps.of_node(flow.view.name), flow.fence.progress
    names = () if isinstance(config, Unreadable) or flow.climbs else config.steps[Step.POWER_MANAGEMENT]
    cuts = any(not isinstance(each, BuiltInMethod) for each in flow.methods)
    return bool(progress.restarts) or (not cuts and not OTHER_REMEDIES.isdisjoint(names))


def _others(flow: Flow) -> list[str]:
    """The other nodes that are being fenced."""
    fences = flow.view.observed.part(FencesSeen).fences
    return sorted(name for name, each in fences.items() if name != flow.view.name and at_work(each))


def _cleared(flow: Flow) -> NextAction | None:
    """Takes all marks off the Node of a flow that is over. None if there are none. The boot that must not get its
    storage back stays noted for as long as the host runs it."""
    seen, node, view = flow.seen, flow.seen.node, flow.view
    if seen.marked:
        return view.does(Stage.CLEARING, Uncordon(node.name, node.uid), "making the Node usable again")
    if seen.fenced_boots and not still_runs(seen):
        note = NoteBoot(node.name, node.uid, node.resource_version, None)
        return view.does(Stage.CLEARING, note, "its host has booted again")
    return None
