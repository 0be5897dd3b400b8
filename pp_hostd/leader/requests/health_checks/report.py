"""The opinion of every health check at one moment, for people: judged as the leader does, by the wall clock alone."""

from __future__ import annotations

import math
from datetime import datetime, timezone

from pp_hostd.frozen import frozen
from pp_hostd.leader.requests.health_checks.check import (
    OVERLAPPING,
    REMEDIATION_ALLOWED,
    HealthCheck,
    HealthSeen,
    Rules,
)
from pp_hostd.leader.requests.health_checks.definitions import FULL_NAME
from pp_hostd.leader.requests.health_checks.judge import Health, Judgement, Opinion
from pp_hostd.leader.requests.health_checks.outcome import DELETED, Outcome, summed_up
from pp_hostd.leader.requests.health_checks.plan import HealthMemory, remembered, why_later
from pp_hostd.model.moment import render_moment
from pp_hostd.model.observed import Observed

HOW_TO_GET_ONE = "pp-leader install --health-check"
LEADER = "pp-leader"
"""The one that carries out all NodeHealthChecks."""


@frozen
class Report:
    """The opinion of one check on all Nodes, and the outcome that follows from it."""

    check: HealthCheck
    judgement: Judgement
    outcome: Outcome
    carried_out_by = LEADER

    @property
    def limit(self) -> str:
        """Of the Nodes that may be unhealthy, as the check says it and as their number."""
        rules = self.check.rules
        return rules.limit.brief(self.outcome.status.expected) if isinstance(rules, Rules) else "?"

    def condition(self, of_type: str) -> tuple[str, str]:
        """Its status and message, as the leader would store them."""
        found = (each for each in self.outcome.status.conditions if each[0] == of_type)
        return next(((status, message) for _, status, _, message in found), ("", ""))

    @property
    def allowed(self) -> bool:
        return self.condition(REMEDIATION_ALLOWED)[0] == "True"

    @property
    def why_not(self) -> str:
        """Why nobody is remediated; empty if it is allowed."""
        return "" if self.allowed else self.condition(REMEDIATION_ALLOWED)[1]

    def with_health(self, health: Health) -> dict[str, Opinion]:
        """The Nodes that are so. One that the leader has deleted is unhealthy."""
        found = {name: said for name, said in self.judgement.sick.items() if said.health is health}
        if health is Health.UNHEALTHY:
            found.update({name: Opinion(health, "Remediating", DELETED) for name in self.outcome.missing})
        return dict(sorted(found.items()))

    def notes(self) -> list[str]:
        """Sentences about the check itself that its users should know."""
        check, said = self.check, []
        if check.status.generation < 1:
            rights = f"If that lasts, the leader may lack the right to: {HOW_TO_GET_ONE}"
            said.append(f"No leader has judged {check.key} yet. {rights}.")
        elif check.status.generation < check.generation:
            said.append(f"No leader has judged {check.key} since it was changed: its status is an old one.")
        overlapping, others = self.condition(OVERLAPPING)
        return [*said, f"{check.key}: {others}."] if overlapping == "True" else said


def reports(observed: Observed, at: datetime) -> list[Report]:
    """Of all health checks, by name."""
    seen, seconds = observed.part(HealthSeen), at.timestamp()
    health = remembered(HealthMemory(), seen, observed, seconds, seconds)
    found = []
    for name, check in sorted(seen.checks.items()):
        judgement = health.judgements.get(name, Judgement())
        outcome = summed_up(check, judgement, observed, health.overlaps.get(name, ()))
        found.append(Report(check, judgement, outcome))
    return found


def sentences(observed: Observed, node: str, at: datetime) -> list[str]:
    """Of `pp-leader explain`: each check's opinion on the Node, or that none selects it."""
    every = reports(observed, at)
    unreadable = [each for each in every if not isinstance(each.check.rules, Rules)]
    said = [f"{each.check.key} requests nothing: {each.why_not}." for each in unreadable]
    selecting = [each for each in every if node in (*each.judgement.selected, *each.outcome.missing)]
    said += [_sentence(each, node, at, observed) for each in selecting]
    if said:
        return said
    names = ", ".join(each.check.name for each in every)
    others = f" (there is: {names}; see kubectl edit {FULL_NAME})" if names else f". To get one: {HOW_TO_GET_ONE}"
    return [f"No NodeHealthCheck selects it, so it is remediated only if somebody else requests that{others}."]


def _sentence(report: Report, node: str, at: datetime, observed: Observed) -> str:
    thinks = f"{report.check.key} takes it for"
    pending, unhealthy = report.with_health(Health.PENDING), report.with_health(Health.UNHEALTHY)
    if node in pending:
        return f"{thinks} pending {until(pending[node], at)}."
    if node not in unhealthy:
        return f"{thinks} healthy."
    rules = report.check.rules
    by_object = isinstance(rules, Rules) and rules.template is not None
    why_not = report.why_not or ("" if by_object else why_later(node, observed))
    then = f"It requests nothing: {why_not}" if why_not else "It requests its remediation"
    return f"{thinks} unhealthy: {unhealthy[node].sentence}. {then}."


def until(said: Opinion, at: datetime) -> str:
    """Until when it is pending, with the date if that is another day's, and why."""
    due = due_moment(said)
    if due is None:
        return f"for as long as {said.sentence}"
    moment = f"{due:%H:%M:%S} UTC" if due.date() == at.date() else render_moment(due)
    return f"until {moment}: {said.sentence}"


def due_moment(said: Opinion) -> datetime | None:
    """When a pending one is unhealthy; None if it stays pending."""
    if said.due_at == math.inf:
        return None
    return datetime.fromtimestamp(said.due_at, timezone.utc).replace(microsecond=0)
