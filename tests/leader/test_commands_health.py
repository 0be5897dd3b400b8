"""`pp-leader health`: the health checks of a cluster, each node that is not healthy, and whether anybody acts on it."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from pp_hostd.kube.client import Json
from pp_hostd.kube.resources import LEASES, NODE_HEALTH_CHECKS, NODES
from pp_hostd.leader.requests.health_checks.definitions import default_check
from pp_hostd.model.keys import NAMESPACE, PAUSED_NODE
from pp_hostd.model.lease import LEASE, renewed_spec
from pp_hostd.model.moment import render_moment
from tests.contract.objects import sample
from tests.harness.controlplane import OTHERS, RealCluster
from tests.leader.access.attempts import Attempt
from tests.leader.desk import Desk, any_desk

__all__ = ["any_desk"]

NAMES = [f"worker-{number}" for number in range(1, 6)]


@pytest.fixture(autouse=True)
def _fresh(any_desk: Desk) -> None:
    """Five Nodes that are Ready, no check, and nobody leads."""
    any_desk.remove(LEASES, LEASE)
    for found in any_desk.world.make(Attempt("list", NODE_HEALTH_CHECKS, "")).json()["items"]:
        any_desk.remove(NODE_HEALTH_CHECKS, found["metadata"]["name"], None)
    for name in NAMES:
        any_desk.world.create(NODES, "", sample(NODES, name))
        reports(any_desk, name)


def reports(desk: Desk, name: str, status: str = "True", seconds: float = 0) -> None:
    """The Node has had this status of Ready for so long."""
    since = datetime.now(timezone.utc) - timedelta(seconds=seconds)
    ready = {"type": "Ready", "status": status, "lastTransitionTime": render_moment(since.replace(microsecond=0))}
    patch: Json = {"status": {"conditions": [ready]}}
    assert desk.world.make(Attempt("patch", NODES, name, patch, subresource="status")).ok


def make(desk: Desk, name: str = "workers", annotations: Json | None = None, **spec: Any) -> None:
    made = default_check()
    metadata = {"name": name, "annotations": annotations or {}}
    body = {**made, "metadata": metadata, "spec": {**made["spec"], **spec}}
    assert desk.world.make(Attempt("create", NODE_HEALTH_CHECKS, "", body)).status_code == 201


def observe(desk: Desk, generation: int, name: str = "workers") -> None:
    """A leader has stored a status of this generation."""
    patch = {"status": {"observedGeneration": generation}}
    assert desk.world.make(Attempt("patch", NODE_HEALTH_CHECKS, name, patch, subresource="status")).ok


def lead(desk: Desk) -> None:
    spec = renewed_spec("control-1", 3600, datetime.now(timezone.utc))
    desk.world.create(LEASES, "", {"metadata": {"name": LEASE}, "spec": spec}, NAMESPACE)


def said_of(desk: Desk, *arguments: str) -> str:
    said = desk.run("health", *arguments)
    assert (said.code, said.complaint) == (0, "")
    assert max(map(len, said.output.splitlines())) <= 80
    return said.prose


def test_where_all_is_well_one_row_says_so(any_desk: Desk) -> None:
    make(any_desk)
    observe(any_desk, 1)
    lead(any_desk)
    assert said_of(any_desk) == (
        "NAME NODES HEALTHY PENDING UNHEALTHY LIMIT REMEDIATION workers 5 5 0 0 2 (40%) allowed "
    )


def test_nodes_that_are_not_healthy_are_named_with_when_and_why(any_desk: Desk) -> None:
    make(any_desk, unhealthyConditions=[{"type": "Ready", "status": "Unknown", "timeout": "720h"}])
    reports(any_desk, "worker-1", "Unknown", seconds=721 * 3600)
    reports(any_desk, "worker-2", "Unknown")
    prose = said_of(any_desk)
    assert "workers 5 3 1 1 2 (40%) allowed" in prose
    assert "worker-1 workers unhealthy it has had Ready=Unknown for more than 2592000 s" in prose
    assert "worker-2 workers pending until 20" in prose
    assert "it has Ready=Unknown" in prose


def test_a_limit_that_is_passed_and_a_pause_are_told(any_desk: Desk) -> None:
    make(any_desk, "limited")
    make(any_desk, "paused", {PAUSED_NODE: ""})
    for name in NAMES[:3]:
        reports(any_desk, name, "Unknown", seconds=100)
    prose = said_of(any_desk)
    assert "not allowed: 3 of 5 Nodes are not healthy, and maxUnhealthy allows 40%: nobody is remediated" in prose
    assert "not allowed: it is paused by the annotation pp-hostd.io/paused" in prose
    assert "NodeHealthCheck limited: paused also select some of its Nodes" in prose
    alone = said_of(any_desk, "--check", "paused")
    assert "maxUnhealthy allows 40%" not in alone and "worker-3 paused unhealthy" in alone


def test_programs_get_it_as_json(any_desk: Desk) -> None:
    make(any_desk, maxUnhealthy=1)
    reports(any_desk, "worker-1", "Unknown", seconds=100)
    reports(any_desk, "worker-2", "False")
    told = json.loads(any_desk.run("health", "--json").output)
    (check,) = told["checks"]
    (pending,) = check.pop("pending")
    assert told["leads"] is False
    assert len(check.pop("notes")) == 1
    assert (pending["node"], pending["because"], pending["until"][-1]) == ("worker-2", "it has Ready=False", "Z")
    because = "it has had Ready=Unknown for more than 60 s"
    assert check == {
        "kind": "NodeHealthCheck",
        "namespace": None,
        "name": "workers",
        "expected": 5,
        "healthy": 3,
        "limit": "1",
        "remediations_allowed": 0,
        "allowed": False,
        "why_not": "2 of 5 Nodes are not healthy, and maxUnhealthy allows 1: nobody is remediated",
        "carried_out_by": "pp-leader",
        "unhealthy": [{"node": "worker-1", "reason": "UnhealthyNode", "because": because}],
        "judged_by_leader": False,
    }


def test_without_a_check_it_says_how_to_get_one(any_desk: Desk) -> None:
    assert "There is no health check" in said_of(any_desk)
    assert "To get one: pp-leader install --health-check" in said_of(any_desk)
    assert json.loads(any_desk.run("health", "--json").output) == {"leads": False, "checks": []}
    refused = any_desk.run("health", "--check", "workers")
    assert (refused.code, "pp-leader install --health-check" in refused.complaint) == (2, True)


def test_a_check_that_does_not_exist_is_answered_with_names_like_it(any_desk: Desk) -> None:
    make(any_desk)
    refused = any_desk.run("health", "--check", "worker")
    assert (refused.code, "Did you mean workers?" in refused.complaint) == (2, True)


def test_it_says_who_has_not_judged_a_check_and_that_nobody_acts(any_desk: Desk) -> None:
    make(any_desk)
    prose = said_of(any_desk)
    assert "No leader has judged NodeHealthCheck workers yet." in prose
    assert "None of this is acted on: nobody leads." in prose
    observe(any_desk, 1)
    patch = {"spec": {"maxUnhealthy": 2}}
    assert any_desk.world.make(Attempt("patch", NODE_HEALTH_CHECKS, "workers", patch)).ok
    lead(any_desk)
    prose = said_of(any_desk)
    assert "No leader has judged NodeHealthCheck workers since it was changed: its status is an old one." in prose
    assert "nobody leads" not in prose


def test_explain_tells_what_the_checks_think_of_a_node(any_desk: Desk) -> None:
    make(any_desk)
    reports(any_desk, "worker-1", "Unknown", seconds=100)
    prose = any_desk.run("explain", "worker-1", "--machines", "node").prose
    assert "NodeHealthCheck workers takes it for unhealthy: it has had Ready=Unknown for more than 60 s." in prose
    assert "It requests its remediation." in prose


def test_where_the_kind_is_not_defined_it_says_the_same_as_without_a_check() -> None:
    with RealCluster.start(definitions=OTHERS) as cluster:
        desk = Desk(cluster)
        assert "To get one: pp-leader install --health-check" in said_of(desk)
        desk.world.create(NODES, "", sample(NODES, "worker-1"))
        prose = desk.run("explain", "worker-1", "--machines", "node").prose
        assert "To get one: pp-leader install --health-check." in prose
        desk.close()
