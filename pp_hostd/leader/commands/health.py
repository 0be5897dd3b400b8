"""`pp-leader health`: what the health checks of the cluster think of its Nodes and Machines now, and who acts on it."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime
from difflib import get_close_matches
from typing import Any, Union

from pp_hostd.errors import UserError
from pp_hostd.frozen import replace
from pp_hostd.kube.resources import MACHINE_HEALTH_CHECKS
from pp_hostd.leader.commands.administrator import Administrator
from pp_hostd.leader.commands.host import read_requests
from pp_hostd.leader.commands.status import read_leadership
from pp_hostd.leader.leadership import Leadership
from pp_hostd.leader.requests.health_checks import HEALTH_CHECKS
from pp_hostd.leader.requests.health_checks.judge import Health, Opinion
from pp_hostd.leader.requests.health_checks.report import HOW_TO_GET_ONE, LEADER, Report, due_moment, reports, until
from pp_hostd.leader.requests.machine_health_checks import MACHINE_HEALTH_CHECKS_OF_OTHERS
from pp_hostd.leader.requests.machine_health_checks.report import MachineReport
from pp_hostd.leader.requests.machine_health_checks.report import reports as machine_reports
from pp_hostd.model.moment import render_moment
from pp_hostd.model.observed import Observed
from pp_hostd.model.settings import Settings
from pp_hostd.service.output import filled, now, say, say_json, table

AnyReport = Union[Report, MachineReport]
SICK = (Health.UNHEALTHY, Health.PENDING)
NONE = "There is no health check: a Node is remediated only if a person or another program requests that."


def health(arguments: Namespace) -> int:
    with closing(Administrator(arguments.kubeconfig)) as administrator:
        observed = _observed(administrator)
        leadership = read_leadership(administrator, now())
    at = now()
    of_nodes = reports(observed[0], at)
    of_machines = [report for each in observed for report in machine_reports(each, at, leadership.leader)]
    found = _named(arguments.check, [*of_nodes, *of_machines])
    if arguments.json:
        say_json({"leads": leadership.leads, "checks": [_as_json(each) for each in found]})
    else:
        say(_as_text(found, leadership, at))
    return 0


def _observed(administrator: Administrator) -> list[Observed]:
    """One for each API of Machines that has health checks here; one of Nodes alone where there is none."""
    kinds = MACHINE_HEALTH_CHECKS.items()
    apis = [each for each, versions in kinds if any(map(administrator.serves, versions))] or ["node"]
    defaults, requesters = Settings(), (HEALTH_CHECKS, MACHINE_HEALTH_CHECKS_OF_OTHERS)
    return [
        read_requests(administrator, replace(defaults, api=replace(defaults.api, machines=each)), requesters)
        for each in apis
    ]


def _named(name: str | None, found: list[AnyReport]) -> list[AnyReport]:
    """All reports, or those of checks of this name, with or without its namespace."""
    chosen = [each for each in found if name in (None, each.check.name, _path(each))]
    if chosen or name is None:
        return chosen
    close = get_close_matches(name, dict.fromkeys(path for each in found for path in (each.check.name, _path(each))))
    hint = f"Did you mean {' or '.join(close)}?" if close else "See: pp-leader health"
    raise UserError(f"there is no health check {name}", hint if found else f"To get one: {HOW_TO_GET_ONE}")


def _kind(report: AnyReport) -> str:
    return report.check.key.partition(" ")[0]


def _path(report: AnyReport) -> str:
    """Its name, with the namespace if it has one."""
    return report.check.key.partition(" ")[2]


def _as_json(report: AnyReport) -> dict[str, Any]:
    status = report.outcome.status
    unhealthy, pending = (report.with_health(health).items() for health in SICK)
    told = {
        "kind": _kind(report),
        "namespace": _path(report).rpartition("/")[0] or None,
        "name": report.check.name,
        "expected": max(0, status.expected),
        "healthy": max(0, status.healthy),
        "limit": report.limit,
        "remediations_allowed": 0 if report.why_not else status.allowed,
        "allowed": not report.why_not,
        "why_not": report.why_not or None,
        "carried_out_by": report.carried_out_by or None,
        "pending": [
            {**_target(report, key), "until": due and render_moment(due), "because": said.sentence}
            for key, said in pending
            for due in [due_moment(said)]
        ],
        "unhealthy": [
            {**_target(report, key), "reason": said.reason, "because": said.sentence} for key, said in unhealthy
        ],
        "notes": report.notes(),
    }
    if isinstance(report, Report):
        told["judged_by_leader"] = report.check.status.generation >= report.check.generation
    return told


def _target(report: AnyReport, key: str) -> dict[str, str | None]:
    """The Node or Machine of this key."""
    if isinstance(report, Report):
        return {"node": key}
    return {"machine": key, "node": report.node_of(key) or None}


def _as_text(found: list[AnyReport], leadership: Leadership, at: datetime) -> str:
    if not found:
        return "\n".join([filled(NONE), f"To get one: {HOW_TO_GET_ONE}"])
    notes = [note for each in found for note in each.notes()]
    if not leadership.leads:
        others = any(each.carried_out_by not in ("", LEADER) for each in found)
        told = "No leader acts on this" if others else "None of this is acted on"
        notes.append(f"{told}: {leadership.sentence()}")
    of_nodes = [each for each in found if isinstance(each, Report)]
    of_machines = [each for each in found if isinstance(each, MachineReport)]
    parts = [
        _checks("NAME", "NODES", of_nodes),
        _checks("MACHINEHEALTHCHECK", "MACHINES", of_machines),
        _nodes(of_nodes, at),
        _machines(of_machines, at),
        "\n".join(map(filled, notes)),
    ]
    return "\n\n".join(filter(None, parts))


def _checks(name: str, selected: str, found: Sequence[AnyReport]) -> str:
    rows = []
    for each in found:
        status = each.outcome.status
        unhealthy, pending = (len(each.with_health(health)) for health in SICK)
        counts = map(str, (max(0, status.expected), max(0, status.healthy), pending, unhealthy))
        allowed = f"not allowed: {each.why_not}" if each.why_not else "allowed"
        by = "" if isinstance(each, Report) else f"carried out by {each.carried_out_by or 'nobody'}; "
        rows.append([_path(each), *counts, each.limit, f"{by}{allowed}"])
    return table([name, selected, "HEALTHY", "PENDING", "UNHEALTHY", "LIMIT", "REMEDIATION"], rows) if rows else ""


def _nodes(found: Sequence[Report], at: datetime) -> str:
    rows = [[key, _path(each), *_why(said, at)] for each in found for key, said in _sick(each)]
    return table(["NODE", "CHECK", "HEALTH", "WHY"], rows) if rows else ""


def _machines(found: Sequence[MachineReport], at: datetime) -> str:
    rows = [
        [key, each.node_of(key) or "-", each.check.name, *_why(said, at)] for each in found for key, said in _sick(each)
    ]
    return table(["MACHINE", "NODE", "CHECK", "HEALTH", "WHY"], rows) if rows else ""


def _sick(report: AnyReport) -> list[tuple[str, Opinion]]:
    return [each for health in SICK for each in report.with_health(health).items()]


def _why(said: Opinion, at: datetime) -> tuple[str, str]:
    return said.health.value, until(said, at) if said.health is Health.PENDING else said.sentence
