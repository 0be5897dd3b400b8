"""An eviction deletes a pod with its grace, and never another incarnation of it."""

from __future__ import annotations

import pytest

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.outcome import ApiError, Outcome
from pp_hostd.kube.resources import PODS
from tests.contract.objects import pod
from tests.contract.refusals import METHOD_NOT_ALLOWED, NOT_FOUND, refused


async def test_an_evicted_pod_keeps_its_grace_period(client: ApiClient, namespace: str) -> None:
    made = await client.create(PODS, pod("web", nodeName="worker-1"), namespace=namespace)
    answer = await client.evict("web", namespace=namespace, uid=made["metadata"]["uid"])
    kept = await client.get(PODS, "web", namespace=namespace)
    assert (answer["kind"], answer["status"]) == ("Status", "Success")
    assert kept["metadata"]["deletionGracePeriodSeconds"] == 30


async def test_a_pod_on_no_node_is_evicted_at_once(client: ApiClient, namespace: str) -> None:
    made = await client.create(PODS, pod("web"), namespace=namespace)
    await client.evict("web", namespace=namespace, uid=made["metadata"]["uid"])
    with refused(NOT_FOUND):
        await client.get(PODS, "web", namespace=namespace)


async def test_another_incarnation_is_not_evicted(client: ApiClient, namespace: str) -> None:
    """The real API tries such an eviction again for longer than anybody waits."""
    made = await client.create(PODS, pod("web", nodeName="worker-1"), namespace=namespace)
    with pytest.raises(ApiError) as refusal:
        await client.evict("web", namespace=namespace, uid="another")
    assert refusal.value.outcome in (Outcome.CONFLICT, Outcome.TIMED_OUT)
    assert await client.get(PODS, "web", namespace=namespace) == made


async def test_a_pod_that_is_not_there_can_t_be_evicted(client: ApiClient, namespace: str) -> None:
    with refused(NOT_FOUND):
        await client.evict("web", namespace=namespace, uid="gone")


async def test_evictions_are_only_made(client: ApiClient, namespace: str) -> None:
    await client.create(PODS, pod("web"), namespace=namespace)
    with refused(METHOD_NOT_ALLOWED):
        await client.request("GET", PODS.path(namespace, "web", "eviction"))
