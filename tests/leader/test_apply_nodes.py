"""The leader's writes to Nodes: seen in the cluster, and refused when the Node is no longer what was looked at."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable

import pytest

from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.kubeconfig import Kubeconfig
from pp_hostd.kube.resources import NODES, Resource
from pp_hostd.leader.steps.nodes import (
    Complete,
    Condition,
    Cordon,
    DeleteNode,
    MarkFreeing,
    NoteRequest,
    Recreate,
    SetCondition,
    SetUnknown,
    Uncordon,
)
from pp_hostd.leader.steps.port import (
    NODE,
    LeaderStep,
)
from pp_hostd.model.condemnation import NotRequested, parse_condemnation
from pp_hostd.model.keys import CONFIRMED_DEAD
from pp_hostd.model.observed import NodeSeen, parse_node_seen
from pp_hostd.model.step import Written
from tests.agent.objects import Home
from tests.contract.objects import annotate, annotations_of, sample, uid_of, version_of
from tests.leader.applying import Actuators, backup_of, read

Step = Callable[[Json], LeaderStep]
"""From the Node as it was looked at."""

ARMED = Condition("pp-hostd.io/Protected", "True", "Armed", "resets itself")
CONDITIONAL: dict[str, Step] = {
    "cordon": lambda node: Cordon(node["metadata"]["name"], uid_of(node), version_of(node), 7),
    "mark": lambda node: MarkFreeing(node["metadata"]["name"], uid_of(node), version_of(node), 7, out_of_service=True),
    "unknown": lambda node: SetUnknown(node["metadata"]["name"], uid_of(node), version_of(node)),
    "condition": lambda node: SetCondition(node["metadata"]["name"], uid_of(node), version_of(node), ARMED),
    "note": lambda node: NoteRequest(node["metadata"]["name"], uid_of(node), version_of(node)),
    "delete": lambda node: DeleteNode(node["metadata"]["name"], uid_of(node), version_of(node)),
}
ON_THE_PRESENT_VERSION: dict[str, Step] = {
    "uncordon": lambda node: Uncordon(node["metadata"]["name"], uid_of(node)),
    "complete": lambda node: Complete(backup_of(node), uid_of(node)),
}
READ_FIRST: dict[str, Step] = {
    **ON_THE_PRESENT_VERSION,
    "cordon under another id": lambda node: Cordon(node["metadata"]["name"], uid_of(node), version_of(node), 8),
    "mark": CONDITIONAL["mark"],
}
EVERY = {**CONDITIONAL, **ON_THE_PRESENT_VERSION}
GPU = {"key": "example.com/gpu", "effect": "NoSchedule"}


@pytest.fixture
def home(client: ApiClient, namespace: str) -> Home:
    return Home(client, "node", namespace)


@pytest.fixture
def actuators(home: Home) -> Actuators:
    return Actuators(home)


async def create(client: ApiClient, name: str, **metadata: Any) -> Json:
    body = sample(NODES, name, **metadata)
    return await client.create(NODES, {**body, "spec": {"taints": [GPU], "podCIDR": "10.1.0.0/24"}})


async def seen(client: ApiClient, name: str) -> NodeSeen:
    found = parse_node_seen(await client.get(NODES, name), "node")
    assert isinstance(found, NodeSeen)
    return found


def taints_of(node: Json) -> dict[str, str]:
    return {taint["key"]: taint.get("value", "") for taint in node["spec"].get("taints", [])}


async def cordoned(actuators: Actuators, client: ApiClient, name: str) -> Json:
    await actuators.done(CONDITIONAL["cordon"](await create(client, name, annotations={"owner": "db"})))
    return await client.get(NODES, name)


async def test_a_cordoned_node_is_unschedulable_and_tainted_beside_its_other_taints(
    actuators: Actuators, client: ApiClient, unique: str
) -> None:
    created = await create(client, unique)
    await actuators.done(CONDITIONAL["cordon"](created))
    now = await seen(client, unique)
    assert (now.node.unschedulable, now.node.tainted, now.cordoned_by_us) == (True, True, True)
    assert taints_of(await client.get(NODES, unique)) == {**taints_of(created), "pp-hostd.io/condemned": "7"}
    assert actuators.shown == [(NODE, unique, version_of(created))]


async def test_a_node_cordoned_under_another_id_gets_the_new_one(
    actuators: Actuators, client: ApiClient, unique: str
) -> None:
    before = await cordoned(actuators, client, unique)
    await actuators.done(Cordon(unique, uid_of(before), version_of(before), 8))
    assert taints_of(await client.get(NODES, unique))["pp-hostd.io/condemned"] == "8"
    assert (await seen(client, unique)).cordoned_by_us


async def test_what_is_already_so_is_not_written_and_not_waited_for(
    actuators: Actuators, client: ApiClient, unique: str
) -> None:
    before = await cordoned(actuators, client, unique)
    actuators.shown.clear()
    requests = client.requests
    await actuators.done(CONDITIONAL["cordon"](before))
    assert (client.requests, actuators.shown) == (requests + 1, [])


async def test_uncordoned_the_node_is_as_it_was(actuators: Actuators, client: ApiClient, unique: str) -> None:
    before = await cordoned(actuators, client, unique)
    await actuators.done(CONDITIONAL["mark"](before))
    await client.patch(NODES, unique, annotate(**{CONFIRMED_DEAD: "a word"}))
    await actuators.done(CONDITIONAL["note"](await client.get(NODES, unique)))
    marked = await seen(client, unique)
    assert (marked.node.freeing, marked.out_of_service, marked.requested_again) == (7, True, True)
    await actuators.done(Uncordon(unique, uid_of(before)))
    now = await seen(client, unique)
    assert not now.marked and not now.out_of_service and not now.node.unschedulable
    after = await client.get(NODES, unique)
    assert taints_of(after).keys() == {"example.com/gpu", "node.kubernetes.io/not-ready"}
    assert annotations_of(after) == {"owner": "db"}


async def test_a_node_is_deleted(actuators: Actuators, client: ApiClient, unique: str) -> None:
    created = await create(client, unique)
    await actuators.done(CONDITIONAL["delete"](created))
    assert await read(client, NODES, unique) is None
    assert actuators.shown == [(NODE, unique, version_of(created))]


@pytest.mark.parametrize("machines", ["node", "openshift"])
async def test_a_deleted_node_is_made_anew_without_its_marks(
    client: ApiClient, namespace: str, unique: str, machines: str
) -> None:
    actuators = Actuators(Home(client, machines, namespace))
    before = await cordoned(actuators, client, unique)
    backup = backup_of(before)
    await actuators.done(CONDITIONAL["delete"](before))
    await actuators.done(Recreate(backup))
    after, now = await client.get(NODES, unique), await seen(client, unique)
    assert now.freed == 7 and not now.marked and not now.node.unschedulable
    assert after["spec"]["podCIDR"] == "10.1.0.0/24"
    assert taints_of(after).keys() == {"example.com/gpu", "node.kubernetes.io/not-ready"}
    assert annotations_of(after)["owner"] == "db"
    last_id = 7 if machines == "node" else 0
    assert parse_condemnation(after["metadata"]) == NotRequested(last_id)
    assert uid_of(after) != uid_of(before)
    assert actuators.shown[-1] == (NODE, unique, None)


def conditions_of(node: Json) -> list[tuple[str, str]]:
    return [(each["type"], each["status"]) for each in node.get("status", {}).get("conditions", [])]


async def test_a_node_that_is_made_anew_is_unknown_until_its_kubelet_reports(
    actuators: Actuators, client: ApiClient, unique: str
) -> None:
    backup = backup_of(await create(client, unique))
    await client.delete(NODES, unique)
    await actuators.done(Recreate(backup))
    assert conditions_of(await client.get(NODES, unique)) == [("Ready", "Unknown")]
    assert (await seen(client, unique)).conditioned


async def test_a_node_without_a_ready_condition_gets_one_that_says_unknown(
    actuators: Actuators, client: ApiClient, unique: str
) -> None:
    created = await create(client, unique)
    assert not (await seen(client, unique)).conditioned
    await actuators.done(CONDITIONAL["unknown"](created))
    assert conditions_of(await client.get(NODES, unique)) == [("Ready", "Unknown")]


async def test_a_node_that_is_there_again_is_not_made_anew(
    actuators: Actuators, client: ApiClient, unique: str
) -> None:
    created = await create(client, unique)
    assert "already exists" in await actuators.refused(Recreate(backup_of(created)))
    assert await client.get(NODES, unique) == created


async def test_a_node_that_came_back_by_itself_is_completed_once(
    actuators: Actuators, client: ApiClient, unique: str
) -> None:
    backup = backup_of(await create(client, unique, labels={"zone": "a", "rack": "1"}, annotations={"owner": "db"}))
    await client.delete(NODES, unique)
    back = await client.create(NODES, {"metadata": {"name": unique, "labels": {"zone": "b"}}})
    await actuators.done(Complete(backup, uid_of(back)))
    after = await client.get(NODES, unique)
    assert after["metadata"]["labels"] == {"zone": "b", "rack": "1"}
    assert annotations_of(after)["owner"] == "db"
    assert taints_of(after).keys() == {"example.com/gpu", "node.kubernetes.io/not-ready"}
    assert after["spec"]["podCIDR"] == "10.1.0.0/24"
    assert (await seen(client, unique)).freed == 7
    ended = await actuators.do(Complete(backup, uid_of(back)))
    assert (ended.written, ended.sentence) == (
        Written.CONFLICT,
        f"Node {unique} is so already, and the watch has not shown it yet",
    )
    assert await client.get(NODES, unique) == after
    assert len(actuators.shown) == 1


@pytest.mark.parametrize("step", CONDITIONAL.values(), ids=CONDITIONAL)
async def test_a_node_that_has_changed_since_is_a_conflict(
    actuators: Actuators, client: ApiClient, unique: str, step: Step
) -> None:
    looked_at = await create(client, unique)
    changed = await client.patch(NODES, unique, annotate(promise="withdrawn"))
    assert await actuators.refused(step(looked_at))
    assert await client.get(NODES, unique) == changed


@pytest.mark.parametrize("step", EVERY.values(), ids=EVERY)
async def test_another_incarnation_of_the_node_is_a_conflict(
    actuators: Actuators, client: ApiClient, unique: str, step: Step
) -> None:
    first = await cordoned(actuators, client, unique)
    actuators.shown.clear()
    await client.delete(NODES, unique)
    second = await create(client, unique)
    mixed = {**second, "metadata": {**second["metadata"], "uid": uid_of(first)}}
    assert await actuators.refused(step(mixed))
    assert await client.get(NODES, unique) == second


@pytest.mark.parametrize("step", EVERY.values(), ids=EVERY)
async def test_a_node_that_is_gone_is_a_conflict(
    actuators: Actuators, client: ApiClient, unique: str, step: Step
) -> None:
    created = await create(client, unique)
    await client.delete(NODES, unique)
    assert "not found" in await actuators.refused(step(created))


class Overtaken(ApiClient):
    """Somebody else changes each object just after it was read."""

    async def get(self, resource: Resource, name: str, **options: Any) -> Json:
        found = await super().get(resource, name, **options)
        await self.patch(resource, name, annotate(promise="withdrawn"))
        return found


@pytest.mark.parametrize("step", READ_FIRST.values(), ids=READ_FIRST)
async def test_a_node_that_changes_between_read_and_write_is_a_conflict(
    home: Home, kubeconfig_of: Callable[[str], Kubeconfig], unique: str, step: Step
) -> None:
    before = await cordoned(Actuators(home), home.client, unique)
    overtaken = Overtaken(kubeconfig_of("admin"), deadline_seconds=10)
    assert await Actuators(home, overtaken).refused(step(before))
    overtaken.close()
    after = await home.client.get(NODES, unique)
    assert annotations_of(after) == {**annotations_of(before), "promise": "withdrawn"}
    assert after["spec"] == before["spec"]


async def test_a_condition_is_set_beside_all_others_and_dated_by_its_last_change_of_status(
    actuators: Actuators, client: ApiClient, unique: str
) -> None:
    created = await create(client, unique)
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    old = {"type": ARMED.type, "status": "True", "reason": "Old", "lastTransitionTime": "2026-02-01T00:00:00Z"}
    before = await client.patch(NODES, unique, {"status": {"conditions": [old, ready]}}, subresource="status")
    await actuators.done(CONDITIONAL["condition"](before))
    after = await client.get(NODES, unique)
    condition, others = after["status"]["conditions"][0], after["status"]["conditions"][1:]
    assert Condition.of(condition) == ARMED
    assert condition["lastTransitionTime"] == "2026-02-01T00:00:00Z" < condition["lastHeartbeatTime"]
    assert others == before["status"]["conditions"][1:]
    assert after["spec"] == created["spec"]
    await actuators.done(SetCondition(unique, uid_of(after), version_of(after), replace(ARMED, status="False")))
    last = (await client.get(NODES, unique))["status"]["conditions"][0]
    assert last["lastTransitionTime"] == last["lastHeartbeatTime"]


async def test_a_condition_that_the_node_has_is_not_written_again(
    actuators: Actuators, client: ApiClient, unique: str
) -> None:
    await actuators.done(CONDITIONAL["condition"](await create(client, unique)))
    before, requests = await client.get(NODES, unique), client.requests
    await actuators.done(CONDITIONAL["condition"](before))
    assert client.requests == requests + 1
