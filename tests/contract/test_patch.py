"""Merge-patches: what they set, remove and replace, and when they are refused."""

from __future__ import annotations

import asyncio

import pytest

from pp_hostd.kube.client import MERGE_PATCH, ApiClient, Json
from pp_hostd.kube.resources import BARE_METAL_HOSTS, CONFIG_MAPS, JOBS, NODES, OPENSHIFT_MACHINES, PODS, Resource
from tests.contract.objects import KINDS, annotate, annotations_of, config_map, label, sample, uid_of, version_of
from tests.contract.refusals import BAD_REQUEST, CONFLICT, INVALID, NOT_FOUND, refused


@pytest.fixture
def node_body(unique: str) -> Json:
    return sample(NODES, unique, annotations={"kept": "1", "changed": "1"}, labels={"rack": "7"})


async def test_a_patch_sets_what_it_names_and_keeps_the_rest(client: ApiClient, node_body: Json, unique: str) -> None:
    created = await client.create(NODES, node_body)
    patched = await client.patch(NODES, unique, annotate(changed="2", added="3"))
    assert annotations_of(patched) == {"kept": "1", "changed": "2", "added": "3"}
    assert patched["metadata"]["labels"] == {"rack": "7"} and patched["spec"] == created["spec"]


async def test_a_dry_run_is_answered_as_if_it_were_done_and_changes_nothing(
    client: ApiClient, node_body: Json, unique: str
) -> None:
    created = await client.create(NODES, node_body)
    target = f"{NODES.path(name=unique)}?dryRun=All"
    answered = await client.request("PATCH", target, annotate(changed="2"), MERGE_PATCH)
    assert annotations_of(answered) == {"kept": "1", "changed": "2"}
    assert await client.get(NODES, unique) == created


async def test_a_dry_run_is_refused_where_the_write_would_be(client: ApiClient, node_body: Json, unique: str) -> None:
    await client.create(NODES, node_body)
    stale = {"metadata": {"resourceVersion": "1", **annotate(changed="2")["metadata"]}}
    with refused(CONFLICT):
        await client.request("PATCH", f"{NODES.path(name=unique)}?dryRun=All", stale, MERGE_PATCH)


async def test_null_removes_a_key(client: ApiClient, node_body: Json, unique: str) -> None:
    await client.create(NODES, node_body)
    assert annotations_of(await client.patch(NODES, unique, annotate(changed=None))) == {"kept": "1"}


async def test_null_for_a_key_that_is_not_there_changes_nothing(
    client: ApiClient, node_body: Json, unique: str
) -> None:
    created = await client.create(NODES, node_body)
    assert await client.patch(NODES, unique, annotate(unknown=None)) == created


async def test_null_for_a_whole_map_empties_it(client: ApiClient, node_body: Json, unique: str) -> None:
    await client.create(NODES, node_body)
    patched = await client.patch(NODES, unique, {"metadata": {"labels": None, "annotations": None}})
    assert "labels" not in patched["metadata"] and "annotations" not in patched["metadata"]


async def test_a_list_is_replaced_as_a_whole(client: ApiClient, node_body: Json, unique: str) -> None:
    ours = {"key": "pp-hostd.io/condemned", "value": "7", "effect": "NoExecute"}
    await client.create(NODES, node_body)
    patched = await client.patch(NODES, unique, {"spec": {"taints": [ours], "unschedulable": True}})
    assert patched["spec"]["taints"] == [ours] and patched["spec"]["unschedulable"] is True
    freed = await client.patch(NODES, unique, {"spec": {"taints": None, "unschedulable": None}})
    assert "taints" not in freed["spec"] and "unschedulable" not in freed["spec"]


async def test_maps_are_merged_at_every_depth(client: ApiClient, namespace: str) -> None:
    image = {"url": "http://images.example/a", "checksum": "1"}
    body = {"metadata": {"name": "host-1"}, "spec": {"online": True, "image": image}}
    await client.create(BARE_METAL_HOSTS, body, namespace=namespace)
    patch = {"spec": {"image": {"checksum": "2"}}}
    patched = await client.patch(BARE_METAL_HOSTS, "host-1", patch, namespace=namespace)
    assert patched["spec"]["image"] == {**image, "checksum": "2"} and patched["spec"]["online"] is True


# The first patch of a Job is always a change: the server then notes who owns the labels that it added itself.
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not JOBS], ids=label)
async def test_a_patch_that_changes_nothing_keeps_the_version(
    client: ApiClient, kind: Resource, unique: str, where: str | None
) -> None:
    body = sample(kind, unique, namespace=where, annotations={"same": "1"})
    created = await client.create(kind, body, namespace=where)
    assert await client.patch(kind, unique, {}, namespace=where) == created
    assert await client.patch(kind, unique, annotate(same="1"), namespace=where) == created


