"""Cluster API's real manager has a sick host remedied by our object, with the rights that it really has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pp_hostd.kube.resources import NODES, POISON_PILL_REMEDIATIONS
from pp_hostd.model.keys import REQUESTED_BY
from tests.harness.bed.contents import MACHINE_NAMESPACE, Json
from tests.harness.bed.host import Host
from tests.harness.cluster_api import ClusterApi
from tests.harness.eventually import eventually
from tests.scenarios.health_checked import MACHINES, MANAGER_SECONDS, WORKERS, HealthChecked, health_checked
from tests.scenarios.leading import LeaderStage

OBJECTS = POISON_PILL_REMEDIATIONS
LONG_SECONDS = 600
RETRIES = 2


@pytest.fixture(scope="module")
def stage() -> Iterator[LeaderStage]:
    with ClusterApi.running() as cluster, health_checked(cluster) as stage:
        yield stage


def contents_of(stage: LeaderStage) -> HealthChecked:
    contents = stage.contents
    assert isinstance(contents, HealthChecked)
    return contents


def object_of(stage: LeaderStage, host: Host) -> Json:
    return stage.contents.find(OBJECTS, host.name) or {}


def phase(stage: LeaderStage, host: Host) -> str:
    return str(object_of(stage, host).get("status", {}).get("phase", ""))


def machine_of(stage: LeaderStage, host: Host) -> Json:
    return stage.contents.find(MACHINES, host.name) or {}


def says(machine: Json, kind: str) -> str:
    """The Machine's condition of this type, as status/reason; empty if there is none."""
    conditions: list[dict[str, Any]] = machine.get("status", {}).get("conditions", [])
    return next((f"{each['status']}/{each['reason']}" for each in conditions if each["type"] == kind), "")


def says_eventually(stage: LeaderStage, host: Host, kind: str, words: str) -> None:
    eventually(lambda: says(machine_of(stage, host), kind) == words, f"{kind} is {words}", MANAGER_SECONDS)


def test_it_deletes_our_object_once_the_host_is_back(stage: LeaderStage) -> None:
    *others, lost, _ = stage.begin()
    contents, uid = contents_of(stage), stage.uid(lost)
    contents.check_health(lost, retry_limit=0, timeout_seconds=LONG_SECONDS)
    before = machine_of(stage, lost)["metadata"]
    stage.bed.cut(lost.name)
    contents.lose(lost)
    stage.freed(lost, uid, MANAGER_SECONDS)
    stage.given_back(lost)
    eventually(lambda: phase(stage, lost) == "Waiting", "the object waits for the node")
    made = object_of(stage, lost)
    assert made["spec"] == {"retryLimit": 0, "timeoutSeconds": LONG_SECONDS}
    assert [owner["uid"] for owner in made["metadata"]["ownerReferences"]] == [before["uid"]]
    assert says(machine_of(stage, lost), "ExternallyRemediated") == "False/WaitingForRemediation"
    stage.bed.heal()
    stage.bed.boot(lost.name)
    eventually(lambda: stage.is_well(lost), "the host is back", 60)
    contents.report(lost.name, ready=True)
    eventually(lambda: not object_of(stage, lost), "the object is gone", MANAGER_SECONDS)
    after = machine_of(stage, lost)
    assert after["metadata"]["uid"] == before["uid"] and "deletionTimestamp" not in after["metadata"]
    assert says(after, "ExternallyRemediated") == "True/Succeeded"
    assert REQUESTED_BY not in after["metadata"]["annotations"] and contents.backup(lost.name) is None
    says_eventually(stage, lost, "HealthCheckSucceeded", "True/HealthCheckSucceeded")
    eventually(lambda: stage.is_well(lost), "all is as before")
    assert [host.boots for host in others] == [1] * len(others)


def test_a_host_that_stays_away_is_tried_again_and_then_left_to_the_machine_set_which_replaces_it(
    stage: LeaderStage,
) -> None:
    """The last: afterwards the host has no Machine."""
    *_, lost = stage.begin()
    contents, uid = contents_of(stage), machine_of(stage, lost)["metadata"]["uid"]
    contents.check_health(lost, RETRIES, timeout_seconds=5)
    lost.kill()
    contents.lose(lost)
    eventually(
        lambda: "deletionTimestamp" in machine_of(stage, lost).get("metadata", {}),
        "the MachineSet deletes the Machine",
        2 * MANAGER_SECONDS,
    )
    assert machine_of(stage, lost)["metadata"]["uid"] == uid
    says_eventually(stage, lost, "OwnerRemediated", "False/MachineDeleting")
    says_eventually(stage, lost, "ExternallyRemediated", "False/RemediationFailed")
    assert object_of(stage, lost)["status"]["retryCount"] == RETRIES
    assert phase(stage, lost) == "Deleting machine"
    contents.deprovision(lost)
    eventually(lambda: not machine_of(stage, lost), "the Machine is gone", MANAGER_SECONDS)
    eventually(lambda: not object_of(stage, lost), "our object went with it", MANAGER_SECONDS)
    eventually(lambda: contents.find(NODES, lost.name) is None, "the Node is gone", MANAGER_SECONDS)
    eventually(lambda: replacement(stage), "the MachineSet makes another Machine", MANAGER_SECONDS)


def replacement(stage: LeaderStage) -> str:
    """The name of the Machine that no host of ours has; empty if there is none."""
    workers = [
        machine["metadata"]["name"]
        for machine in stage.contents.items(MACHINES, MACHINE_NAMESPACE)
        if WORKERS.items() <= machine["metadata"]["labels"].items()
    ]
    return next((name for name in workers if name not in stage.bed.hosts), "")
