"""The outcome of a health check's judgement: the status to be stored, and the nodes to be remediated. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field

from pp_hostd.frozen import frozen
from pp_hostd.leader.requests.health_checks.check import OVERLAPPING, REMEDIATION_ALLOWED, HealthCheck, Rules, Status
from pp_hostd.leader.requests.health_checks.judge import Health, Judgement, Opinion
from pp_hostd.model.backup import Backup
from pp_hostd.model.observed import Observed, is_early
from pp_hostd.model.record import Unreadable

MAX_TOLD = 100
"""So many unhealthy nodes are named in a status."""
DELETED = "the leader has deleted its Node, and recreates it"


@frozen
class Outcome:
    """The outcome of a judgement: the status to be stored, and the unhealthy nodes to be remediated now. `missing`
    are those that the leader has deleted, and not recreated yet."""

    status: Status
    remediated: Mapping[str, Opinion] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    healed: tuple[str, ...] = ()
    """Those that are healthy again, and whose remediation object has to go."""


def summed_up(
    check: HealthCheck,
    judgement: Judgement,
    observed: Observed,
    overlaps: tuple[str, ...],
    removed: Collection[str] = (),
) -> Outcome:
    """How many are unhealthy, and whether that is few enough. A Node that the leader has deleted, and not recreated
    yet, counts as one that is not healthy. `removed` are the nodes whose remediation objects are certainly gone."""
    rules = check.rules
    overlap = _overlap(overlaps)
    if isinstance(rules, Unreadable):
        told = REMEDIATION_ALLOWED, "False", "Unreadable", f"{rules}. Correct it: until then nobody is remediated"
        return Outcome(Status(check.generation, made=check.status.made, conditions=(told, overlap)))
    missing = [name for name in observed.backups if name not in judgement.known and _selects(rules, observed, name)]
    expected, healthy = len(judgement.selected) + len(missing), len(judgement.selected) - len(judgement.sick)
    unhealthy = sorted(name for name, said in judgement.sick.items() if said.health is Health.UNHEALTHY)
    count = expected - healthy
    allowed = max(0, rules.limit.most(expected) - count)
    may = rules.limit.allows(count, expected)
    if check.paused:
        told = REMEDIATION_ALLOWED, "False", "Paused", f"it is paused by {check.paused}"
        may = False
    elif not may:
        why = f"{count} of {expected} Nodes are not healthy, and {rules.limit}: nobody is remediated"
        told = REMEDIATION_ALLOWED, "False", "TooManyUnhealthy", why
    else:
        told = REMEDIATION_ALLOWED, "True", "Allowed", f"{rules.limit} of {expected} Nodes"
    remediated = {name: judgement.sick[name] for name in unhealthy} if may else {}
    healed = [name for name in check.status.made if name not in judgement.sick and name not in missing]
    cleared = removed if rules.template is not None else healed  # without a template nobody looks for objects
    made = [name for name in check.status.made if name not in healed or name not in cleared]
    gone = [(name, "Remediating", DELETED) for name in missing]
    said = [(name, judgement.sick[name].reason, judgement.sick[name].sentence) for name in unhealthy]
    listed = sorted([*said, *gone])
    status = Status(
        check.generation,
        expected,
        healthy,
        allowed if may else 0,
        tuple(listed[:MAX_TOLD]),
        tuple(made),
        (told, overlap),
    )
    return Outcome(status, remediated, tuple(missing), tuple(healed))


def _overlap(overlaps: tuple[str, ...]) -> tuple[str, str, str, str]:
    if not overlaps:
        return OVERLAPPING, "False", "None", "no other health check selects the same Nodes"
    told = f"{', '.join(overlaps)} also select some of its Nodes: each Node is remediated once, by whichever is first"
    return OVERLAPPING, "True", "SameNodes", told


def _selects(rules: Rules, observed: Observed, name: str) -> bool:
    stored = observed.backups[name]
    if name in observed.nodes or is_early(stored) or not isinstance(stored.backup, Backup):
        return False
    return rules.selector.matches(stored.backup.labels)
