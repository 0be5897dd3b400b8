"""Each health check's opinion on a node, in sentences for people."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from pp_hostd.kube.client import Json
from pp_hostd.leader.facts.nodes import NodeFacts, parse_node_facts
from pp_hostd.leader.requests.health_checks import HEALTH_CHECKS
from pp_hostd.leader.requests.health_checks.check import HealthCheck, HealthSeen, parse_health_check
from pp_hostd.leader.requests.health_checks.definitions import default_check
from pp_hostd.leader.requests.health_checks.report import Report, reports
from pp_hostd.model.backup import Backup
from pp_hostd.model.condemnation import Condemnation, NotRequested, Requested
from pp_hostd.model.keys import PAUSED_MACHINE, PAUSED_NODE, RECREATED
from pp_hostd.model.machine import Machine
from pp_hostd.model.machine_details import Claim, MachineDetails
from pp_hostd.model.moment import render_moment
from pp_hostd.model.node import Node
from pp_hostd.model.observed import BackupSeen, MachineSeen, NodeSeen, Observed

NOT_REQUESTED = NotRequested(0)
TEMPLATE = {
    "apiVersion": "pp-hostd.io/v1",
    "kind": "PoisonPillRemediationTemplate",
    "namespace": "pp-hostd",
    "name": "t",
}
AT = datetime(2026, 3, 1, 12, 0, tzinfo=timezone.utc)


def check(name: str = "workers", annotations: Json | None = None, **spec: Any) -> HealthCheck:
    made = default_check()
    metadata = {"name": name, "uid": name, "resourceVersion": "1", "generation": 2, "annotations": annotations or {}}
    found = parse_health_check({**made, "metadata": metadata, "spec": {**made["spec"], **spec}})
    assert isinstance(found, HealthCheck)
    return found


def node(
    name: str, status: str = "True", seconds: float = 0, reason: str = "", labels: Json | None = None
) -> NodeFacts:
    """A Node that has had this status of Ready for so long."""
    since = render_moment(AT - timedelta(seconds=seconds))
    ready = {"type": "Ready", "status": status, "lastTransitionTime": since, "reason": reason}
    metadata = {"name": name, "uid": name, "labels": labels or {}, "creationTimestamp": since}
    found = parse_node_facts({"metadata": metadata, "status": {"conditions": [ready]}}, {})
    assert isinstance(found, NodeFacts)
    return found


def observed(facts: list[NodeFacts], *checks: HealthCheck, **more: Any) -> Observed:
    seen = HealthSeen({each.name: each for each in checks}, {each.name: each for each in facts})
    return Observed(parts={HealthSeen: seen}, **more)


def beside(
    condemnation: Condemnation = NOT_REQUESTED, freed: int | None = None, **details: Any
) -> dict[str, dict[str, Any]]:
    """The Node w and its machine, as the leader sees them."""
    found = Node("w", "uid-1", "5", "192.0.2.1", None, None, tainted=False, unschedulable=False)
    machine = Machine("default", "w", "uid-1", "5", condemnation, "w")
    seen = MachineSeen(machine, 1, host=MachineDetails(**details))
    return {"nodes": {"w": NodeSeen(found, "default/w", freed=freed)}, "machines": {"default/w": seen}}


WELL = [node(f"well-{number}") for number in range(4)]
MASTER = node("w", labels={"node-role.kubernetes.io/control-plane": ""})
GONE = {"w": BackupSeen(Backup("w", "uid-0", 7, {}, {}, {}), "4")}
SLOW = {"type": "Ready", "status": "False", "timeout": "24h"}
CASES: dict[str, tuple[Observed, str]] = {
    "healthy": (observed([*WELL, node("w")], check()), "NodeHealthCheck workers takes it for healthy."),
    "pending": (
        observed([*WELL, node("w", "Unknown", 31)], check()),
        "NodeHealthCheck workers takes it for pending until 12:00:30 UTC: it has Ready=Unknown.",
    ),
    "pending until another day": (
        observed([*WELL, node("w", "False")], check(unhealthyConditions=[SLOW])),
        "pending until 2026-03-02T12:00:01Z: it has Ready=False.",
    ),
    "pending for good": (
        observed([*WELL, node("w", "Unknown", 3600, RECREATED)], check(nodeStartupTimeout="0")),
        "takes it for pending for as long as its host has not come back since it was remediated.",
    ),
    "unhealthy": (
        observed([*WELL, node("w", "Unknown", 61)], check(), **beside()),
        "NodeHealthCheck workers takes it for unhealthy: it has had Ready=Unknown for more than 60 s. "
        "It requests its remediation.",
    ),
    "unhealthy, and remediated by objects": (
        observed([*WELL, node("w", "Unknown", 61)], check(remediationTemplate=TEMPLATE)),
        "It requests its remediation.",
    ),
    "unhealthy, and requested": (
        observed([*WELL, node("w", "Unknown", 61)], check(), **beside(Requested(0))),
        "It requests nothing: it is requested already.",
    ),
    "unhealthy since its last remediation": (
        observed([*WELL, node("w", "Unknown", 61)], check(), **beside(claim=Claim("NodeHealthCheck workers", "u"))),
        "It requests nothing: its last remediation is over, and its host still has time to come back.",
    ),
    "unhealthy, and freed": (
        observed([*WELL, node("w", "Unknown", 61)], check(), **beside(freed=7)),
        "It requests nothing: its workloads are released already, and its host is not back.",
    ),
    "unhealthy, and its machine is left alone": (
        observed([*WELL, node("w", "Unknown", 61)], check(), **beside(paused=PAUSED_MACHINE)),
        "It requests nothing: cluster.x-k8s.io/paused is on its machine.",
    ),
    "unhealthy, and without a machine": (
        observed([*WELL, node("w", "Unknown", 61)], check(), nodes=beside()["nodes"]),
        "It requests nothing: its machine is not known.",
    ),
    "unhealthy, as too many are": (
        observed([*WELL[:2], *(node(name, "Unknown", 61) for name in ("a", "b", "w"))], check()),
        "for more than 60 s. It requests nothing: 3 of 5 Nodes are not healthy, and maxUnhealthy allows 40%: nobody "
        "is remediated.",
    ),
    "a check that is paused": (
        observed([*WELL, node("w", "Unknown", 61)], check(annotations={PAUSED_NODE: ""})),
        "It requests nothing: it is paused by the annotation pp-hostd.io/paused.",
    ),
    "a Node that is deleted": (
        observed(WELL, check(), backups=GONE),
        "unhealthy: the leader has deleted its Node, and recreates it. It requests nothing: it is being remediated.",
    ),
    "a check that can't be read": (
        observed([*WELL, node("w")], check(maxUnhealthy="some")),
        "NodeHealthCheck workers requests nothing: its spec is unreadable: maxUnhealthy is 'some'",
    ),
    "a node that is not selected": (
        observed([*WELL, MASTER], check()),
        "No NodeHealthCheck selects it, so it is remediated only if somebody else requests that (there is: workers;",
    ),
    "no check": (
        observed([*WELL, MASTER]),
        "somebody else requests that. To get one: pp-leader install --health-check.",
    ),
    "nothing that was read": (Observed(), "No NodeHealthCheck selects it"),
}


@pytest.mark.parametrize(("seen", "told"), CASES.values(), ids=CASES)
def test_the_opinion_on_a_node_is_one_sentence(seen: Observed, told: str) -> None:
    (sentence,) = HEALTH_CHECKS.explained(seen, "w", AT, None)
    assert told in sentence
    assert sentence.endswith(".") and not sentence.endswith("..")


def test_each_check_that_selects_a_node_is_heard() -> None:
    said = HEALTH_CHECKS.explained(observed([*WELL, node("w")], check("a"), check("b")), "w", AT, None)
    assert said == ["NodeHealthCheck a takes it for healthy.", "NodeHealthCheck b takes it for healthy."]


def only(seen: Observed) -> Report:
    (report,) = reports(seen, AT)
    return report


@pytest.mark.parametrize(("generation", "told"), [(-1, "No leader has judged"), (1, "since it was changed"), (2, "")])
def test_a_status_that_is_older_than_the_check_is_told(generation: int, told: str) -> None:
    made = check()
    stored = replace(made, status=replace(made.status, generation=generation))
    notes = only(observed(WELL, stored)).notes()
    assert len(notes) == bool(told)
    assert told in " ".join(notes)


def test_checks_that_overlap_are_told() -> None:
    first, second = reports(observed(WELL, check("a"), check("b")), AT)
    assert "b also select some of its Nodes" in " ".join(first.notes())
    assert "a also select some of its Nodes" in " ".join(second.notes())
