"""A health check's remediation object, carried out by real leaders on real agents' hosts."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from pp_hostd.kube.resources import NODES, POISON_PILL_REMEDIATIONS
from tests.harness.bed.contents import MACHINE_NAMESPACE
from tests.harness.bed.host import Host
from tests.harness.cluster import Cluster
from tests.harness.embedded import EmbeddedCluster
from tests.harness.eventually import eventually
from tests.leader.external.medik8s import remediation_of
from tests.scenarios.leading import LeaderStage

KIND = POISON_PILL_REMEDIATIONS
OBJECTS: dict[str, Any] = {"machines": "openshift", "remediations__poison_pill": True}
BY_NODES = {**OBJECTS, "machines": "node"}
"""As medik8s makes them where Nodes stand for themselves."""
TEMPLATE = {
    "apiVersion": KIND.api_version,
    "kind": f"{KIND.kind}Template",
    "metadata": {"name": "reset", "namespace": MACHINE_NAMESPACE},
    "spec": {"template": {"spec": {"retryLimit": 0}}},
}


@pytest.fixture(
    scope="module",
    params=[("embedded", OBJECTS), ("real", OBJECTS), ("embedded", BY_NODES), ("real", BY_NODES)],
    ids=["embedded_objects", "real_objects", "embedded_nodes", "real_nodes"],
)
def stage(request: pytest.FixtureRequest) -> Iterator[LeaderStage]:
    """One after the other: two stages on one cluster would be in each other's way. On the real one with the rights that
    `pp-leader install --flows` gives."""
    api, settings = request.param
    with contextlib.ExitStack() as stack:
        if api == "embedded":
            cluster: Cluster = stack.enter_context(EmbeddedCluster.start())
        else:
            cluster = request.getfixturevalue("real_cluster")
        yield stack.enter_context(LeaderStage.on(cluster, **settings))


def make(stage: LeaderStage, host: Host) -> None:
    if stage.contents.machines is NODES:
        stage.contents.create(KIND, remediation_of(host.name, TEMPLATE), MACHINE_NAMESPACE)
        return
    machine = stage.contents.machine(host.name)
    owner = {"apiVersion": machine["apiVersion"], "kind": "Machine", "name": host.name}
    metadata = {"name": host.name, "ownerReferences": [{**owner, "uid": machine["metadata"]["uid"]}]}
    stage.contents.create(KIND, {"metadata": metadata, "spec": {"retryLimit": 0}}, MACHINE_NAMESPACE)


def found(stage: LeaderStage, host: Host) -> dict[str, Any]:
    return stage.contents.find(KIND, host.name) or {}


def phase(stage: LeaderStage, host: Host) -> str:
    return str(found(stage, host).get("status", {}).get("phase", ""))


def test_a_host_that_is_cut_off_is_freed_for_its_object_which_goes_when_the_health_check_deletes_it(
    stage: LeaderStage,
) -> None:
    *others, lost = stage.begin()
    uid = stage.uid(lost)
    stage.bed.cut(lost.name)
    make(stage, lost)
    stage.freed(lost, uid)
    assert not lost.is_up()
    stage.given_back(lost)
    eventually(lambda: phase(stage, lost) == "Waiting", "the object waits for the node")
    assert found(stage, lost)["metadata"]["finalizers"]
    stage.bed.heal()
    stage.bed.boot(lost.name)
    eventually(lambda: stage.is_well(lost), "the host is back", 30)
    stage.contents.delete(KIND, lost.name)
    eventually(lambda: not found(stage, lost), "the object is gone")
    assert [host.boots for host in others] == [1] * len(others)


def test_an_object_that_is_deleted_before_anything_is_freed_leaves_no_trace(stage: LeaderStage) -> None:
    *_, spared = stage.begin()
    uid = stage.uid(spared)
    stage.bed.cut(spared.name)
    make(stage, spared)
    stage.says(f"{spared.name}: at least half of")
    stage.contents.delete(KIND, spared.name)
    eventually(lambda: not found(stage, spared), "the object is gone")
    spared.await_down()
    stage.bed.heal()
    stage.bed.boot(spared.name)
    eventually(lambda: stage.is_well(spared), "all is as before", 30)
    assert stage.uid(spared) == uid
    assert stage.contents.backup(spared.name) is None
