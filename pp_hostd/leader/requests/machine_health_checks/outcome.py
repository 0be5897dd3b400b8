"""The outcome of a judgement: how many are unhealthy, whether they may be remediated, and what the status says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from pp_hostd.frozen import frozen, replace
from pp_hostd.leader.facts.limits import Limit
from pp_hostd.leader.requests.health_checks.check import REMEDIATION_ALLOWED
from pp_hostd.leader.requests.health_checks.judge import Health, Opinion
from pp_hostd.leader.requests.health_checks.steps import RESTRICTED
from pp_hostd.leader.requests.machine_health_checks.check import MOST_TARGETS, MachineHealthCheck, Status
from pp_hostd.leader.requests.machine_health_checks.conditions import Wanted, Where
from pp_hostd.leader.requests.machine_health_checks.facts import MachineFacts
from pp_hostd.leader.requests.machine_health_checks.judge import JOINT, NODE_GONE, OLDER_REASONS, REMEDIATE, Judgement
from pp_hostd.leader.requests.machine_health_checks.rules import Rules
from pp_hostd.leader.requests.machine_health_checks.steps import NO_TEMPLATE, NOT_CREATED, Notice
from pp_hostd.model.machine_details import EXTERNALLY_REMEDIATED, OWNER_REMEDIATED

SUCCEEDED, PAUSED, WAITING = "HealthCheckSucceeded", "Paused", "WaitingForRemediation"
_TROUBLES = {
    NO_TEMPLATE: ("ExternalRemediationTemplateAvailable", "ExternalRemediationTemplateNotFound"),
    NOT_CREATED: ("ExternalRemediationRequestAvailable", "ExternalRemediationRequestCreationFailed"),
}
"""The condition of a health check, and its reason, for each trouble with remediation objects."""


@frozen
class ObjectTold:
    """How it went to make a Machine's remediation object, if it was tried. `reason` is empty if there is one."""

    tried: bool = False
    reason: str = ""
    sentence: str = ""


@frozen
class Outcome:
    """The status of a health check as it is to be, and whether its unhealthy Machines may be remediated. `why_not` is
    empty if they may."""

    status: Status
    conditions: tuple[Wanted, ...]
    may: bool = False
    paused: bool = False
    judgement: Judgement = field(default_factory=Judgement)
    why_not: str = ""

    def is_told_by(self, check: MachineHealthCheck) -> bool:
        return self.status == check.status and not any(each.differs_from(check.lists) for each in self.conditions)


def summed_up(
    check: MachineHealthCheck, rules: Rules, judgement: Judgement, objects: Iterable[ObjectTold] = ()
) -> Outcome:
    """Those that are pending count as unhealthy, but are not remediated."""
    expected, healthy = len(judgement.targets), len(judgement.of(Health.HEALTHY))
    count = expected - healthy
    may, why = rules.limit.allows(count, expected), ""
    if may:
        told = Wanted(REMEDIATION_ALLOWED, "True", "RemediationAllowed")
    else:
        why = f"{count} of {expected} Machines are not healthy, and {rules.limit}: no Machine is remediated"
        told = Wanted(REMEDIATION_ALLOWED, "False", "TooManyUnhealthy", _refusal(rules.limit, count, expected))
    cluster_api = check.spelling.is_cluster_api
    names = sorted(each.machine.name for each in judgement.targets.values())[:MOST_TARGETS]
    status = Status(
        generation=check.generation if cluster_api else 0,
        expected=expected,
        healthy=healthy,
        allowed=max(0, rules.limit.most(expected) - count) if may else 0,
        targets=tuple(names) if cluster_api else (),
    )
    conditions = (told, *_troubles(objects), *_unpaused(check))
    return Outcome(status, conditions, may, judgement=judgement, why_not=why)


def _refusal(limit: Limit, count: int, expected: int) -> str:
    """In the words of Cluster API's own controller, and OpenShift's."""
    passed, called = "exceeds maxUnhealthy", "maxUnhealthy"
    if limit.within is not None:
        passed, called = "does not fall within the range", "unhealthyRange"
    counts = f"(total: {expected}, unhealthy: {count}, {called}: {limit.written})"
    return f"Remediation is not allowed, the number of not started or unhealthy machines {passed} {counts}"


def _troubles(objects: Iterable[ObjectTold]) -> list[Wanted]:
    """Of each kind of trouble the first; none, if there is no such trouble any more."""
    found = {each.reason: each.sentence for each in reversed(tuple(objects)) if each.reason}
    return [
        Wanted(of_type, "False" if reason in found else "", word, found.get(reason, ""), "", Where.OLDER, "Error")
        for reason, (of_type, word) in _TROUBLES.items()
    ]


