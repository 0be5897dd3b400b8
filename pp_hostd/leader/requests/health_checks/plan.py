"""The actions of health checks: requests for unhealthy nodes, their withdrawal, remediation objects, and the status.

A health check only requests. The leader's own limits, and all certainty, are those of any other request.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field

from pp_hostd.frozen import frozen, replace
from pp_hostd.leader.facts.ages import Ages, Sightings
from pp_hostd.leader.node_memory import NextAction, NodeMemory, Stage, Term
from pp_hostd.leader.plan.view import Electorates, View
from pp_hostd.leader.requests.health_checks.check import (
    REMEDIATION_ALLOWED,
    HealthCheck,
    HealthSeen,
    Rules,
)
from pp_hostd.leader.requests.health_checks.judge import Judgement, Opinion, judged
from pp_hostd.leader.requests.health_checks.outcome import Outcome, summed_up
from pp_hostd.leader.requests.health_checks.steps import (
    RESTRICTED,
    MakeRemediation,
    RemoveRemediation,
    RequestRemediation,
    SetStatus,
    Withdraw,
)
from pp_hostd.leader.steps.machines import AskFor
from pp_hostd.leader.steps.port import LeaderStep
from pp_hostd.model.condemnation import NotRequested, Requested
from pp_hostd.model.machine_details import CHECKS_CLAIM, Claim
from pp_hostd.model.observed import MachineSeen, Observed
from pp_hostd.model.record import Unreadable
from pp_hostd.model.settings import Settings

LOOK_AGAIN_SECONDS = 30.0
"""Between two looks whether the remediation object of an unhealthy node is still there."""
JUDGE_AGAIN_SECONDS = 60.0
"""Between two judgements at most, while anybody is pending."""
STATUS_SECONDS = 1.0
"""Between two writes of a status at least."""
SILENCE_SECONDS = 60.0
"""Kubernetes needs up to 50 s to call a silent Node Unknown. Until then Ready=True may be of the boot before."""
STILL_SICK = "it has not become healthy since its last remediation was over"
_ALL = "health checks"


@frozen
class HealthMemory:
    """The last judgements of this term by the names of checks, the rules that each is by, and when the next one is due.
    `overlaps`: see overlapping. `claimed` are the machines that bear a health check's claim; None before the first
    look. `requested` are the nodes whose remediation is requested, by whomever, and `over` those that are not
    back since theirs ended, each with the time of that."""

    judgements: Mapping[str, Judgement] = field(default_factory=dict)
    rules: Mapping[str, Rules] = field(default_factory=dict)
    sightings: Sightings = field(default_factory=dict)
    overlaps: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    changes: int = -1
    due_at: float = -math.inf
    claimed: frozenset[str] | None = None
    requested: frozenset[str] = frozenset()
    withdrawn: frozenset[str] = frozenset()
    """Those whose request this leader takes back: nothing has happened to them."""
    over: Mapping[str, float] = field(default_factory=dict)

    def is_starting(self, name: str, rules: Rules, now: float) -> bool:
        """Whether its remediation has ended, and its host still has time to come back: nodeStartupTimeout counts from
        then. A new leader counts from its own beginning."""
        since_at = self.over.get(name)
        return since_at is not None and (not rules.startup_seconds or now < since_at + rules.startup_seconds)

    def is_back(self, name: str, now: float) -> bool:
        """Whether it is healthy, and not only because its silence has not been noticed yet."""
        is_sick = any(name in each.sick for each in self.judgements.values())
        return not is_sick and now >= self.over.get(name, -math.inf) + SILENCE_SECONDS


@frozen
class Removed:
    """Whether the remediation object of a node that is healthy again is certainly gone."""

    done: bool = False


@frozen
class Paced:
    """When this was last done."""

    at: float = -math.inf


def health_checks(
    settings: Settings, observed: Observed, term: Term, now: float
) -> Iterator[tuple[NextAction | None, NodeMemory]]:
    """Yields all actions of all health checks. They are told by Events and by the status of the checks alone."""
    seen = observed.part(HealthSeen)
    memory = term.memories.get(_ALL, NodeMemory())
    health = remembered(memory.part(HealthMemory), seen, observed, now, term.draw.wallclock_seconds)
    electorates = Electorates(observed.roster)

    def view_of(key: str, node: str = "", machine_key: str = "") -> View:
        of_key = term.memories.get(key, NodeMemory())
        return View(settings, observed, electorates, term, of_key, node, machine_key, now)

    checks = [each for _, each in sorted(seen.checks.items())]
    outcomes = {
        check.name: summed_up(
            check,
            health.judgements.get(check.name, Judgement()),
            observed,
            health.overlaps.get(check.name, ()),
            [name for name in check.status.made if view_of(_about(check, name)).memory.part(Removed).done],
        )
        for check in checks
    }
    takers = _takers(checks, outcomes, observed)
    for check in checks:
        outcome = _left_to(check, outcomes[check.name], takers)
        for key, node, machine_key, step, sentence in _steps(check, outcome, observed, health, now):
            yield _quietly(view_of(key, node, machine_key), key, step, sentence)
        if outcome.status != check.status:
            judgement = health.judgements.get(check.name, Judgement())
            yield _status_written(view_of(check.key), check, outcome, judgement)
    withdrawals = list(_withdrawals(health, seen, observed, now)) if seen.listed else []
    for key, step, sentence, _ in withdrawals:
        yield _quietly(view_of(key), key, step, sentence)
    health = replace(health, withdrawn=frozenset(node for _, _, _, node in withdrawals if node))
    due_at = None if health.due_at == math.inf else health.due_at
    yield NextAction("", "", Stage.REMEDIATING, "judging", due_at=due_at, of=_ALL, quiet=True), memory.with_part(health)


def remembered(
    health: HealthMemory, seen: HealthSeen, observed: Observed, now: float, wallclock_seconds: float
) -> HealthMemory:
    """Judges again if something has changed, or time has passed that matters."""
    health = _followed(replace(health, claimed=_claimed(health, observed)), observed, now)
    rules = {name: check.rules for name, check in seen.checks.items() if isinstance(check.rules, Rules)}
    if health.changes == seen.changes and now < health.due_at:
        return health
    ages = Ages(health.sightings, now, wallclock_seconds)
    judgements = {}
    for name, by in rules.items():
        before = health.judgements.get(name, Judgement()) if health.rules.get(name) == by else Judgement()
        judgements[name] = judged(by, seen.nodes, before, ages)
    waits = {seconds for by in rules.values() for seconds in (SILENCE_SECONDS, by.startup_seconds)}
    back_at = (since_at + seconds for seconds in waits for since_at in health.over.values())
    due = [*(each.due_at for each in judgements.values()), *(at for at in back_at if at > now)]
    if min(due, default=math.inf) < math.inf:  # a clock that was set back may be right again long before
        due.append(now + JUDGE_AGAIN_SECONDS)
    return replace(
        health,
        judgements=judgements,
        rules=rules,
        sightings=ages.seen,
        overlaps=overlapping(judgements),
        changes=seen.changes,
        due_at=min(due, default=math.inf),
    )


def _followed(health: HealthMemory, observed: Observed, now: float) -> HealthMemory:
    """The memory, with the nodes whose remediation has ended since the last look, and without those that are back."""
    machines = (observed.machines.get(key) for key in observed.requests)
    requested = frozenset(found.machine.node or "" for found in machines if found is not None)
    left = {observed.machines[key].machine.node or "" for key in health.claimed or ()}
    over = {*(health.requested - requested - health.withdrawn), *left} - requested - health.over.keys()
    here = {name for name in health.over if name not in left and health.is_back(name, now)}
    if requested == health.requested and not over and not here:
        return health
    kept = {name: since_at for name, since_at in health.over.items() if name not in requested | here}
    ended = {**kept, **dict.fromkeys(over, now)}
    return replace(health, requested=requested, over=ended, due_at=-math.inf if over else health.due_at)


def _claimed(health: HealthMemory, observed: Observed) -> frozenset[str]:
    """A new leader looks at all machines once; then only at those that are requested, or were claimed, and those of
    nodes that are not healthy: a request may come and go between two looks."""
    keys: Iterable[str] = observed.machines
    if health.claimed is not None:
        sick = (observed.nodes.get(name) for each in health.judgements.values() for name in each.sick)
        machines = (seen.machine_key for seen in sick if seen is not None and isinstance(seen.machine_key, str))
        keys = {*health.claimed, *observed.requests, *machines}
    return frozenset(key for key in keys if _claim(observed.machines.get(key)) is not None)


def _claim(seen: MachineSeen | None) -> Claim | None:
    """The claim of a health check; None if there is none."""
    claim = None if seen is None else seen.host.claim
    return claim if isinstance(claim, Claim) and claim.is_of_check else None


def overlapping(judgements: Mapping[str, Judgement]) -> dict[str, tuple[str, ...]]:
    """The other checks that select one of the same nodes, by the name of the check."""
    found: dict[str, tuple[str, ...]] = {}
    for name, each in judgements.items():
        others = (other for other in judgements if other != name)
        found[name] = tuple(
            sorted(other for other in others if not each.selected.isdisjoint(judgements[other].selected))
        )
    return found


def _about(check: HealthCheck, name: str) -> str:
    """The key of what a check does about a node."""
    return f"{check.key} for {name}"


def _takers(
    checks: Iterable[HealthCheck], outcomes: Mapping[str, Outcome], observed: Observed
) -> Mapping[str, HealthCheck]:
    """The check that may remediate each node: the one that has begun, by its object or its claim, else the first."""
    takers: dict[str, HealthCheck] = {}
    for check in checks:
        for name in check.status.made:
            takers.setdefault(name, check)
    by_uid = {check.uid: check for check in checks}
    for check in checks:
        for name in outcomes[check.name].remediated:
            claim = _claim(_machine_of(name, observed))
            takers.setdefault(name, by_uid.get(claim.uid, check) if claim is not None else check)
    return takers


def _left_to(check: HealthCheck, outcome: Outcome, takers: Mapping[str, HealthCheck]) -> Outcome:
    """Without the nodes that another check remediates: each is remediated once."""
    remediated = {name: said for name, said in outcome.remediated.items() if takers[name] is check}
    by_template = isinstance(check.rules, Rules) and check.rules.template is not None
    made = tuple(sorted({*outcome.status.made, *(remediated if by_template else ())}))
    return replace(outcome, remediated=remediated, status=replace(outcome.status, made=made))


_Step = tuple[str, str, str, LeaderStep, str]
"""Its key, the Node and the machine that it is about, the step itself, and why."""


def _steps(
    check: HealthCheck, outcome: Outcome, observed: Observed, health: HealthMemory, now: float
) -> Iterator[_Step]:
    rules = check.rules
    if isinstance(rules, Unreadable):
        return
    for name, said in outcome.remediated.items():
        key = _about(check, name)
        if rules.template is not None:
            if name in check.status.made:  # stored first: whoever leads next knows that there may be one
                seen = observed.nodes.get(name)
                uid = "" if seen is None else seen.node.uid
                make = MakeRemediation(check, rules.template, name, uid, said.sentence)
                yield key, name, "", make, said.sentence
            continue
        if name in health.over:
            said = replace(said, sentence=f"{said.sentence}; {STILL_SICK}")
        request = _request(check, name, said, observed)
        if request is not None and not health.is_starting(name, rules, now):
            yield key, name, request.request.machine_key, request, said.sentence
    if rules.template is not None and not check.paused:
        for name in outcome.healed:
            step = RemoveRemediation(check, rules.template, name)
            yield _about(check, name), name, "", step, "its Node is healthy again"


def _request(check: HealthCheck, name: str, said: Opinion, observed: Observed) -> RequestRemediation | None:
    seen, found = observed.nodes.get(name), _machine_of(name, observed)
    if seen is None or found is None or why_later(name, observed):
        return None
    machine = found.machine
    claim = Claim(check.key, check.uid, "")
    request = AskFor(machine.machine_key, machine.uid, machine.resource_version, claim)
    return RequestRemediation(check, name, seen.node.uid, request, said.sentence)


def why_later(name: str, observed: Observed) -> str:
    """Why no remediation of this unhealthy Node is requested now; empty if it is."""
    seen, found = observed.nodes.get(name), _machine_of(name, observed)
    if seen is None:
        return "it is being remediated"
    if found is None or found.machine.node != name:
        return "its machine is not known"
    if not isinstance(found.machine.condemnation, NotRequested):
        return "it is requested already"
    if seen.away:
        return "its workloads are released already, and its host is not back"
    if _claim(found) is not None:
        return "its last remediation is over, and its host still has time to come back"
    return f"{found.host.paused} is on its machine" if found.host.paused else ""


def _machine_of(name: str, observed: Observed) -> MachineSeen | None:
    key = observed.nodes[name].machine_key if name in observed.nodes else None
    return observed.machines.get(key) if isinstance(key, str) else None


def _withdrawals(
    health: HealthMemory, seen: HealthSeen, observed: Observed, now: float
) -> Iterator[tuple[str, Withdraw, str, str]]:
    """Requests of health checks whose node is healthy again, or which are gone; and the claims that are left of them.
    A claim stays for as long as its host has time to come back: it tells the next leader that this is so. The last part
    is the node whose request is taken back, if it is one."""
    for key in sorted(health.claimed or ()):
        found, claim = observed.machines[key], _claim(observed.machines[key])
        condemnation = found.machine.condemnation
        if claim is None or not isinstance(condemnation, (Requested, NotRequested)):
            continue
        check = seen.checks.get(claim.of[len(CHECKS_CLAIM) :])
        standing = check is not None and check.uid == claim.uid and _is_sick(health, check, found.machine.node or "")
        by, node = health.rules.get("" if check is None else check.name), found.machine.node or ""
        if isinstance(condemnation, NotRequested):
            why = "its request is over"
            ended = by is None or not health.is_starting(node, by, now) or health.is_back(node, now)
        else:
            why, ended = "its Node is healthy again", not standing
        if ended:
            taken_back = node if isinstance(condemnation, Requested) else ""
            yield f"claim on {key}", Withdraw(key, found.machine.uid, claim.uid), why, taken_back


def _is_sick(health: HealthMemory, check: HealthCheck, node: str) -> bool:
    """Also while the check can't be read or is paused: then nobody says that the node is healthy."""
    judgement = health.judgements.get(check.name)
    if judgement is None or check.paused or node not in judgement.known:
        return True
    return node in judgement.sick


