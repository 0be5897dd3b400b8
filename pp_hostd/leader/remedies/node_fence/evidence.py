"""A flow frees workloads only on a proof of this very term, of a host whose kubelet is silent, and of the boot that was
fenced.

A method's proof is a device's own word, and a device can be wrong: the plug may be another host's. So the kubelet's
Lease must not have been renewed for two periods, and nothing is freed if a kubelet, or an agent, is heard after the
proof.
"""

from __future__ import annotations

from pp_hostd.leader.node_memory import NextAction, Stage
from pp_hostd.leader.plan.view import View
from pp_hostd.leader.remedies.node_fence.configuration import Fences
from pp_hostd.leader.remedies.node_fence.fence import NodeFence
from pp_hostd.leader.remedies.node_fence.memory import FenceMemory, Proof
from pp_hostd.leader.remedies.node_fence.seen import FencesSeen
from pp_hostd.leader.remedies.node_fence.steps import EndFreeing, KeepUnschedulable, LookAtNode, NoteBoot
from pp_hostd.leader.steps.nodes import Cordon, MarkFreeing
from pp_hostd.leader.steps.workloads import Freeing, FreeWorkloads
from pp_hostd.model.observed import NodeSeen

LOOK_AGAIN_SECONDS = 1.0
LOOK_SECONDS = 5.0
"""Between two looks at a kubelet that must be silent."""


def contradiction(view: View, fence: NodeFence, proof: Proof) -> str:
    """Why this proof can't be true, or is no longer; empty if it may be."""
    part, seen = view.memory.part(FenceMemory), view.seen
    if seen is not None and seen.node.boot != fence.progress.boot:
        return "the host has booted again since, so its workloads are not freed"
    if proof.fences is Fences.POWER and part.alive_at >= proof.began_at:
        return (
            f"{proof.sentence}, and yet its kubelet or its agent was heard since. Nothing is freed: see that the "
            f"method switches this very host. Then: pp-leader fence retry {view.name}"
        )
    return ""


def is_refuted(view: View, proof: Proof) -> bool:
    """Whether the host has lived after it was called dead, in the boot that is fenced: such a word is worth nothing
    later either, when the host may only be cut off."""
    part = view.memory.part(FenceMemory)
    return proof.fences is Fences.POWER and part.alive_at >= proof.began_at


def freed(view: View, seen: NodeSeen, fence: NodeFence, proof: Proof) -> NextAction | None:
    """The next step towards the end of freeing; None once all is free that this proof allows."""
    progress, node, part = fence.progress, seen.node, view.memory.part(FenceMemory)
    if view.memory.left == 0:
        end = EndFreeing(node.name, node.uid, node.resource_version)
        return None if node.freeing is None else view.does(Stage.FREEING, end, "its workloads are released")
    is_dead = proof.fences is Fences.POWER
    waits = _silent(view, part, proof) if is_dead else None
    if waits is not None:
        return waits
    if not node.unschedulable or (is_dead and not node.tainted):
        cordon = Cordon(node.name, node.uid, node.resource_version, progress.id)
        keep = KeepUnschedulable(node.name, node.uid, progress.id)  # by the taint Kubernetes would evict all others
        return view.does(Stage.FREEING, cordon if is_dead else keep, f"{proof.sentence}; cordoning its Node")
    if not set(node.boots).issubset(seen.fenced_boots):
        note = NoteBoot(node.name, node.uid, node.resource_version, " ".join(node.boots))
        return view.does(Stage.FREEING, note, f"{proof.sentence}; noting the boot that is fenced")
    if is_dead and node.freeing is None:
        if part.looked != seen:
            return _look(view, part, "checking once more before anything is freed")
        mark = MarkFreeing(node.name, node.uid, node.resource_version, progress.id, out_of_service=False)
        return view.does(Stage.FREEING, mark, f"{proof.sentence}; freeing its workloads")
    per_second = view.observed.part(FencesSeen).config_maps.numbers.deletions_per_second
    left = "" if view.memory.left is None else f" ({view.memory.left} are left)"
    if is_dead:
        step = FreeWorkloads(view.name, Freeing.SPARING, progress.boot, per_second=per_second)
        return view.does(Stage.FREEING, step, f"freeing its workloads{left}")
    step = FreeWorkloads(view.name, Freeing.STORAGE, progress.boot, proof.storage, per_second)
    return view.does(Stage.FREEING, step, f"freeing the workloads on {', '.join(proof.storage)}{left}")


def _silent(view: View, part: FenceMemory, proof: Proof) -> NextAction | None:
    """Waits until the kubelet has been silent for long enough, by looks that began after the proof."""
    silent_at = max(part.renewed_at + part.silent_seconds, proof.began_at)
    if part.looked_at >= silent_at:
        return None
    told = f"{proof.sentence}; its kubelet must be silent for two renewal periods, too"
    due_at = min(silent_at, part.looked_at + LOOK_SECONDS)
    if view.now < due_at:
        return view.waits(Stage.WAITING, told, due_at)
    return view.does(Stage.WAITING, LookAtNode(view.name), told)


def _look(view: View, part: FenceMemory, told: str) -> NextAction:
    due_at = part.looked_at + LOOK_AGAIN_SECONDS
    if view.now < due_at:
        return view.waits(Stage.CHECKING, told, due_at)
    return view.does(Stage.CHECKING, LookAtNode(view.name), told)
