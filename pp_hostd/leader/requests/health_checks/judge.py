"""The judgement of one health check on all Nodes that it selects: pure, with both clocks as arguments."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import field

from pp_hostd.frozen import frozen, replace
from pp_hostd.leader.facts.ages import Ages
from pp_hostd.leader.facts.nodes import READY, NodeFacts
from pp_hostd.leader.requests.health_checks.check import Rules
from pp_hostd.model.keys import RECREATED

LATER_SECONDS = 1.0
"""So long after a timeout has passed the leader looks again."""


class Health(enum.Enum):
    """Pending: it may become unhealthy by the mere passing of time."""

    HEALTHY = "healthy"
    PENDING = "pending"
    UNHEALTHY = "unhealthy"


@frozen
class Opinion:
    """`due_at` is when a pending one is unhealthy, if nothing changes until then. `not_back`: its host was remediated,
    and has not come back in time."""

    health: Health
    reason: str = ""
    sentence: str = ""
    due_at: float = math.inf
    not_back: bool = False


HEALTHY = Opinion(Health.HEALTHY)


def opinion(rules: Rules, node: NodeFacts, ages: Ages) -> Opinion:
    """A Node without a Ready condition, or that this project has recreated, has the start-up timeout to report."""
    ready = node.condition(READY)
    if ready is not None and ready.reason == RECREATED:
        age_seconds = ages.age_seconds(node.uid, READY, ready.status, ready.since_wallclock)
        said = _starting(rules, age_seconds, ages.now, "its host has not come back since it was remediated")
        return replace(said, not_back=said.health is Health.UNHEALTHY)
    sentences, pending, due_at = [], [], math.inf
    for each in rules.conditions:
        found = node.condition(each.type)
        if found is None or found.status != each.status:
            continue
        age_seconds = ages.age_seconds(node.uid, each.type, found.status, found.since_wallclock)
        if age_seconds > each.timeout_seconds:
            sentences.append(f"it has had {each}")
        else:
            pending.append(f"{each.type}={each.status}")
            due_at = min(due_at, ages.now + each.timeout_seconds - age_seconds + LATER_SECONDS)
    if sentences:
        return Opinion(Health.UNHEALTHY, "UnhealthyNode", "; ".join(sentences))
    if ready is None:
        age_seconds = ages.age_seconds(node.uid, "", "", node.created_wallclock)
        said = _starting(rules, age_seconds, ages.now, "it has never reported whether it is ready")
        return replace(said, due_at=min(due_at, said.due_at))
    if pending:
        return Opinion(Health.PENDING, "Pending", f"it has {' and '.join(dict.fromkeys(pending))}", due_at)
    return HEALTHY


def _starting(rules: Rules, age_seconds: float, now: float, sentence: str) -> Opinion:
    if not rules.startup_seconds:
        return Opinion(Health.PENDING, "NodeStartup", sentence)
    if age_seconds > rules.startup_seconds:
        told = f"{sentence}, for more than {rules.startup_seconds:.10g} s (nodeStartupTimeout)"
        return Opinion(Health.UNHEALTHY, "NodeStartupTimeout", told)
    due_at = now + rules.startup_seconds - age_seconds + LATER_SECONDS
    return Opinion(Health.PENDING, "NodeStartup", sentence, due_at)


@frozen
class Judgement:
    """`known` is the opinion on each Node, None where the check does not select it; `selected` are the others, and
    `sick` those that are not healthy."""

    known: Mapping[str, tuple[NodeFacts, Opinion | None]] = field(default_factory=dict)
    selected: frozenset[str] = frozenset()
    sick: Mapping[str, Opinion] = field(default_factory=dict)
    due_at: float = math.inf


def judged(rules: Rules, nodes: Mapping[str, NodeFacts], before: Judgement, ages: Ages) -> Judgement:
    """A Node that has not changed since it was found healthy, or was not selected, is not looked at again. `before` is
    the judgement by the same rules."""
    known: dict[str, tuple[NodeFacts, Opinion | None]] = {}
    selected: set[str] = set()
    sick: dict[str, Opinion] = {}
    for name, facts in nodes.items():
        last = before.known.get(name)
        if last is None or last[0] is not facts or (last[1] is not None and last[1] is not HEALTHY):
            last = facts, opinion(rules, facts, ages) if rules.selector.matches(facts.labels) else None
        known[name] = last
        if last[1] is not None:
            selected.add(name)
            if last[1] is not HEALTHY:
                sick[name] = last[1]
    due_at = min((each.due_at for each in sick.values()), default=math.inf)
    return Judgement(known, frozenset(selected), sick, due_at)
