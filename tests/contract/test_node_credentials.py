"""A node's own credentials allow it itself, its lease and its pods, and nothing that could undo a condemnation."""

from __future__ import annotations

from typing import Callable

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.resources import CONFIG_MAPS, EVENTS, LEASES, NODES, OPENSHIFT_MACHINES, PODS
from tests.contract.following import follow
from tests.contract.objects import annotate, annotations_of, config_map, names_of, pod, sample, version_of
from tests.contract.refusals import FORBIDDEN, all_refused, refused

ClientOf = Callable[[str], ApiClient]
NODE_LEASES = "kube-node-lease"
READY = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}


async def test_a_node_writes_its_own_node_and_its_status(client: ApiClient, client_of: ClientOf, unique: str) -> None:
    created = await client.create(NODES, sample(NODES, unique))
    node = client_of(f"system:node:{unique}")
    assert await node.get(NODES, unique) == created
    promise = {"metadata": {"resourceVersion": version_of(created), "annotations": {"pp-hostd.io/agent": "armed"}}}
    patched = await node.patch(NODES, unique, promise)
    assert annotations_of(patched) == {"pp-hostd.io/agent": "armed"}
    await node.update(NODES, patched)
    reported = await node.patch(NODES, unique, READY, subresource="status")
    assert reported["status"]["conditions"][0]["status"] == "True"


async def test_a_node_may_register_itself_and_no_other(client_of: ClientOf, unique: str) -> None:
    node = client_of(f"system:node:{unique}")
    await node.create(NODES, sample(NODES, unique))
    with refused(FORBIDDEN):
        await node.create(NODES, sample(NODES, f"{unique}-other"))


async def test_a_node_does_not_delete_even_its_own_node(client: ApiClient, client_of: ClientOf, unique: str) -> None:
    created = await client.create(NODES, sample(NODES, unique))
    with refused(FORBIDDEN):
        await client_of(f"system:node:{unique}").delete(NODES, unique)
    assert await client.get(NODES, unique) == created


async def test_a_node_neither_reads_nor_writes_another(client: ApiClient, client_of: ClientOf, unique: str) -> None:
    other = await client.create(NODES, sample(NODES, unique))
    node = client_of(f"system:node:{unique}-x")
    await all_refused(
        FORBIDDEN,
        node.get(NODES, unique),
        node.list(NODES),
        node.update(NODES, other),
        node.patch(NODES, unique, annotate(a="1")),
        node.patch(NODES, unique, READY, subresource="status"),
        node.delete(NODES, unique),
    )
    assert await client.get(NODES, unique) == other


async def test_a_node_lists_and_watches_only_itself(client: ApiClient, client_of: ClientOf, unique: str) -> None:
    created = await client.create(NODES, sample(NODES, unique))
    node = client_of(f"system:node:{unique}")
    async with follow(node, NODES, field_selector=f"metadata.name={unique}") as following:
        assert (await following.snapshot()).items == [created]
        patched = await client.patch(NODES, unique, annotate(a="1"))
        assert (await following.change()).object == patched
    with refused(FORBIDDEN):
        await node.list(NODES, field_selector="metadata.name=another")


async def test_a_node_does_not_change_its_own_taints(client: ApiClient, client_of: ClientOf, unique: str) -> None:
    """The leader's taint is the leader's: a host under it can't talk itself free."""
    await client.create(NODES, sample(NODES, unique))
    taint = {"key": "pp-hostd.io/condemned", "effect": "NoExecute"}
    tainted = await client.patch(NODES, unique, {"spec": {"taints": [taint]}})
    with refused(FORBIDDEN):
        await client_of(f"system:node:{unique}").patch(NODES, unique, {"spec": {"taints": None}})
    assert await client.get(NODES, unique) == tainted


async def test_a_node_sees_its_own_pods_only(
    client: ApiClient, client_of: ClientOf, unique: str, namespace: str
) -> None:
    await client.create(NODES, sample(NODES, unique))
    for name, where in (("mine", unique), ("other", f"{unique}-x")):
        await client.create(PODS, pod(name, nodeName=where), namespace=namespace)
    node = client_of(f"system:node:{unique}")
    assert names_of((await node.list(PODS, field_selector=f"spec.nodeName={unique}")).items) == ["mine"]
    with refused(FORBIDDEN):
        await node.list(PODS)
    with refused(FORBIDDEN):
        await node.list(PODS, field_selector=f"spec.nodeName={unique}-x")


async def test_a_node_keeps_its_own_lease_and_no_other(client_of: ClientOf, unique: str) -> None:
    node = client_of(f"system:node:{unique}")
    lease = await node.create(LEASES, sample(LEASES, unique), namespace=NODE_LEASES)
    await node.update(LEASES, {**lease, "spec": {"holderIdentity": "two"}}, namespace=NODE_LEASES)
    await all_refused(
        FORBIDDEN,
        node.create(LEASES, sample(LEASES, f"{unique}-x"), namespace=NODE_LEASES),
        node.get(LEASES, f"{unique}-x", namespace=NODE_LEASES),
        node.get(LEASES, unique, namespace="default"),
        node.list(LEASES, namespace=NODE_LEASES),
    )


async def test_a_node_reads_neither_machines_nor_config_maps(
    client: ApiClient, client_of: ClientOf, unique: str, namespace: str
) -> None:
    await client.create(CONFIG_MAPS, config_map("roster"), namespace=namespace)
    await client.create(OPENSHIFT_MACHINES, sample(OPENSHIFT_MACHINES, unique), namespace=namespace)
    node = client_of(f"system:node:{unique}")
    await all_refused(
        FORBIDDEN,
        node.get(CONFIG_MAPS, "roster", namespace=namespace),
        node.get(OPENSHIFT_MACHINES, unique, namespace=namespace),
        node.list(OPENSHIFT_MACHINES, namespace=namespace),
    )


async def test_a_node_tells_events_but_does_not_read_them(client_of: ClientOf, unique: str) -> None:
    node = client_of(f"system:node:{unique}")
    await node.create(EVENTS, sample(EVENTS, unique, namespace="default"), namespace="default")
    with refused(FORBIDDEN):
        await node.list(EVENTS, namespace="default")
