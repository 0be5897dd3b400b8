"""`pp-leader health`: what the health checks of the cluster think of its Nodes now, and whether they may act on it."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from contextlib import closing
from datetime import datetime
from difflib import get_close_matches
from typing import Any

from pp_hostd.errors import UserError
from pp_hostd.leader.commands.administrator import Administrator
from pp_hostd.leader.commands.host import read_requests
from pp_hostd.leader.commands.status import Leadership, read_leadership
from pp_hostd.leader.requests.health_checks import HEALTH_CHECKS
from pp_hostd.leader.requests.health_checks.check import Rules
from pp_hostd.leader.requests.health_checks.judge import Health
from pp_hostd.leader.requests.health_checks.report import HOW_TO_GET_ONE, Report, due_moment, reports, until
from pp_hostd.model.moment import render_moment
from pp_hostd.model.settings import Settings
from pp_hostd.service.output import filled, now, say, say_json, table

SICK = (Health.UNHEALTHY, Health.PENDING)
NONE = "There is no NodeHealthCheck: a Node is remediated only if a person or another health check requests that."


def health(arguments: Namespace) -> int:
    with closing(Administrator(arguments.kubeconfig)) as administrator:
        observed = read_requests(administrator, Settings(), (HEALTH_CHECKS,))
        leadership = read_leadership(administrator, now())
    at = now()
    found = _named(arguments.check, reports(observed, at))
    if arguments.json:
        say_json({"leads": leadership.leads, "checks": [_as_json(each) for each in found]})
    else:
        say(_as_text(found, leadership, at))
    return 0


def _named(name: str | None, found: list[Report]) -> list[Report]:
    """All reports, or that of the check of this name."""
    names = [each.check.name for each in found]
    if name is None or name in names:
        return [each for each in found if name in (None, each.check.name)]
    close = get_close_matches(name, names)
    hint = f"Did you mean {' or '.join(close)}?" if close else "See: pp-leader health"
    raise UserError(f"there is no NodeHealthCheck {name}", hint if names else f"To get one: {HOW_TO_GET_ONE}")


def _as_json(report: Report) -> dict[str, Any]:
    status, check = report.outcome.status, report.check
    unhealthy, pending = (report.with_health(health) for health in SICK)
    return {
        "name": check.name,
        "nodes": status.expected,
        "healthy": status.healthy,
        "limit": _limit(report),
        "allowed": report.allowed,
        "why_not": report.why_not or None,
        "pending": [
            {
                "node": node,
                "until": due and render_moment(due),
                "because": said.sentence,
            }
            for node, said in pending.items()
            for due in [due_moment(said)]
        ],
        "unhealthy": [
            {"node": node, "reason": said.reason, "because": said.sentence} for node, said in unhealthy.items()
        ],
        "judged_by_leader": check.status.generation >= check.generation,
        "notes": report.notes(),
    }


def _as_text(found: list[Report], leadership: Leadership, at: datetime) -> str:
    if not found:
        return "\n".join([filled(NONE), f"To get one: {HOW_TO_GET_ONE}"])
    notes = [note for each in found for note in each.notes()]
    if not leadership.leads:
        notes.append(f"None of this is acted on: {leadership.sentence()}")
    parts = [_checks(found), _nodes(found, at), "\n".join(map(filled, notes))]
    return "\n\n".join(filter(None, parts))


def _checks(found: Iterable[Report]) -> str:
    rows = []
    for each in found:
        status = each.outcome.status
        unhealthy, pending = (len(each.with_health(health)) for health in SICK)
        counts = map(str, (status.expected, status.healthy, pending, unhealthy))
        allowed = f"not allowed: {each.why_not}" if each.why_not else "allowed"
        rows.append([each.check.name, *counts, _limit(each), allowed])
    return table(["NAME", "NODES", "HEALTHY", "PENDING", "UNHEALTHY", "LIMIT", "REMEDIATION"], rows)


def _limit(report: Report) -> str:
    """Of the Nodes that may be unhealthy, as the check says it and as their number."""
    rules = report.check.rules
    return rules.limit.brief(report.outcome.status.expected) if isinstance(rules, Rules) else "?"


def _nodes(found: Iterable[Report], at: datetime) -> str:
    rows = [
        [node, each.check.name, health.value, until(said, at) if health is Health.PENDING else said.sentence]
        for each in found
        for health in SICK
        for node, said in each.with_health(health).items()
    ]
    return table(["NODE", "CHECK", "HEALTH", "WHY"], rows) if rows else ""
