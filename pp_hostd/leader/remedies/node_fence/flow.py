"""One flow as a plan looks at it: the NodeFence, its Node, its methods, and this term's memory."""

from __future__ import annotations

from pp_hostd.frozen import frozen
from pp_hostd.leader.facts.nodes import READY
from pp_hostd.leader.node_memory import NextAction, Stage
from pp_hostd.leader.plan.valves import most_of
from pp_hostd.leader.plan.view import View
from pp_hostd.leader.remedies.node_fence.config_maps import ClusterConfig
from pp_hostd.leader.remedies.node_fence.configuration import ConfigurationsSeen, LadderRemedy, RemedyRules, Threshold
from pp_hostd.leader.remedies.node_fence.fence import NodeFence, Progress, State, Status, Step
from pp_hostd.leader.remedies.node_fence.memory import FenceMemory, RunKey, run_key
from pp_hostd.leader.remedies.node_fence.methods import OFF, ON, Method
from pp_hostd.leader.remedies.node_fence.steps import WriteFence
from pp_hostd.model.observed import NodeSeen


def at_work(fence: NodeFence) -> bool:
    """Whether its flow has begun, and is not over."""
    progress = fence.progress
    waits = progress.step is Step.ISOLATION and progress.status is Status.NEW and not progress.restarts
    return not (waits or fence.deleting or progress.state is State.FINAL or progress.gave_up)


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

    def rung(self, index: int) -> LadderRemedy | None:
        """The remedy of the ladder that this method is of; None beyond it. A reboot is two methods."""
        at = 0
        for each in () if self.cause is None else self.cause.remedies:
            at += 2 if self.is_amid_reboot(at) else 1
            if index < at:
                return each
        return None

    def is_amid_reboot(self, index: int) -> bool:
        """Whether this method is the off of a reboot: the next one is its on."""
        pair = self.methods[index : index + 2]
        return len(pair) == 2 and pair[0].name == pair[1].name and (pair[0].action, pair[1].action) == (OFF, ON)

    def storm(self) -> str:
        """Why nobody is fenced: more nodes do not respond than fence-cluster-config allows. Empty if no more do."""
        observed, share = self.view.observed, self.config.max_non_responsive
        silent, most = len(observed.not_ready), most_of(share, len(observed.nodes), 1)
        if silent <= most:
            return ""
        count = f"{silent} of {len(observed.nodes)} nodes do not respond"
        return f"{count}, and max_non_responsive is {share}: none is fenced"

    def writes(self, progress: Progress, sentence: str, stage: Stage = Stage.FENCING) -> NextAction:
        return self.view.does(stage, WriteFence(self.fence, progress, self.seen.node.uid), sentence)

    def run_key(self, index: int) -> RunKey:
        return run_key(self.fence, index)
