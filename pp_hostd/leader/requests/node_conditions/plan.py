"""The upkeep of the condition Protected: few Nodes are looked at in a turn, and few writes are made.

A Node is looked at when it has changed, or something that all depend on, and when the leader's work on it has ended. A
condition is written once it has been wanted for a while, one at a time. The leader writes none on a Node that it works
on: that Node's remediation must not meet with conflicts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import islice

from pp_hostd.frozen import frozen, replace
from pp_hostd.leader.node_memory import NextAction, NodeMemory, Stage, Term
from pp_hostd.leader.plan.view import Electorates, View
from pp_hostd.leader.requests.node_conditions.protected import protected
from pp_hostd.leader.requests.node_conditions.stored import ConditionsSeen
from pp_hostd.leader.steps.nodes import Condition, SetCondition
from pp_hostd.model.keys import PROTECTED
from pp_hostd.model.observed import NodeSeen, Observed
from pp_hostd.model.settings import Settings

SETTLE_SECONDS = 5.0
"""A condition is written once it has been wanted for so long: an agent that boots states two things within seconds, and
each write of its own must meet the version that it has read."""
WRITE_SECONDS = 1.0
"""Between two writes at least."""
MOST_LOOKS = 100
"""So many Nodes are looked at in one turn, so that no plan becomes slow by it."""
LOOK_SECONDS = 0.1
"""Until the next turn, while more of them are left to look at."""


@frozen
class Lacking:
    """The condition that a Node should have and does not, and since when."""

    wanted: Condition
    since_at: float


@frozen
class ConditionsMemory:
    """`changes`, `enrolled`, `roster` and `machines` are what the last turn saw, `busy` the nodes on which the leader
    worked then. `queue` are the Nodes to look at, `lacking` those to write, in their order."""

    changes: int = 0
    enrolled: frozenset[str] = frozenset()
    roster: str = ""
    machines: int = -1
    busy: frozenset[str] = frozenset()
    electorates: Electorates = field(default_factory=lambda: Electorates(None))
    queue: Mapping[str, None] = field(default_factory=dict)
    lacking: Mapping[str, Lacking] = field(default_factory=dict)
    wrote_at: float = -math.inf


def conditions(
    settings: Settings, observed: Observed, term: Term, next_actions: Sequence[NextAction], now: float
) -> Iterator[tuple[NextAction | None, NodeMemory]]:
    """Yields the one next action about all conditions, and its memory."""
    memory = term.memories.get(PROTECTED, NodeMemory())
    before = memory.part(ConditionsMemory)
    kept = _queued(before, observed, observed.part(ConditionsSeen), next_actions)
    kept = _without_unfree(_looked(kept, settings, observed, term, now), observed)
    if memory.trouble and not kept.lacking:  # failures of earlier writes say nothing about the next one
        memory = replace(memory, trouble="", failures=0, not_before_at=0.0)
    view = View(settings, observed, kept.electorates, term, memory, "", "", now)
    next_action, kept = _next_action(kept, view)
    yield replace(next_action, of=PROTECTED, quiet=True), memory if kept is before else memory.with_part(kept)


# Which Nodes are looked at.


def _queued(
    kept: ConditionsMemory, observed: Observed, seen: ConditionsSeen, next_actions: Sequence[NextAction]
) -> ConditionsMemory:
    """The memory, with all Nodes in its queue that may want another condition than at the last turn."""
    busy = _busy(observed, next_actions)
    found: dict[str, None] = {}
    roster = "" if observed.roster is None else observed.roster.resource_version
    if roster != kept.roster or observed.machines_revision != kept.machines:
        electorates = kept.electorates if roster == kept.roster else Electorates(observed.roster)
        kept = replace(kept, roster=roster, machines=observed.machines_revision, electorates=electorates)
        found.update(dict.fromkeys(seen.changed))
    elif seen.changes != kept.changes:
        found.update(dict.fromkeys(seen.changed_since(kept.changes)))
    if observed.enrolled is not kept.enrolled:
        found.update(dict.fromkeys(observed.enrolled ^ kept.enrolled))
    if busy != kept.busy:
        found.update(dict.fromkeys(kept.busy - busy))
    if not found and busy == kept.busy and observed.enrolled is kept.enrolled and seen.changes == kept.changes:
        return kept
    queue = {**kept.queue, **found} if found else kept.queue
    return replace(kept, changes=seen.changes, enrolled=observed.enrolled, busy=busy, queue=queue)


def _busy(observed: Observed, next_actions: Sequence[NextAction]) -> frozenset[str]:
    """The nodes that the leader works on, or is asked to."""
    found = {next_action.node for next_action in next_actions}
    found.update(observed.marked, observed.backups)
    requested = (observed.machines.get(key) for key in observed.requests)
    found.update(each.machine.node or "" for each in requested if each is not None)
    return frozenset(found)


def _looked(kept: ConditionsMemory, settings: Settings, observed: Observed, term: Term, now: float) -> ConditionsMemory:
    """The memory after a look at the first ones of its queue."""
    if not kept.queue:
        return kept
    lacking = dict(kept.lacking)
    for name in islice(kept.queue, MOST_LOOKS):
        wanted = _wanted(kept, name, settings, observed, term, now)
        if wanted is None or observed.part(ConditionsSeen).of_nodes.get(name, {}).get(PROTECTED) == wanted:
            lacking.pop(name, None)
        elif name not in lacking or lacking[name].wanted != wanted:
            lacking.pop(name, None)
            lacking[name] = Lacking(wanted, now)  # as the last one
    return replace(kept, queue=dict.fromkeys(islice(kept.queue, MOST_LOOKS, None)), lacking=lacking)


def _wanted(
    kept: ConditionsMemory, name: str, settings: Settings, observed: Observed, term: Term, now: float
) -> Condition | None:
    """None if none is to be written on that Node now."""
    seen = observed.nodes.get(name)
    if seen is None or not _is_free(kept, seen):
        return None
    machine_key = seen.machine_key if isinstance(seen.machine_key, str) else ""
    view = View(settings, observed, kept.electorates, term, NodeMemory(), name, machine_key, now)
    return protected(view, seen)


def _is_free(kept: ConditionsMemory, seen: NodeSeen) -> bool:
    """Whether the leader has nothing to do with the Node, and its host is not away."""
    return seen.node.name not in kept.busy and not seen.away and not seen.marked


# The writes.


def _without_unfree(kept: ConditionsMemory, observed: Observed) -> ConditionsMemory:
    """The memory, if its first Nodes to write are gone or worked on: without them. They are looked at again when the
    leader's work on them has ended."""
    unfree = []
    for name in kept.lacking:
        seen = observed.nodes.get(name)
        if seen is not None and _is_free(kept, seen):
            break
        unfree.append(name)
    if not unfree:
        return kept
    return replace(kept, lacking=dict(islice(kept.lacking.items(), len(unfree), None)))


