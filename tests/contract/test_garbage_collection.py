"""Objects that belong to others: what happens to them when their owners are deleted, where controllers run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.kubeconfig import Kubeconfig, load
from pp_hostd.kube.resources import CONFIG_MAPS, METAL3_REMEDIATIONS, NAMESPACES, OPENSHIFT_MACHINES
from tests.contract.following import follow, story
from tests.contract.objects import config_map, name_of, sample, uid_of
from tests.contract.refusals import NOT_FOUND, refused
from tests.harness.cluster import Cluster
from tests.harness.controlplane import RealCluster
from tests.harness.embedded import EmbeddedCluster


@pytest.fixture(scope="module", params=[EmbeddedCluster, RealCluster], ids=["embedded", "real"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Clusters of their own: the other cases must not be disturbed by controllers."""
    with request.param.start(controllers=True) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def kubeconfig(cluster: Cluster) -> Kubeconfig:
    return load(str(cluster.kubeconfig()))


@pytest.fixture
def client(kubeconfig: Kubeconfig) -> Iterator[ApiClient]:
    client = ApiClient(kubeconfig, deadline_seconds=10)
    yield client
    client.close()


@pytest.fixture
def namespace(client: ApiClient, unique: str) -> str:
    asyncio.run(client.create(NAMESPACES, {"metadata": {"name": unique}}))
    client.close()  # its connection belongs to the loop that has just ended
    return unique


def owned_by(*owners: Json, block: bool = False) -> list[Json]:
    return [
        {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": name_of(owner),
            "uid": uid_of(owner),
            "blockOwnerDeletion": block,
        }
        for owner in owners
    ]


async def create_owner(client: ApiClient, namespace: str, name: str = "owner") -> Json:
    return await client.create(CONFIG_MAPS, config_map(name), namespace=namespace)


async def test_what_is_owned_goes_after_its_owner(client: ApiClient, namespace: str) -> None:
    machine = await client.create(OPENSHIFT_MACHINES, sample(OPENSHIFT_MACHINES, "worker-1"), namespace=namespace)
    body = sample(METAL3_REMEDIATIONS, "worker-1", ownerReferences=owned_by(machine))
    async with follow(client, METAL3_REMEDIATIONS, namespace=namespace) as following:
        await following.snapshot()
        await client.create(METAL3_REMEDIATIONS, body, namespace=namespace)
        await client.delete(OPENSHIFT_MACHINES, "worker-1", namespace=namespace)
        with refused(NOT_FOUND):
            await client.get(OPENSHIFT_MACHINES, "worker-1", namespace=namespace)
        assert story(await following.until_deleted())[-1] == ("DELETED", "worker-1")


async def test_what_an_earlier_incarnation_owned_goes_too(client: ApiClient, namespace: str) -> None:
    first = await create_owner(client, namespace)
    await client.delete(CONFIG_MAPS, "owner", namespace=namespace)
    await create_owner(client, namespace)
    async with follow(client, CONFIG_MAPS, namespace=namespace) as following:
        await following.snapshot()
        body = config_map("owned", ownerReferences=owned_by(first))
        await client.create(CONFIG_MAPS, body, namespace=namespace)
        assert story(await following.until_deleted()) == [("ADDED", "owned"), ("DELETED", "owned")]
    await client.get(CONFIG_MAPS, "owner", namespace=namespace)


async def test_one_owner_of_two_is_enough_to_stay(client: ApiClient, namespace: str) -> None:
    owners = [await create_owner(client, namespace, name) for name in ("one", "two")]
    body = config_map("owned", ownerReferences=owned_by(*owners))
    await client.create(CONFIG_MAPS, body, namespace=namespace)
    async with follow(client, CONFIG_MAPS, namespace=namespace, field_selector="metadata.name=owned") as following:
        await following.snapshot()
        await client.delete(CONFIG_MAPS, "one", namespace=namespace)
        left = (await following.change()).object
    assert left["metadata"]["ownerReferences"] == owned_by(owners[1])


async def test_orphans_stay_and_forget_their_owner(client: ApiClient, namespace: str) -> None:
    owner = await create_owner(client, namespace)
    async with follow(client, CONFIG_MAPS, namespace=namespace) as following:
        await following.snapshot()
        body = config_map("owned", ownerReferences=owned_by(owner))
        await client.create(CONFIG_MAPS, body, namespace=namespace)
        await following.change()
        await client.delete(CONFIG_MAPS, "owner", namespace=namespace, propagation="Orphan")
        assert story(await following.until_deleted())[-1] == ("DELETED", "owner")
    orphan = await client.get(CONFIG_MAPS, "owned", namespace=namespace)
    assert "ownerReferences" not in orphan["metadata"]


async def test_in_the_foreground_the_owner_goes_last(client: ApiClient, namespace: str) -> None:
    owner = await create_owner(client, namespace)
    held = config_map("owned", ownerReferences=owned_by(owner, block=True), finalizers=["example.com/hold"])
    async with follow(client, CONFIG_MAPS, namespace=namespace, field_selector="metadata.name=owned") as following:
        await following.snapshot()
        await client.create(CONFIG_MAPS, held, namespace=namespace)
        await following.change()
        await client.delete(CONFIG_MAPS, "owner", namespace=namespace, propagation="Foreground")
        assert "deletionTimestamp" in (await following.change()).object["metadata"]
    dying = await client.get(CONFIG_MAPS, "owner", namespace=namespace)
    assert dying["metadata"]["finalizers"] == ["foregroundDeletion"]
    async with follow(client, CONFIG_MAPS, namespace=namespace) as following:
        await following.snapshot()
        await client.patch(CONFIG_MAPS, "owned", {"metadata": {"finalizers": None}}, namespace=namespace)
        assert story(await following.until_deleted())[-1] == ("DELETED", "owned")
        assert story(await following.until_deleted())[-1] == ("DELETED", "owner")