def _unpaused(check: MachineHealthCheck) -> tuple[Wanted, ...]:
    return (Wanted(PAUSED, "False", "NotPaused", where=Where.NEWER),) if check.spelling.is_cluster_api else ()


def standing_still(check: MachineHealthCheck, reason: str, sentence: str) -> Outcome:
    """Nobody is judged: the counts stay what they were."""
    generation = check.generation if check.spelling.is_cluster_api else 0
    why = f"{sentence}: until then no Machine is remediated"
    told = Wanted(REMEDIATION_ALLOWED, "False", reason, why)
    return Outcome(replace(check.status, generation=generation, allowed=0), (told, *_unpaused(check)), why_not=why)


def paused(check: MachineHealthCheck, sentence: str) -> Outcome:
    """All stays as it is, but for the condition that says so, where the API has one."""
    told = Wanted(PAUSED, "True", "Paused", sentence, where=Where.NEWER)
    conditions = (told,) if check.spelling.is_cluster_api else ()
    return Outcome(check.status, conditions, paused=True, why_not=f"it is paused: {sentence}")


def notices(check: MachineHealthCheck, outcome: Outcome) -> tuple[Notice, ...]:
    """Events about conditions that are others than before. The first time only trouble is worth one."""
    found = []
    for wanted in outcome.conditions:
        here = [each for each in check.lists if wanted.belongs_to(each)]
        if wanted.type != REMEDIATION_ALLOWED or not here:
            continue
        before, now = here[0].said(wanted.type), wanted.said_in(here[0])
        if now is None or (before is not None and before[:2] == now[:2]):
            continue
        if wanted.status == "False":
            reason = RESTRICTED if wanted.reason == "TooManyUnhealthy" else wanted.reason
            found.append(Notice(reason, wanted.message))
        elif before is not None:
            found.append(Notice("RemediationAllowed", "Machines are remediated again", warning=False))
    return tuple(found)


# The conditions of Machines, which Cluster API's owners act on.


def conditions_for(
    machine: MachineFacts, said: Opinion, *, to_owner: bool, objects: ObjectTold | None = None
) -> tuple[Wanted, ...]:
    """`to_owner`: its owner is to replace it. `objects` is None where no remediation object is wanted. A Machine that
    is pending keeps what it has."""
    if said.health is Health.PENDING:
        return ()
    if said.health is Health.HEALTHY:
        return (Wanted(SUCCEEDED, "True", SUCCEEDED), *_without_trouble(machine))
    return (_failed(said), *(_owner(machine) if to_owner else ()), *_external(machine, objects))


def _failed(said: Opinion) -> Wanted:
    """In the words of Cluster API's own controller."""
    newer = "\n".join(["Health check failed:", *(f"  * {each}" for each in said.sentence.split(JOINT))])
    older = "" if said.reason == NODE_GONE else said.sentence
    if said.reason == REMEDIATE:
        newer = f"Health check failed: {said.sentence}"
        older = "Marked for remediation via remediate-machine annotation"
    older_reason = OLDER_REASONS.get(said.reason, said.reason)
    return Wanted(SUCCEEDED, "False", said.reason, newer, older_reason, older_message=older)


def _owner(machine: MachineFacts) -> list[Wanted]:
    """In each list where the owner has not begun: it alone says how its work goes."""
    found = []
    for each in machine.lists:
        before = each.said(OWNER_REMEDIATED)
        if before is None or before[0] == "True":
            where, told = (Where.OLDER, "") if each.older else (Where.NEWER, "Waiting for remediation")
            found.append(Wanted(OWNER_REMEDIATED, "False", WAITING, told, where=where))
    return found


def _external(machine: MachineFacts, objects: ObjectTold | None) -> list[Wanted]:
    """The controller that carries the object out says how that goes; before there is one, the health check does."""
    before = _said_external(machine)
    if objects is None or not objects.tried:
        return []
    if objects.reason:
        return [Wanted(EXTERNALLY_REMEDIATED, "False", objects.reason, objects.sentence, where=Where.NEWER)]
    if before is not None and before[0] != "True" and before[1] not in _TROUBLES:
        return []
    return [Wanted(EXTERNALLY_REMEDIATED, "False", WAITING, where=Where.NEWER)]


def _without_trouble(machine: MachineFacts) -> list[Wanted]:
    before = _said_external(machine)
    stale = before is not None and before[1] in _TROUBLES
    return [Wanted(EXTERNALLY_REMEDIATED, "", where=Where.NEWER)] if stale else []


def _said_external(machine: MachineFacts) -> tuple[str, str, str] | None:
    newer = (each.said(EXTERNALLY_REMEDIATED) for each in machine.lists if not each.older)
    return next((each for each in newer if each is not None), None)
