"""One flow as a plan looks at it: the NodeFence, its Node, its methods, and this term's memory."""

from __future__ import annotations

from pp_hostd.frozen import frozen
from pp_hostd.leader.facts.nodes import READY
from pp_hostd.leader.node_memory import NextAction, Stage
from pp_hostd.leader.plan.view import View
from pp_hostd.leader.remedies.node_fence.config_maps import ClusterConfig
from pp_hostd.leader.remedies.node_fence.configuration import ConfigurationsSeen, RemedyRules, Threshold
from pp_hostd.leader.remedies.node_fence.fence import NodeFence, Progress, State, Status, Step
from pp_hostd.leader.remedies.node_fence.memory import FenceMemory, RunKey
from pp_hostd.leader.remedies.node_fence.methods import Method
from pp_hostd.leader.remedies.node_fence.steps import WriteFence
from pp_hostd.model.observed import NodeSeen


def at_work(fence: NodeFence) -> bool:
    """Whether its flow has begun, and is not over."""
    progress = fence.progress
    waits = progress.step is Step.ISOLATION and progress.status is Status.NEW and not progress.restarts
    return not waits and progress.state is not State.FINAL and not progress.gave_up


def still_runs(seen: NodeSeen) -> bool:
    """Whether the host still runs the boot whose workloads were freed, as far as its kubelet has reported."""
    return seen.node.boot in seen.fenced_boots


def is_well(view: View, seen: NodeSeen, fence: NodeFence, cause: Threshold | None) -> bool:
    """Whether its node is Ready, and the condition that has triggered the flow is gone."""
    if not seen.ready or fence.cause.condition in ("", READY) or cause is None:
        return seen.ready
    facts = view.observed.part(ConfigurationsSeen).nodes.get(view.name)
    found = None if facts is None else facts.condition(cause.condition)
    return found is None or found.status != cause.status


@frozen
class Flow:
    """All that one plan looks at for one NodeFence."""

    view: View
    seen: NodeSeen
    fence: NodeFence
    config: ClusterConfig
    rules: RemedyRules | None
    cause: Threshold | None
    methods: tuple[Method, ...]

    @property
    def part(self) -> FenceMemory:
        return self.view.memory.part(FenceMemory)

    @property
    def climbs(self) -> bool:
        return self.cause is not None and bool(self.cause.remedies)

    def writes(self, progress: Progress, sentence: str, stage: Stage = Stage.FENCING) -> NextAction:
        return self.view.does(stage, WriteFence(self.fence, progress, self.seen.node.uid), sentence)

    def run_key(self, index: int) -> RunKey:
        """The present attempt of this method of the present step."""
        progress = self.fence.progress
        tried = progress.methods[index].tried
        return RunKey(self.fence.uid, progress.id, progress.restarts, progress.step, index, tried)