def _next_action(kept: ConditionsMemory, view: View) -> tuple[NextAction, ConditionsMemory]:
    """Writes the first condition, once it has been lacking for long enough. Its Node is the last one from
    then on: if the write fails, the others come first."""
    due_at = view.now + LOOK_SECONDS if kept.queue else math.inf
    name = next(iter(kept.lacking), None)
    if name is not None and name not in kept.queue:
        write_at = max(kept.lacking[name].since_at + SETTLE_SECONDS, kept.wrote_at + WRITE_SECONDS)
        if view.now >= write_at or view.now < view.memory.not_before_at:  # in the same words while it keeps failing
            return _written(kept, view, name)
        due_at = min(due_at, write_at)
    return view.waits(Stage.REMEDIATING, "all is written", None if due_at == math.inf else due_at), kept


def _written(kept: ConditionsMemory, view: View, name: str) -> tuple[NextAction, ConditionsMemory]:
    node, lacking = view.observed.nodes[name].node, dict(kept.lacking)
    lacking[name] = lacking.pop(name)
    step = SetCondition(name, node.uid, node.resource_version, lacking[name].wanted)
    next_action = view.does(Stage.REMEDIATING, step, f"setting the condition {PROTECTED} of Nodes")
    if next_action.step is None:
        return next_action, kept
    return next_action, replace(kept, lacking=lacking, wrote_at=view.now)
