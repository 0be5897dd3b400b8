"""What others take away from under running hosts resets nobody: the request's annotation alone, and Machines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pp_hostd.model.keys import EXTERNAL_REMEDIATION
from pp_hostd.model.promise import Withdrawn
from tests.harness.cluster import Cluster
from tests.harness.embedded import EmbeddedCluster
from tests.harness.eventually import eventually
from tests.scenarios.leading import LeaderStage, now

PATIENT: dict[str, Any] = {
    "machines": "openshift",
    "hosts": 6,
    "peers__round_seconds": 5.0,
    "watchdog__timeout_seconds": 20,
    "agent__self_timeout_seconds": 50.0,
}
"""A host that is cut off for some seconds lives on, also on a machine that stands still for much longer."""


@pytest.fixture(scope="module")
def embedded_patient() -> Iterator[LeaderStage]:
    with EmbeddedCluster.start() as cluster, LeaderStage.on(cluster, **PATIENT) as stage:
        yield stage


@pytest.fixture(scope="module")
def real_patient(real_cluster: Cluster) -> Iterator[LeaderStage]:
    with LeaderStage.on(real_cluster, **PATIENT) as stage:
        yield stage


@pytest.fixture(params=["embedded", "real"])
def stage(request: pytest.FixtureRequest) -> LeaderStage:
    chosen: LeaderStage = request.getfixturevalue(f"{request.param}_patient")
    return chosen


@pytest.mark.parametrize("after_seconds", [0.0, 0.3, 1.0, 5.0])
def test_a_request_whose_annotation_alone_is_removed_resets_nobody_and_leaves_no_trace(
    stage: LeaderStage, after_seconds: float
) -> None:
    *_, spared = stage.begin()
    uid, boots = stage.uid(spared), spared.boots
    stage.bed.cut(spared.name)
    stage.request(spared)
    put_at = now()
    eventually(lambda: now() >= put_at + after_seconds, "that long after the request")
    gone = {"metadata": {"annotations": {EXTERNAL_REMEDIATION: None}}}
    stage.contents.patch(stage.contents.machines, spared.name, gone)
    stage.bed.heal()
    eventually(lambda: stage.is_well(spared), "all is as before", 60)
    assert (stage.uid(spared), spared.boots) == (uid, boots)
    assert stage.contents.backup(spared.name) is None


def test_machines_that_are_deleted_under_armed_hosts_reset_nobody(stage: LeaderStage) -> None:
    hosts = stage.begin()
    boots = [host.boots for host in hosts]
    for host in hosts:
        stage.contents.delete(stage.contents.machines, host.name)

    def withdrawn() -> bool:
        return all(isinstance(stage.contents.node(host.name).agent, Withdrawn) for host in hosts)

    eventually(withdrawn, "all have withdrawn", 60)
    assert [host.boots for host in hosts] == boots and all(host.is_up() and host.kubelet_started() for host in hosts)
    for host in hosts:
        stage.contents.make_machine(host.name)
    eventually(lambda: all(map(stage.is_well, hosts)), "all are armed again, for their new Machines", 60)
    assert [host.boots for host in hosts] == boots
