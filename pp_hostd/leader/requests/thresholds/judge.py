"""The judgement of all NodeRemedyConfigurations on all Nodes: pure, with both clocks as arguments."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field

from pp_hostd.frozen import frozen
from pp_hostd.leader.facts.ages import Ages
from pp_hostd.leader.facts.nodes import NodeFacts
from pp_hostd.leader.remedies.node_fence.configuration import RemedyRules, Threshold

LATER_SECONDS = 0.1
"""So long after a period has passed the leader looks again: the two clocks need not tick at once."""
MAX_TOLD = 20
"""So many Nodes that two configurations select are named in a status."""


@frozen
class Opinion:
    """`reached` is the threshold that the Node has reached; None if none. Else `awaited` is the one that it reaches
    next, if nothing changes until `due_at`."""

    reached: Threshold | None = None
    awaited: Threshold | None = None
    due_at: float = math.inf


CALM = Opinion()


def opinion(thresholds: Iterable[Threshold], node: NodeFacts, ages: Ages) -> Opinion:
    """Of several thresholds that are reached the one counts that was reached first."""
    reached, awaited, longest_seconds, due_at = None, None, -math.inf, math.inf
    for each in thresholds:
        found = node.condition(each.condition)
        if found is None or found.status != each.status:
            continue
        age_seconds = ages.age_seconds(node.uid, each.condition, found.status, found.since_wallclock)
        over_seconds = age_seconds - each.period_seconds
        if over_seconds >= 0:
            if over_seconds > longest_seconds:
                reached, longest_seconds = each, over_seconds
        elif ages.now - over_seconds + LATER_SECONDS < due_at:
            awaited, due_at = each, ages.now - over_seconds + LATER_SECONDS
    if reached is not None:
        return Opinion(reached)
    return CALM if awaited is None else Opinion(None, awaited, due_at)


@frozen
class Summary:
    """For the status of one configuration: how many Nodes it selects and how many of them have reached a threshold, the
    first of those that others select, too, and these others."""

    selected: int = 0
    matching: int = 0
    overlapping: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


NOBODY = Summary()


@frozen
class Judgement:
    """`known` are, for each Node, its facts, the configurations that select it, and the opinion by their thresholds.
    `matching` are those that have reached one, `awaited` says when those reach one that will if nothing changes."""

    known: Mapping[str, tuple[NodeFacts, tuple[str, ...], Opinion]] = field(default_factory=dict)
    matching: Mapping[str, Threshold] = field(default_factory=dict)
    awaited: Mapping[str, float] = field(default_factory=dict)
    summaries: Mapping[str, Summary] = field(default_factory=dict)
    due_at: float = math.inf

    def selecting(self, node: str) -> tuple[str, ...]:
        return self.known[node][1] if node in self.known else ()


def judged(
    rules: Mapping[str, RemedyRules], nodes: Mapping[str, NodeFacts], before: Judgement, ages: Ages
) -> Judgement:
    """A Node that has not changed since it was found calm is not looked at again. `before` is the judgement by the same
    rules."""
    known: dict[str, tuple[NodeFacts, tuple[str, ...], Opinion]] = {}
    for name, facts in nodes.items():
        last = before.known.get(name)
        if last is None or last[0] is not facts or last[2] is not CALM:
            selecting = tuple(each for each, by in rules.items() if by.selector.matches(facts.labels))
            thresholds = (threshold for each in selecting for threshold in rules[each].thresholds)
            last = facts, selecting, opinion(thresholds, facts, ages)
        known[name] = last
    matching = {name: said.reached for name, (_, _, said) in known.items() if said.reached is not None}
    awaited = {name: said.due_at for name, (_, _, said) in known.items() if said.awaited is not None}
    due_at = min(awaited.values(), default=math.inf)
    groups = Counter((selecting, said.reached is not None) for _, selecting, said in known.values())
    shared = sorted(name for name, (_, selecting, _) in known.items() if len(selecting) > 1)
    summaries = {name: _summary(name, known, groups, shared) for name in rules}
    return Judgement(known, matching, awaited, summaries, due_at)


def _summary(
    name: str,
    known: Mapping[str, tuple[NodeFacts, tuple[str, ...], Opinion]],
    groups: Mapping[tuple[tuple[str, ...], bool], int],
    shared: list[str],
) -> Summary:
    """`groups` counts the Nodes by the configurations that select them and by whether they have reached a threshold;
    `shared` are those that several select."""
    selected = sum(count for (selecting, _), count in groups.items() if name in selecting)
    matching = sum(count for (selecting, reached), count in groups.items() if reached and name in selecting)
    others = {other for selecting, _ in groups if name in selecting for other in selecting} - {name}
    overlapping = [node for node in shared if name in known[node][1]]
    return Summary(selected, matching, tuple(overlapping[:MAX_TOLD]), tuple(sorted(others)))
