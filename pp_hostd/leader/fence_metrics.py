"""The metrics of NodeFences that a leader carries out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pp_hostd.leader.remedies.node_fence.fence import NodeFence, Progress, State, Status
from pp_hostd.leader.remedies.node_fence.seen import FencesSeen
from pp_hostd.leader.remedies.node_fence.steps import BeginFence, WriteFence
from pp_hostd.leader.steps.port import StepEnded, StepNews
from pp_hostd.model.observed import Observed
from pp_hostd.model.step import Written
from pp_hostd.service.metric import Metric

GAVE_UP = "gave_up"
MOST_PROBLEMS = 1000
"""So many pairs of node and condition have a figure of their own."""
OTHERS = ("others", "others")
REQUEST = "request"
"""Stands for the condition where a person, or another program, made the NodeFence."""


class FenceMetrics:
    """Counts the ends of steps and the problems of one term, by the transitions that were written."""

    def __init__(self) -> None:
        self._steps: Counter[tuple[str, str]] = Counter()
        self._problems: Counter[tuple[str, str]] = Counter()

    def heard(self, news: StepNews) -> None:
        if not isinstance(news, StepEnded) or news.written is not Written.DONE:
            return
        write = news.step.write if isinstance(news.step, BeginFence) else news.step
        if not isinstance(write, WriteFence):
            return
        outcome = _outcome(write.fence.progress, write.progress)
        if outcome:
            self._steps[write.progress.step.value, outcome] += 1
        if isinstance(news.step, BeginFence) and not write.progress.restarts:
            self._count(write.fence)

    def _count(self, fence: NodeFence) -> None:
        key = (fence.node, fence.cause.condition or REQUEST)
        has_room = key in self._problems or len(self._problems) < MOST_PROBLEMS
        self._problems[key if has_room else OTHERS] += 1

    def metrics(self, observed: Observed) -> Iterator[Metric]:
        found = Counter(_state(each) for each in observed.part(FencesSeen).fences.values())
        states = [({"state": state}, found[state]) for state in (*(each.value for each in State), GAVE_UP)]
        yield Metric("pp_leader_fences", "NodeFences, by state.", "gauge", states)
        steps = [({"step": step, "outcome": outcome}, count) for (step, outcome), count in self._steps.items()]
        told = "Steps of NodeFences that ended in this term: done, skipped since the node was well, error, gave_up."
        yield Metric("pp_leader_fence_steps_total", told, "counter", steps)
        problems = [({"node": node, "condition": what}, count) for (node, what), count in self._problems.items()]
        told = "How often in this term the fencing of a node began, by the condition that triggered it."
        yield Metric("pp_leader_problems_total", told, "counter", problems)


def _state(fence: NodeFence) -> str:
    return GAVE_UP if fence.progress.gave_up else fence.progress.state.value


def _outcome(before: Progress, after: Progress) -> str:
    """How the step has ended by this transition; empty if it has not."""
    if after.gave_up and not before.gave_up:
        return GAVE_UP
    if after.status is before.status and after.step is before.step:
        return ""
    if after.status is Status.DONE:
        return "done" if (before.step, before.status) == (after.step, Status.RUNNING) else "skipped"
    return "error" if after.status is Status.ERROR else ""