def _quietly(view: View, key: str, step: LeaderStep, sentence: str) -> tuple[NextAction, NodeMemory]:
    memory = view.memory
    if isinstance(step, MakeRemediation):
        due_at = memory.part(Paced).at + LOOK_AGAIN_SECONDS
        if view.now < due_at and not memory.trouble:
            waits = view.waits(Stage.REMEDIATING, sentence, due_at)
            return replace(waits, of=key, quiet=True), memory
        memory = memory.with_part(Paced(view.now)).with_part(Removed())
    if isinstance(step, RemoveRemediation) and memory.part(Removed).done:
        waits = view.waits(Stage.CLEARING, "its remediation object is gone")
        return replace(waits, of=key, quiet=True), memory
    return replace(view.does(Stage.REMEDIATING, step, f"{key}: {sentence}"), of=key, quiet=True), memory


def _status_written(
    view: View, check: HealthCheck, outcome: Outcome, judgement: Judgement
) -> tuple[NextAction, NodeMemory]:
    """Events report the conditions that have changed, and hosts that are not back."""
    due_at = view.memory.part(Paced).at + STATUS_SECONDS
    if view.now < due_at:
        waits = view.waits(Stage.REMEDIATING, "its status is written in a moment", due_at)
        return replace(waits, of=check.key, quiet=True), view.memory
    before = {of_type: (value, reason) for of_type, value, reason, _ in check.status.conditions}
    notices = []
    for of_type, value, reason, message in outcome.status.conditions:
        bad = (of_type == REMEDIATION_ALLOWED) == (value == "False")
        if before.get(of_type, ("", "")) != (value, reason) and (bad or of_type in before):
            notices.append((_NOTICES.get(reason, reason), message, bad))
    told_now = set(outcome.status.unhealthy).difference(check.status.unhealthy)
    not_back = tuple(
        (name, judgement.known[name][0].uid, said.sentence)
        for name, said in sorted(judgement.sick.items())
        if said.not_back and (name, said.reason, said.sentence) in told_now
    )
    step = SetStatus(check, outcome.status, tuple(notices), not_back)
    memory = view.memory.with_part(Paced(view.now))
    told = view.does(Stage.REMEDIATING, step, f"{check.key}: writing its status")
    return replace(told, of=check.key, quiet=True), memory


_NOTICES = {"TooManyUnhealthy": RESTRICTED, "Allowed": "RemediationAllowed", "None": "NotOverlapping"}
