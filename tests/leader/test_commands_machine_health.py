"""`pp-leader health` and `explain` about MachineHealthChecks: what they think of Machines, and who carries them out."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from pp_hostd.kube.client import Json
from pp_hostd.kube.resources import (
    CAPI_CLUSTERS,
    CONFIG_MAPS,
    LEASES,
    MACHINE_HEALTH_CHECKS,
    MACHINES,
    NAMESPACES,
    NODES,
    Resource,
)
from pp_hostd.leader.requests.machine_health_checks.conditions import Spelling
from pp_hostd.model.keys import CLUSTER_NAME, EXTERNAL_REMEDIATION, LEADER, NAMESPACE, PAUSED_MACHINE, STATUS
from pp_hostd.model.leader_status import LeaderStatus
from pp_hostd.model.lease import LEASE, renewed_spec
from pp_hostd.model.moment import render_moment
from tests.contract.objects import annotate, sample
from tests.harness.controlplane import OTHERS, RealCluster
from tests.leader.access.attempts import Attempt
from tests.leader.desk import WHEN, Desk, any_desk
from tests.leader.health.mhc_objects import CLUSTER, OPENSHIFT, PLACE, V1BETA1, spec_of
from tests.leader.power.site import SPEC

__all__ = ["any_desk"]

NAMES = [f"worker-{number}" for number in range(1, 6)]
BECAUSE = "Condition Ready on Node is reporting status Unknown with reason KubeletSaysSo for more than 5m0s"
IN_BOTH = pytest.mark.parametrize("spelling", [OPENSHIFT, V1BETA1], ids=lambda each: each.value)


def api_of(spelling: Spelling) -> str:
    return "openshift" if spelling is OPENSHIFT else "cluster-api"


def checks_of(spelling: Spelling) -> Resource:
    return MACHINE_HEALTH_CHECKS[api_of(spelling)][-1]


@pytest.fixture
def desk(any_desk: Desk) -> Desk:
    fresh(any_desk)
    return any_desk


def fresh(desk: Desk) -> None:
    """Five Nodes that are Ready, each with a Machine of both APIs, no check, and nobody leads."""
    desk.remove(LEASES, LEASE)
    desk.remove(CONFIG_MAPS, LEADER)
    desk.world.create(NAMESPACES, "", {"metadata": {"name": PLACE}})
    desk.world.create(CAPI_CLUSTERS, "", {"metadata": {"name": CLUSTER}, "spec": {}}, PLACE)
    true = [{"type": each, "status": "True"} for each in ("ControlPlaneInitialized", "InfrastructureReady")]
    ready: Json = {"status": {"infrastructureReady": True, "conditions": true}}
    assert desk.world.make(Attempt("patch", CAPI_CLUSTERS, CLUSTER, ready, PLACE, "status")).ok
    for kind in (checks_of(OPENSHIFT), checks_of(V1BETA1)):
        for found in desk.world.make(Attempt("list", kind, "")).json()["items"]:
            desk.remove(kind, found["metadata"]["name"], PLACE)
    for name in NAMES:
        home = {"machine.openshift.io/machine": f"{PLACE}/{name}", "cluster.x-k8s.io/machine": name}
        capi = {"cluster.x-k8s.io/cluster-namespace": PLACE}
        desk.world.create(NODES, "", sample(NODES, name, annotations={**home, **capi}))
        for api in MACHINE_HEALTH_CHECKS:
            metadata = {"name": name, "labels": {"pool": "a", CLUSTER_NAME: CLUSTER}}
            desk.world.create(MACHINES[api][-1], "", {"metadata": metadata, "spec": SPEC[api]}, PLACE)
            status: Json = {"status": {"nodeRef": {"kind": "Node", "name": name}}}
            assert desk.world.make(Attempt("patch", MACHINES[api][-1], name, status, PLACE, "status")).ok
        reports(desk, name)


def reports(desk: Desk, name: str, status: str = "True", seconds: float = 0) -> None:
    """The Node has had this status of Ready for so long."""
    since = datetime.now(timezone.utc) - timedelta(seconds=seconds)
    ready = {"type": "Ready", "status": status, "lastTransitionTime": render_moment(since.replace(microsecond=0))}
    patch: Json = {"status": {"conditions": [{**ready, "reason": "KubeletSaysSo"}]}}
    assert desk.world.make(Attempt("patch", NODES, name, patch, subresource="status")).ok


def make(desk: Desk, spelling: Spelling, name: str = "workers", **more: Any) -> None:
    metadata = {"name": name, "annotations": more.pop("annotations", {})}
    body = {"metadata": metadata, "spec": spec_of(spelling, **more)}
    assert desk.world.make(Attempt("create", checks_of(spelling), "", body, PLACE)).status_code == 201


def lead(desk: Desk, api: str) -> None:
    """By a leader that carries out the MachineHealthChecks of this API, or none."""
    spec = renewed_spec("control-1", 3600, datetime.now(timezone.utc))
    desk.world.create(LEASES, "", {"metadata": {"name": LEASE}, "spec": spec}, NAMESPACE)
    status = LeaderStatus("control-1", WHEN, "enforce", 5, 1, "", (), machine_health_checks=api)
    desk.store(LEADER, {STATUS: status.render()})


def said_of(desk: Desk, *arguments: str) -> str:
    said = desk.run("health", *arguments)
    assert (said.code, said.complaint) == (0, "")
    assert max(map(len, said.output.splitlines())) <= 80
    return said.prose


def explained(desk: Desk, spelling: Spelling, node: str = "worker-1") -> str:
    return desk.run("explain", node, "--machines", api_of(spelling)).prose


@IN_BOTH
def test_the_check_of_a_leader_that_carries_it_out_has_its_counts(desk: Desk, spelling: Spelling) -> None:
    make(desk, spelling, most="40%")
    lead(desk, api_of(spelling))
    prose = said_of(desk)
    assert prose == (
        "MACHINEHEALTHCHECK MACHINES HEALTHY PENDING UNHEALTHY LIMIT REMEDIATION machines/workers 5 5 0 0 2 (40%) "
        "carried out by pp-leader; allowed "
    )
    opinion = "MachineHealthCheck machines/workers takes its Machine machines/worker-1 for healthy. "
    assert opinion in explained(desk, spelling)


@IN_BOTH
def test_machines_that_are_not_healthy_are_named_with_when_and_why(desk: Desk, spelling: Spelling) -> None:
    make(desk, spelling)
    lead(desk, api_of(spelling))
    reports(desk, "worker-1", "Unknown", seconds=400)
    reports(desk, "worker-2", "Unknown")
    prose = said_of(desk, "--check", f"{PLACE}/workers")
    assert "machines/workers 5 3 1 1 5 (100%) carried out by pp-leader; allowed" in prose
    assert f"machines/worker-1 worker-1 workers unhealthy {BECAUSE}" in prose
    assert "machines/worker-2 worker-2 workers pending until " in prose
    assert f"for unhealthy: {BECAUSE}. It has it remediated. " in explained(desk, spelling)
    assert "takes its Machine machines/worker-2 for pending until " in explained(desk, spelling, "worker-2")


@IN_BOTH
def test_a_limit_that_is_passed_and_a_pause_are_told(desk: Desk, spelling: Spelling) -> None:
    make(desk, spelling, "limited", most=1)
    make(desk, spelling, "paused", annotations={PAUSED_MACHINE: ""})
    lead(desk, api_of(spelling))
    for name in NAMES[:2]:
        reports(desk, name, "Unknown", seconds=400)
    prose = said_of(desk)
    limited = "2 of 5 Machines are not healthy, and maxUnhealthy allows 1: no Machine is remediated"
    assert f"not allowed: {limited}" in prose
    assert "not allowed: it is paused: MachineHealthCheck has the cluster.x-k8s.io/paused annotation" in prose
    assert f"It requests nothing: {limited}. " in explained(desk, spelling)


@IN_BOTH
def test_a_machine_under_remediation_is_pending(desk: Desk, spelling: Spelling) -> None:
    make(desk, spelling)
    lead(desk, api_of(spelling))
    reports(desk, "worker-1", "Unknown", seconds=400)
    kind = MACHINES[api_of(spelling)][-1]
    request = annotate(**{EXTERNAL_REMEDIATION: ""})
    assert desk.world.make(Attempt("patch", kind, "worker-1", request, PLACE)).ok
    told = f"for as long as its remediation is requested: {BECAUSE}"
    assert f"machines/worker-1 worker-1 workers pending {told}" in said_of(desk)
    assert f"for pending {told}. " in explained(desk, spelling)
    request = annotate(**{EXTERNAL_REMEDIATION: None})
    assert desk.world.make(Attempt("patch", kind, "worker-1", request, PLACE)).ok


@IN_BOTH
def test_a_check_that_nobody_carries_out_says_so(desk: Desk, spelling: Spelling) -> None:
    """A leader carries out those of one API at most."""
    make(desk, spelling)
    lead(desk, "cluster-api" if spelling is OPENSHIFT else "openshift")
    prose = said_of(desk)
    assert "carried out by nobody; allowed" in prose
    assert "Nobody carries out MachineHealthCheck machines/workers: " in prose
    assert "health.machine_health_checks" in prose
    assert "for healthy. Nobody carries it out. " in explained(desk, spelling)


def test_a_spec_that_cannot_be_read_is_told(desk: Desk) -> None:
    make(desk, OPENSHIFT, within="[2-1]")
    prose = said_of(desk)
    assert "machines/workers 0 0 0 0 ? carried out by nobody; not allowed: its spec" in prose
    assert "MachineHealthCheck machines/workers requests nothing: its spec" in explained(desk, OPENSHIFT)


def test_programs_get_it_as_json(desk: Desk) -> None:
    make(desk, OPENSHIFT, most=1)
    make(desk, V1BETA1, "pool")
    lead(desk, "openshift")
    reports(desk, "worker-1", "Unknown", seconds=400)
    reports(desk, "worker-2", "Unknown")
    told = json.loads(desk.run("health", "--json").output)
    check, other = told["checks"]
    (pending,) = check.pop("pending")
    assert (pending["machine"], pending["node"], pending["until"][-1]) == ("machines/worker-2", "worker-2", "Z")
    machine = {"machine": "machines/worker-1", "node": "worker-1", "reason": "UnhealthyNode", "because": BECAUSE}
    assert check == {
        "kind": "MachineHealthCheck",
        "namespace": PLACE,
        "name": "workers",
        "expected": 5,
        "healthy": 3,
        "limit": "1",
        "remediations_allowed": 0,
        "allowed": False,
        "why_not": "2 of 5 Machines are not healthy, and maxUnhealthy allows 1: no Machine is remediated",
        "carried_out_by": "pp-leader",
        "unhealthy": [machine],
        "notes": [],
    }
    assert (other["name"], other["carried_out_by"], other["remediations_allowed"]) == ("pool", None, 3)


def test_the_controller_that_has_written_the_status_is_named() -> None:
    """Which a real API server knows by the client that wrote."""
    with RealCluster.start() as cluster:
        desk = Desk(cluster)
        desk.install()
        fresh(desk)
        make(desk, OPENSHIFT)
        told: Json = {"status": {"expectedMachines": 5}}
        assert desk.world.make(Attempt("patch", checks_of(OPENSHIFT), "workers", told, PLACE, "status")).ok
        prose = said_of(desk)
        assert "carried out by python-requests; allowed" in prose
        assert "No leader acts on this: nobody leads." in prose
        assert "for healthy. python-requests carries it out. " in explained(desk, OPENSHIFT)
        desk.close()


def test_where_no_such_kind_is_served_there_is_none() -> None:
    of_ours = [each for each in OTHERS if each["spec"]["names"]["kind"] not in ("Machine", "MachineHealthCheck")]
    with RealCluster.start(definitions=of_ours) as cluster:
        desk = Desk(cluster)
        assert "There is no health check" in said_of(desk)
        desk.close()
