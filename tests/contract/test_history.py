"""The server answers with 410 for history that it has forgotten, and the client begins again."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Callable

import pytest

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.kubeconfig import Kubeconfig
from pp_hostd.kube.outcome import Outcome
from pp_hostd.kube.resources import CONFIG_MAPS, NAMESPACES
from pp_hostd.kube.watch import ChangeKind
from tests.contract.following import follow
from tests.contract.objects import annotate, config_map, name_of, names_of, version_of
from tests.contract.refusals import EXPIRED, refused
from tests.harness.cluster import Cluster

NAMES = ["a", "b", "c"]


@dataclass(frozen=True)
class Past:
    """The results of the reads before the server forgot."""

    namespace: str
    version: str
    continue_token: str


async def read_and_change(client: ApiClient) -> Past:
    """Three ConfigMaps in a namespace of their own: what a reader had seen before one of them changed."""
    namespace = name_of(await client.create(NAMESPACES, {"metadata": {"generateName": "contract-history-"}}))
    for name in NAMES:
        await client.create(CONFIG_MAPS, config_map(name), namespace=namespace)
    page = await client.page(CONFIG_MAPS, namespace=namespace, limit=2)
    await client.patch(CONFIG_MAPS, "a", annotate(changed="yes"), namespace=namespace)
    return Past(namespace, page.resource_version, page.continue_token)


@pytest.fixture(scope="module")
def past(cluster: Cluster, kubeconfig_of: Callable[[str], Kubeconfig]) -> Past:
    """Made, then forgotten; once for all cases, since the real server takes seconds to forget."""
    client = ApiClient(kubeconfig_of("admin"), deadline_seconds=10)
    read = asyncio.run(read_and_change(client))
    client.close()
    cluster.forget_history()
    return read


async def test_a_watch_from_a_forgotten_version_starts_anew(client: ApiClient, past: Past, unique: str) -> None:
    namespace = past.namespace
    async with follow(client, CONFIG_MAPS, namespace=namespace, resource_version=past.version) as following:
        assert (await following.interrupted()).error.outcome is Outcome.GONE
        snapshot = await following.snapshot()
        assert set(NAMES) <= set(names_of(snapshot.items))
        assert int(snapshot.resource_version) > int(past.version)
        created = await client.create(CONFIG_MAPS, config_map(unique), namespace=namespace)
        change = await following.change()
    assert (change.kind, change.object) == (ChangeKind.ADDED, created)


async def test_a_forgotten_continue_token_has_expired(client: ApiClient, past: Past) -> None:
    with refused(EXPIRED):
        token = past.continue_token
        await client.page(CONFIG_MAPS, namespace=past.namespace, limit=2, continue_token=token)


async def test_a_new_list_of_the_forgotten_is_whole(client: ApiClient, past: Past) -> None:
    listing = await client.list(CONFIG_MAPS, namespace=past.namespace, page_size=2)
    assert set(NAMES) <= set(names_of(listing.items))


async def test_the_condition_of_a_write_is_not_forgotten(client: ApiClient, past: Past) -> None:
    """Conflicts are about the object as it is, so an old version that is still current stays good."""
    read = await client.get(CONFIG_MAPS, "c", namespace=past.namespace)
    assert int(version_of(read)) <= int(past.version)
    assert await client.update(CONFIG_MAPS, read, namespace=past.namespace) == read
