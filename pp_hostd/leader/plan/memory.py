"""How a term's memory of a node changes by the outcome of its steps, as far as that is the same for every remedy."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Callable

from pp_hostd.frozen import replace
from pp_hostd.leader.node_memory import FEW_FAILURES, NodeMemory, Term
from pp_hostd.leader.steps.nodes import DropBackup, StoreBackup
from pp_hostd.leader.steps.own_objects import SpendBudget
from pp_hostd.leader.steps.port import Freed, Inspected, StepEnded, StepNews
from pp_hostd.leader.steps.workloads import FreeWorkloads
from pp_hostd.model.step import Written

PAUSE_SECONDS = 1.0
"""After a step that failed, and between two rounds of questions."""
MOST_PAUSE_SECONDS = 30.0
"""After a step that has failed many times in a row."""
AfterNews = Callable[[NodeMemory, list[StepNews]], NodeMemory]
"""How a remedy's own memory changes by news that are all of one type."""


def learned(term: Term, news: Iterable[StepNews], after_news: Iterable[AfterNews]) -> Term:
    """The term after all of these news. `after_news` are the remedies' own."""
    told: dict[str, list[StepNews]] = {}
    for each in news:
        told.setdefault(each.node, []).append(each)
    memories = dict(term.memories)
    for node, about_it in told.items():
        memory = memories.get(node, NodeMemory())
        for _, together in groupby(about_it, type):  # of answers there may be thousands
            alike = list(together)
            for after in after_news:
                memory = after(memory, alike)
            for each in alike:
                memory = _after(memory, each)
        memories[node] = memory
    return replace(term, memories=memories)


def awaiting(memory: NodeMemory, what: str, now: float) -> NodeMemory:
    """Since when this has not come."""
    return memory if memory.awaited == what else replace(memory, awaited=what, awaited_at=now)


def _after(memory: NodeMemory, news: StepNews) -> NodeMemory:
    if isinstance(news, Inspected):
        return replace(memory, inspection=news.inspection)
    if isinstance(news, Freed):
        return replace(memory, left=news.left)
    return _ended(memory, news) if isinstance(news, StepEnded) else memory


def _ended(memory: NodeMemory, ended: StepEnded) -> NodeMemory:
    if isinstance(ended.step, SpendBudget):  # it counts once the watch shows it, whatever became of the answer
        memory = replace(memory, counted=ended.step.beginning)
    if isinstance(ended.step, DropBackup):  # one that was not answered may still take effect
        memory = replace(memory, stored=None)
    if ended.written is not Written.DONE:
        return _failed(memory, ended)
    if isinstance(ended.step, StoreBackup):
        memory = replace(memory, stored=None if ended.step.backup.early else ended.step.backup.id)
    memory = replace(memory, not_before_at=0.0, trouble="", failures=0)
    if isinstance(ended.step, FreeWorkloads) and memory.left:
        return replace(memory, not_before_at=ended.at + PAUSE_SECONDS, trouble=ended.sentence or "some are still there")
    return memory


def _failed(memory: NodeMemory, ended: StepEnded) -> NodeMemory:
    """Sets the pause before the next attempt: a step that keeps failing is tried less and less often."""
    failures = memory.failures + (ended.written is not Written.CONFLICT)
    doublings = max(0, failures - FEW_FAILURES)
    pause_seconds = min(PAUSE_SECONDS * 2.0 ** min(doublings, 10), MOST_PAUSE_SECONDS)
    return replace(memory, not_before_at=ended.at + pause_seconds, trouble=ended.sentence, failures=failures)