@pytest.mark.parametrize("kind", [NODES, OPENSHIFT_MACHINES], ids=label)
async def test_a_patch_with_a_stale_version_is_a_conflict(
    client: ApiClient, kind: Resource, unique: str, where: str | None
) -> None:
    created = await client.create(kind, sample(kind, unique), namespace=where)
    current = await client.patch(
        kind, unique, {"metadata": {"resourceVersion": version_of(created), "annotations": {"a": "1"}}}, namespace=where
    )
    with refused(CONFLICT):
        stale = {"metadata": {"resourceVersion": version_of(created), "annotations": {"a": "2"}}}
        await client.patch(kind, unique, stale, namespace=where)
    with refused(CONFLICT):
        await client.patch(kind, unique, {"metadata": {"resourceVersion": version_of(created)}}, namespace=where)
    assert await client.get(kind, unique, namespace=where) == current


@pytest.mark.parametrize("version", ["", "0", None])
async def test_a_patch_with_no_version_to_speak_of_is_unconditional(
    client: ApiClient, version: object, namespace: str
) -> None:
    await client.create(CONFIG_MAPS, config_map("roster"), namespace=namespace)
    patch = {"metadata": {"resourceVersion": version, "annotations": {"a": "1"}}}
    assert annotations_of(await client.patch(CONFIG_MAPS, "roster", patch, namespace=namespace)) == {"a": "1"}


@pytest.mark.parametrize("kind", [NODES, OPENSHIFT_MACHINES], ids=label)
async def test_a_patch_meant_for_an_earlier_incarnation_is_invalid(
    client: ApiClient, kind: Resource, unique: str, where: str | None
) -> None:
    first = await client.create(kind, sample(kind, unique), namespace=where)
    await client.delete(kind, unique, namespace=where)
    second = await client.create(kind, sample(kind, unique), namespace=where)
    with refused(INVALID):
        patch = {"metadata": {"uid": uid_of(first), "annotations": {"a": "1"}}}
        await client.patch(kind, unique, patch, namespace=where)
    assert await client.get(kind, unique, namespace=where) == second


async def test_patches_of_different_keys_at_once_all_arrive(client: ApiClient, unique: str) -> None:
    await client.create(NODES, sample(NODES, unique))
    keys = [f"key-{number}" for number in range(8)]
    await asyncio.gather(*(client.patch(NODES, unique, {"metadata": {"annotations": {key: "1"}}}) for key in keys))
    assert sorted(annotations_of(await client.get(NODES, unique))) == keys


async def test_of_patches_at_once_on_the_same_version_one_wins(client: ApiClient, unique: str) -> None:
    version = version_of(await client.create(NODES, sample(NODES, unique)))
    patches = [{"metadata": {"resourceVersion": version, "annotations": {"writer": str(n)}}} for n in range(8)]
    outcomes = await asyncio.gather(*(client.patch(NODES, unique, patch) for patch in patches), return_exceptions=True)
    winners = [outcome for outcome in outcomes if isinstance(outcome, dict)]
    assert winners == [await client.get(NODES, unique)]


@pytest.mark.parametrize("kind", [NODES, PODS, BARE_METAL_HOSTS], ids=label)
async def test_a_patch_of_what_is_not_there_is_not_found(
    client: ApiClient, kind: Resource, unique: str, where: str | None
) -> None:
    with refused(NOT_FOUND):
        await client.patch(kind, f"{unique}-missing", {}, namespace=where)


@pytest.mark.parametrize("metadata", [{"name": "other"}, {"namespace": "default"}])
async def test_a_patch_does_not_move_an_object(client: ApiClient, metadata: Json, namespace: str) -> None:
    await client.create(CONFIG_MAPS, config_map("roster"), namespace=namespace)
    with refused(BAD_REQUEST):
        await client.patch(CONFIG_MAPS, "roster", {"metadata": metadata}, namespace=namespace)


@pytest.mark.parametrize("patch", [{"metadata": {"labels": {"rack": "row 7"}}}, {"kind": "Pod"}])
async def test_a_patch_whose_result_is_invalid_changes_nothing(client: ApiClient, patch: Json, namespace: str) -> None:
    created = await client.create(CONFIG_MAPS, config_map("roster"), namespace=namespace)
    with refused(INVALID):
        await client.patch(CONFIG_MAPS, "roster", patch, namespace=namespace)
    assert await client.get(CONFIG_MAPS, "roster", namespace=namespace) == created
