"""No running host is reset when others remove the request's annotation alone, or Machines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pp_hostd.model.keys import EXTERNAL_REMEDIATION
from pp_hostd.model.promise import Withdrawn
from tests.harness.bed.host import Host
from tests.harness.cluster import Cluster
from tests.harness.controlplane import RealCluster
from tests.harness.embedded import EmbeddedCluster
from tests.harness.eventually import eventually
from tests.scenarios.leading import LeaderStage, now
from tests.scenarios.stage import shows

PATIENT: dict[str, Any] = {
    "machines": "openshift",
    "hosts": 6,
    "peers__round_seconds": 5.0,
    "watchdog__timeout_seconds": 20,
    "agent__self_timeout_seconds": 50.0,
}
"""A host that is cut off for some seconds lives on, also on a machine that stands still for much longer."""
SELF_TIMEOUT_SECONDS = 20.0
SIX = {
    **PATIENT,
    "peers__round_seconds": 1.0,
    "watchdog__timeout_seconds": 8,
    "agent__self_timeout_seconds": SELF_TIMEOUT_SECONDS,
}
MACHINES = "machines.machine.openshift.io"


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


@pytest.fixture
def removable() -> Iterator[tuple[RealCluster, LeaderStage]]:
    """A control plane of its own: others' tests need what is removed here."""
    with RealCluster.start() as cluster, LeaderStage.on(cluster, **SIX) as stage:
        yield cluster, stage


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
    healed_at = now()
    eventually(lambda: stage.is_well_since(spared, healed_at), "all is as before", 60)
    assert (stage.uid(spared), spared.boots) == (uid, boots)
    assert stage.contents.backup(spared.name) is None


def test_machines_that_are_deleted_under_armed_hosts_reset_nobody(stage: LeaderStage) -> None:
    hosts = stage.begin()
    boots = [host.boots for host in hosts]
    for host in hosts:
        stage.contents.delete(stage.contents.machines, host.name)
    _await_withdrawals(stage, hosts)
    _await_new_machines(stage, hosts)
    assert [host.boots for host in hosts] == boots


def test_machines_that_are_deleted_with_their_crd_reset_nobody(removable: tuple[RealCluster, LeaderStage]) -> None:
    """A host that reads between the last Machine's end and the CRD's withdraws at once. One that reads later takes a
    path that is not served for an outage, and withdraws when it is served again."""
    cluster, stage = removable
    hosts = stage.begin()
    cluster.remove_definition(MACHINES)
    until_at = now() + SELF_TIMEOUT_SECONDS
    eventually(lambda: all(_lives_on(stage, host, until_at) for host in hosts), "all found new proof, or withdrew", 90)
    stage.shows("listing machines: not found")
    cluster.restore_definition(MACHINES)
    _await_withdrawals(stage, hosts)
    _await_new_machines(stage, hosts)
    assert [host.boots for host in hosts] == [1] * len(hosts)


def _lives_on(stage: LeaderStage, host: Host, until_at: float) -> bool:
    """Unarmed, or armed and still fed at that moment by the majority's verdict."""
    assert host.is_up(), host.journal()[-3:]
    if isinstance(stage.contents.node(host.name).agent, Withdrawn):
        return now() > until_at
    fed = bool(host.watchdog("feed")[-1]["at"] > until_at)
    return fed and "the control plane is out, not this host" in host.status_text()


def _await_withdrawals(stage: LeaderStage, hosts: list[Host]) -> None:
    """Nobody is reset: each says so on its Node, and lives on unarmed."""

    def withdrawn(host: Host) -> bool:
        assert host.is_up(), host.journal()[-3:]
        return isinstance(stage.contents.node(host.name).agent, Withdrawn)

    eventually(lambda: all(map(withdrawn, hosts)), "all have withdrawn", 60)
    for host in hosts:
        shows(host, "is gone, and its Node untouched")
        assert host.kubelet_started() and host.watchdog()[-1]["event"] == "close"


def _await_new_machines(stage: LeaderStage, hosts: list[Host]) -> None:
    for host in hosts:
        stage.contents.make_machine(host.name)
    eventually(lambda: all(map(stage.is_well, hosts)), "all are armed again, for their new Machines", 60)
