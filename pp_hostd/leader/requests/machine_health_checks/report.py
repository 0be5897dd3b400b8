"""The opinion of every MachineHealthCheck at one moment, for people: judged as a leader does, by the wall clock alone.

Also of those that another controller carries out: it judges by the same fields.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from pp_hostd.frozen import frozen
from pp_hostd.leader.facts.ages import Ages
from pp_hostd.leader.requests.health_checks.judge import Health, Opinion
from pp_hostd.leader.requests.health_checks.report import LEADER, until
from pp_hostd.leader.requests.machine_health_checks.check import MachineHealthCheck
from pp_hostd.leader.requests.machine_health_checks.facts import MachineHealthSeen
from pp_hostd.leader.requests.machine_health_checks.judge import Judgement, Remediations, judged, targets
from pp_hostd.leader.requests.machine_health_checks.outcome import Outcome, summed_up
from pp_hostd.leader.requests.machine_health_checks.plan import standstill
from pp_hostd.leader.requests.machine_health_checks.remediations import under_remediation
from pp_hostd.leader.requests.machine_health_checks.rules import Rules
from pp_hostd.model.leader_status import LeaderStatus
from pp_hostd.model.observed import Observed


@frozen
class MachineReport:
    """The opinion of one check on all its Machines, by their keys. `why_not` says why no Machine is remediated; empty
    if that is allowed. `carried_out_by` is empty if nobody carries the check out."""

    check: MachineHealthCheck
    outcome: Outcome
    why_not: str
    carried_out_by: str

    @property
    def limit(self) -> str:
        """Of the Machines that may be unhealthy, as the check says it and as their number."""
        rules = self.check.rules
        return rules.limit.brief(self.outcome.status.expected) if isinstance(rules, Rules) else "?"

    def with_health(self, health: Health) -> dict[str, Opinion]:
        judgement = self.outcome.judgement
        return {key: judgement.opinions[key] for key in judgement.of(health)}

    def node_of(self, machine_key: str) -> str:
        """The Node of this Machine; empty if it has none yet."""
        return self.outcome.judgement.targets[machine_key].machine.node

    def notes(self) -> list[str]:
        """Sentences about the check itself that its users should know."""
        if self.carried_out_by:
            return []
        return [
            f"Nobody carries out {self.check.key}: no other controller has written its status, and a leader does so "
            "only with health.machine_health_checks."
        ]


def reports(observed: Observed, at: datetime, leader: LeaderStatus | None) -> list[MachineReport]:
    """Of all MachineHealthChecks, by namespace and name. `leader` is the status of the active leader."""
    seen, seconds = observed.part(MachineHealthSeen), at.timestamp()
    remediations = under_remediation(Remediations(), observed, (), seen, seconds)
    return [_report(check, observed, remediations, seconds, leader) for _, check in sorted(seen.checks.items())]


def _report(
    check: MachineHealthCheck,
    observed: Observed,
    remediations: Remediations,
    seconds: float,
    leader: LeaderStatus | None,
) -> MachineReport:
    outcome = stands_still = standstill(check, observed)
    if isinstance(check.rules, Rules):
        selected = targets(check, check.rules, observed.part(MachineHealthSeen), remediations)
        judgement = judged(check, check.rules, selected, Ages({}, seconds, seconds))
        outcome = summed_up(check, check.rules, judgement)
    assert outcome is not None, "a check that can't be read stands still"
    by_leader = LEADER if leader is not None and leader.machine_health_checks == check.api else ""
    return MachineReport(check, outcome, (stands_still or outcome).why_not, check.writer or by_leader)


def sentences(observed: Observed, node: str, at: datetime, leader: LeaderStatus | None) -> Iterator[str]:
    """Of `pp-leader explain`: each check's opinion on the Machine of this Node."""
    for each in reports(observed, at, leader):
        judgement = each.outcome.judgement
        carried_out = "" if each.carried_out_by == LEADER else f" {each.carried_out_by or 'Nobody'} carries it out."
        if not isinstance(each.check.rules, Rules):
            yield f"{each.check.key} requests nothing: {each.why_not}.{carried_out}"
        for key in _of_node(judgement, node):
            said = judgement.opinions[key]
            yield f"{each.check.key} takes its Machine {key} for {_opinion(each, said, at)}.{carried_out}"


def _of_node(judgement: Judgement, node: str) -> list[str]:
    return [key for key, target in judgement.targets.items() if target.machine.node == node]


def _opinion(report: MachineReport, said: Opinion, at: datetime) -> str:
    if said.health is Health.PENDING:
        return f"pending {until(said, at)}"
    if said.health is Health.HEALTHY:
        return "healthy"
    then = f"It requests nothing: {report.why_not}" if report.why_not else "It has it remediated"
    return f"unhealthy: {said.sentence}. {then}"
