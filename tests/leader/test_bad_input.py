"""Bad input, as it stands in a cluster: nothing is freed on the strength of it, and an Event says what to do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pp_hostd.kube.resources import CONFIG_MAPS, NODES, OPENSHIFT_MACHINES, PODS
from pp_hostd.model.backup import Backup
from pp_hostd.model.keys import (
    AGENT,
    BACKUP_KEY,
    CONDEMNATION_ID,
    CONFIRMED_DEAD,
    EXTERNAL_REMEDIATION,
    FREED,
    FREEING,
    NAMESPACE,
    backup_name,
)
from tests.contract.objects import annotate, pod, sample, uid_of
from tests.leader.in_term import ADDRESSES, InOffice, in_term

TIME = "2026-03-01T12:00:00Z"


# Annotations


@pytest.mark.parametrize(
    "annotations",
    [
        {EXTERNAL_REMEDIATION: "yesterday"},
        {EXTERNAL_REMEDIATION: TIME},
        {EXTERNAL_REMEDIATION: TIME, CONDEMNATION_ID: "-1"},
        {CONDEMNATION_ID: "one"},
    ],
    ids=["no time", "no id", "an id below 1", "an id that is no number"],
)
@pytest.mark.parametrize("machines", ["openshift", "cluster-api", "node"])
async def test_a_condemnation_that_is_garbage_condemns_nobody(machines: str, annotations: dict[str, str]) -> None:
    async with in_term(machines) as leader:
        await leader.promise("worker-1", await leader.node("worker-1"))
        await leader.annotate_machine("worker-1", **annotations)
        told = "the condemnation is unreadable", "pp-leader absolve worker-1"
        await leader.warned(NODES, "worker-1", *told)
        if machines != "node":
            await leader.warned(leader.home.kind, "worker-1", *told, namespace="metal")
        assert await leader.left_alone("worker-1")


@pytest.mark.parametrize(
    ("key", "told"),
    [
        (FREEING, ("the freeing marker is unreadable", "Remove that annotation")),
        (FREED, ("the mark of a freed Node is unreadable", "remove the annotation pp-hostd.io/freed")),
        (CONFIRMED_DEAD, ("the confirmation is unreadable", "pp-leader confirm-dead worker-1")),
        (AGENT, ("the agent's record is unreadable", "pp-hostd")),
    ],
)
async def test_a_mark_on_a_node_that_is_garbage_is_told_of_and_means_nothing(key: str, told: tuple[str, ...]) -> None:
    async with in_term("openshift") as leader:
        await leader.node("worker-1")
        await leader.annotate_node("worker-1", **{key: "garbage"})
        await leader.request("worker-1")
        await leader.warned(NODES, "worker-1", *told)
        assert await leader.left_alone("worker-1")


@pytest.mark.parametrize("asked_for", [True, False])
async def test_a_promise_of_absurd_timeouts_is_none(asked_for: bool) -> None:
    async with in_term("openshift") as leader:
        await leader.promise("worker-1", await leader.node("worker-1"), self_timeout_seconds=1e9)
        told = "the agent's record is unreadable: T is 1000000000.0, not 1 to 3600 seconds"
        if asked_for:
            await leader.request("worker-1")
            await leader.warned(OPENSHIFT_MACHINES, "worker-1", told, "pp-leader confirm-dead", namespace="metal")
        await leader.warned(NODES, "worker-1", told)
        assert await leader.left_alone("worker-1")


# Machines and Nodes


async def test_a_machine_without_a_node_is_not_condemned() -> None:
    async with in_term("openshift") as leader:
        await leader.home.create_machine("worker-1", node=None)
        await leader.request("worker-1")
        told = "has no nodeRef", f"remove {EXTERNAL_REMEDIATION}"
        await leader.warned(OPENSHIFT_MACHINES, "worker-1", *told, namespace="metal")


async def test_a_node_whose_machine_has_no_node_is_in_no_roster_until_it_has_one() -> None:
    async with in_term("openshift") as leader:
        await leader.client.create(NODES, sample(NODES, "worker-1", annotations=leader.home.names_machine("worker-1")))
        await leader.client.patch(NODES, "worker-1", ADDRESSES, subresource="status")
        await leader.home.create_machine("worker-1", node=None)
        await leader.enrol("worker-1")
        await leader.warned(NODES, "worker-1", "not in the roster", "metal/worker-1 refers to no Node", "nodeRef")
        refers = {"status": {"nodeRef": {"kind": "Node", "name": "worker-1"}}}
        await leader.client.patch(OPENSHIFT_MACHINES, "worker-1", refers, namespace="metal", subresource="status")
        await leader.listed("worker-1")


async def test_a_machine_whose_node_has_no_possible_name_counts_as_missing() -> None:
    async with in_term("openshift") as leader:
        await leader.home.enrol("good")
        await leader.home.create_machine("worker-1", node="Worker_1")
        await leader.request("worker-1")
        told = "the machine is unreadable: name is 'Worker_1'", "Correct it"
        await leader.warned(OPENSHIFT_MACHINES, "worker-1", *told, namespace="metal")


@pytest.mark.parametrize("namespace", ["metal", "elsewhere"])
async def test_a_second_machine_for_a_node_is_not_condemned(namespace: str) -> None:
    async with in_term("openshift") as leader:
        await leader.promise("worker-1", await leader.node("worker-1"))
        second = replace(leader.home, namespace=namespace)
        await second.create_machine("second", node="worker-1")
        asked = annotate(**{EXTERNAL_REMEDIATION: ""})
        await leader.client.patch(OPENSHIFT_MACHINES, "second", asked, namespace=namespace)
        told = f"{namespace}/second refers to Node worker-1", "metal/worker-1", "Correct"
        await leader.warned(OPENSHIFT_MACHINES, "second", *told, namespace=namespace)
        await leader.warned(NODES, "worker-1", *told)
        assert await leader.left_alone("worker-1")


async def test_a_node_that_names_a_machine_of_another_namespace_is_in_no_roster() -> None:
    async with in_term("openshift") as leader:
        await leader.home.enrol("worker-1")
        await leader.client.patch(NODES, "worker-1", ADDRESSES, subresource="status")
        await leader.annotate_node("worker-1", **{"machine.openshift.io/machine": "elsewhere/worker-1"})
        await leader.enrol("worker-1")
        await leader.warned(NODES, "worker-1", "not in the roster", "elsewhere/worker-1")
        await leader.request("worker-1")
        await leader.warned(OPENSHIFT_MACHINES, "worker-1", "names elsewhere/worker-1", "Correct", namespace="metal")
        assert await leader.left_alone("worker-1")


async def test_a_node_without_an_address_is_in_no_roster_until_it_has_one() -> None:
    async with in_term("openshift") as leader:
        await leader.node("worker-1", addressed=False)
        await leader.warned(NODES, "worker-1", "not in the roster", "InternalIP", "kubelet")
        await leader.request("worker-1")
        await leader.warned(OPENSHIFT_MACHINES, "worker-1", "its agent has promised nothing", namespace="metal")
        assert await leader.left_alone("worker-1")
        await leader.client.patch(NODES, "worker-1", ADDRESSES, subresource="status")
        await leader.listed("worker-1")


async def test_an_enrolled_node_that_does_not_exist_is_told_of_under_its_name() -> None:
    async with in_term("node") as leader:
        await leader.enrol("worker-7")
        await leader.warned(NODES, "worker-7", "there is no such Node", "pp-leader unenroll worker-7")


# Backups


async def bear_workload(leader: InOffice) -> None:
    await leader.client.create(PODS, pod("workload", nodeName="worker-1"), namespace="metal")


async def store_backup(leader: InOffice, text: str) -> None:
    stored = {"metadata": {"name": backup_name("worker-1")}, "data": {BACKUP_KEY: text}}
    await leader.client.create(CONFIG_MAPS, stored, namespace=NAMESPACE)


@pytest.mark.parametrize("missing", [True, False])
@pytest.mark.parametrize("text", ["{", Backup("another", "uid", 7, {}, {}, {}).render()], ids=["garbage", "another's"])
async def test_a_backup_that_is_corrupt_restores_and_frees_nothing(text: str, missing: bool) -> None:
    async with in_term("node") as leader:
        await leader.node("worker-1")
        await bear_workload(leader)
        if missing:
            await leader.client.delete(NODES, "worker-1")
        await store_backup(leader, text)
        told = "ConfigMap pp-hostd/backup-worker-1: the backup is unreadable", "Correct or delete it"
        await leader.warned(NODES, "worker-1", *told)
        await leader.client.get(PODS, "workload", namespace="metal")
        await leader.client.get(CONFIG_MAPS, backup_name("worker-1"), namespace=NAMESPACE)


async def test_a_backup_of_another_uid_gives_the_node_what_it_lacks_and_frees_nothing() -> None:
    async with in_term("openshift") as leader:
        await leader.node("worker-1")
        await bear_workload(leader)
        before = await leader.client.get(NODES, "worker-1")
        backup = Backup("worker-1", "another-uid", 7, {"rack": "4"}, {}, {"providerID": "metal3://another"})
        await store_backup(leader, backup.render())
        await leader.told(NODES, "worker-1", "nothing is left to do")
        after = await leader.client.get(NODES, "worker-1")
        assert (uid_of(after), after["spec"]) == (uid_of(before), before["spec"])
        assert after["metadata"]["labels"]["rack"] == "4"
        assert "Node worker-1: completing the Node that came back" in [
            event["message"] for event in await leader.events(NODES, "worker-1")
        ]
        await leader.client.get(PODS, "workload", namespace="metal")
        assert await leader.left_alone("worker-1")


# Events


async def test_what_stays_wrong_is_told_once_and_not_at_every_turn() -> None:
    async with in_term("openshift") as leader:
        await leader.node("worker-1", addressed=False)
        await leader.promise("worker-1", await leader.client.get(NODES, "worker-1"), self_timeout_seconds=1e9)
        for name in ("worker-2", "worker-3"):  # each is a turn of its own at least
            await leader.node(name, addressed=False)
            await leader.warned(NODES, name, "InternalIP")
        counts = {event["message"]: event["count"] for event in await leader.events(NODES, "worker-1")}
        assert len(counts) == 2 and set(counts.values()) == {1}
