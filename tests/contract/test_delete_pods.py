"""Pods on a node are deleted in two steps, so that their kubelet can stop them; a grace of 0 frees them at once."""

from __future__ import annotations

from datetime import datetime

import pytest

from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.resources import PODS
from tests.contract.following import follow
from tests.contract.objects import pod, version_of
from tests.contract.refusals import CONFLICT, NOT_FOUND, refused


def seconds(timestamp: str) -> float:
    return datetime.strptime(timestamp, "%Y-%m-%dT%H:%M:%S%z").timestamp()


async def bound(client: ApiClient, namespace: str, **spec: object) -> Json:
    return await client.create(PODS, pod("web", nodeName="worker-1", **spec), namespace=namespace)


async def check_gone(client: ApiClient, namespace: str) -> None:
    with refused(NOT_FOUND):
        await client.get(PODS, "web", namespace=namespace)


async def test_a_pod_on_a_node_stays_for_its_grace_period(client: ApiClient, namespace: str) -> None:
    await bound(client, namespace)
    answer = await client.delete(PODS, "web", namespace=namespace)
    kept = await client.get(PODS, "web", namespace=namespace)
    metadata = kept["metadata"]
    assert answer == kept and metadata["deletionGracePeriodSeconds"] == 30
    assert seconds(metadata["deletionTimestamp"]) >= seconds(metadata["creationTimestamp"]) + 30


async def test_the_pod_itself_says_how_long_its_grace_is(client: ApiClient, namespace: str) -> None:
    await bound(client, namespace, terminationGracePeriodSeconds=7)
    answer = await client.delete(PODS, "web", namespace=namespace)
    assert answer["metadata"]["deletionGracePeriodSeconds"] == 7


async def test_grace_can_be_shortened_but_not_extended(client: ApiClient, namespace: str) -> None:
    await bound(client, namespace)
    first = await client.delete(PODS, "web", namespace=namespace)
    assert await client.delete(PODS, "web", namespace=namespace, grace_period_seconds=60) == first
    shorter = await client.delete(PODS, "web", namespace=namespace, grace_period_seconds=5)
    assert shorter["metadata"]["deletionGracePeriodSeconds"] == 5
    assert shorter["metadata"]["deletionTimestamp"] < first["metadata"]["deletionTimestamp"]
    assert int(version_of(shorter)) > int(version_of(first))


async def test_a_grace_of_zero_removes_a_pod_at_once(client: ApiClient, namespace: str) -> None:
    await bound(client, namespace)
    await client.delete(PODS, "web", namespace=namespace, grace_period_seconds=0)
    await check_gone(client, namespace)


@pytest.mark.parametrize("node", ["worker-1", ""])
async def test_watchers_see_the_mark_before_the_end(client: ApiClient, node: str, namespace: str) -> None:
    async with follow(client, PODS, namespace=namespace) as following:
        await following.snapshot()
        await client.create(PODS, pod("web", nodeName=node), namespace=namespace)
        await client.delete(PODS, "web", namespace=namespace, grace_period_seconds=0)
        added, marked, deleted = await following.until_deleted()
    assert "deletionTimestamp" not in added.object["metadata"]
    for change in (marked, deleted):
        assert change.object["metadata"]["deletionGracePeriodSeconds"] == 0
    assert int(version_of(deleted.object)) > int(version_of(marked.object))


async def test_a_grace_of_zero_removes_a_pod_that_is_terminating(client: ApiClient, namespace: str) -> None:
    await bound(client, namespace)
    await client.delete(PODS, "web", namespace=namespace)
    await client.delete(PODS, "web", namespace=namespace, grace_period_seconds=0)
    await check_gone(client, namespace)


async def test_a_grace_of_zero_does_not_hurt_another_incarnation(client: ApiClient, namespace: str) -> None:
    created = await bound(client, namespace)
    with refused(CONFLICT):
        await client.delete(PODS, "web", namespace=namespace, grace_period_seconds=0, uid="another")
    assert await client.get(PODS, "web", namespace=namespace) == created


async def test_a_pod_on_no_node_goes_at_once(client: ApiClient, namespace: str) -> None:
    await client.create(PODS, pod("web"), namespace=namespace)
    answer = await client.delete(PODS, "web", namespace=namespace)
    assert (answer["kind"], answer["metadata"]["deletionGracePeriodSeconds"]) == ("Pod", 0)
    await check_gone(client, namespace)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_a_pod_that_has_ended_goes_at_once(client: ApiClient, phase: str, namespace: str) -> None:
    await bound(client, namespace)
    await client.patch(PODS, "web", {"status": {"phase": phase}}, namespace=namespace, subresource="status")
    await client.delete(PODS, "web", namespace=namespace)
    await check_gone(client, namespace)


async def test_a_finalizer_outlasts_a_grace_of_zero(client: ApiClient, namespace: str) -> None:
    await bound(client, namespace)
    hold = {"metadata": {"finalizers": ["example.com/hold"]}}
    await client.patch(PODS, "web", hold, namespace=namespace)
    answer = await client.delete(PODS, "web", namespace=namespace, grace_period_seconds=0)
    assert await client.get(PODS, "web", namespace=namespace) == answer
    await client.patch(PODS, "web", {"metadata": {"finalizers": None}}, namespace=namespace)
    await check_gone(client, namespace)


async def test_grace_outlasts_the_last_finalizer(client: ApiClient, namespace: str) -> None:
    await bound(client, namespace)
    hold = {"metadata": {"finalizers": ["example.com/hold"]}}
    await client.patch(PODS, "web", hold, namespace=namespace)
    await client.delete(PODS, "web", namespace=namespace)
    await client.patch(PODS, "web", {"metadata": {"finalizers": None}}, namespace=namespace)
    assert (await client.get(PODS, "web", namespace=namespace))["metadata"]["deletionTimestamp"]
