"""Properties of every kind that pp-hostd touches."""

from __future__ import annotations

import pytest

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.resources import Resource
from pp_hostd.kube.watch import ChangeKind
from tests.contract.following import follow
from tests.contract.objects import KINDS, annotate, annotations_of, label, names_of, sample, uid_of, version_of
from tests.contract.refusals import CONFLICT, NOT_FOUND, refused

pytestmark = pytest.mark.parametrize("kind", KINDS, ids=label)


async def test_a_created_object_has_an_identity_and_reads_back_the_same(
    client: ApiClient, kind: Resource, unique: str, where: str | None
) -> None:
    body = sample(kind, unique, namespace=where, labels={"rack": "7"}, annotations={"note": "new"})
    created = await client.create(kind, body, namespace=where)
    metadata = created["metadata"]
    assert (metadata["name"], metadata.get("namespace")) == (unique, where)
    assert metadata["uid"] and metadata["resourceVersion"] and metadata["creationTimestamp"].endswith("Z")
    assert metadata["labels"]["rack"] == "7" and metadata["annotations"] == {"note": "new"}
    assert await client.get(kind, unique, namespace=where) == created


async def test_an_object_is_found_in_the_list_of_its_kind(
    client: ApiClient, kind: Resource, unique: str, where: str | None
) -> None:
    created = await client.create(kind, sample(kind, unique, namespace=where, labels={"case": unique}), namespace=where)
    listing = await client.list(kind, label_selector=f"case={unique}")
    assert listing.items == [created]
    assert int(listing.resource_version) >= int(version_of(created))


async def test_an_annotation_is_added_and_the_rest_is_kept(
    client: ApiClient, kind: Resource, unique: str, where: str | None
) -> None:
    created = await client.create(
        kind, sample(kind, unique, namespace=where, annotations={"kept": "yes"}), namespace=where
    )
    patched = await client.patch(kind, unique, annotate(added="too"), namespace=where)
    assert annotations_of(patched) == {"kept": "yes", "added": "too"}
    assert uid_of(patched) == uid_of(created)
    assert int(version_of(patched)) > int(version_of(created))
    content = set(created) - {"metadata"}
    assert {key: patched[key] for key in content} == {key: created[key] for key in content}


async def test_a_conditional_update_wins_once(
    client: ApiClient, kind: Resource, unique: str, where: str | None
) -> None:
    read = await client.create(kind, sample(kind, unique, namespace=where), namespace=where)
    read["metadata"]["annotations"] = {"writer": "first"}
    written = await client.update(kind, read, namespace=where)
    read["metadata"]["annotations"] = {"writer": "second"}
    with refused(CONFLICT):
        await client.update(kind, read, namespace=where)
    assert await client.get(kind, unique, namespace=where) == written


async def test_a_watch_tells_the_life_of_an_object(
    client: ApiClient, kind: Resource, unique: str, where: str | None
) -> None:
    async with follow(client, kind, namespace=where, field_selector=f"metadata.name={unique}") as following:
        assert (await following.snapshot()).items == []
        created = await client.create(kind, sample(kind, unique, namespace=where), namespace=where)
        patched = await client.patch(kind, unique, annotate(seen="yes"), namespace=where)
        await client.delete(kind, unique, namespace=where, propagation="Background", grace_period_seconds=0)
        added, modified, *ends = await following.until_deleted()
    assert (added.kind, added.object) == (ChangeKind.ADDED, created)
    assert (modified.kind, modified.object) == (ChangeKind.MODIFIED, patched)
    assert uid_of(ends[-1].object) == uid_of(created)
    assert int(version_of(ends[-1].object)) > int(version_of(patched))


async def test_only_the_incarnation_that_was_meant_is_deleted(
    client: ApiClient, kind: Resource, unique: str, where: str | None
) -> None:
    first = await client.create(kind, sample(kind, unique, namespace=where), namespace=where)
    await client.delete(kind, unique, namespace=where, uid=uid_of(first), propagation="Background")
    with refused(NOT_FOUND):
        await client.get(kind, unique, namespace=where)
    second = await client.create(kind, sample(kind, unique, namespace=where), namespace=where)
    assert uid_of(second) != uid_of(first)
    with refused(CONFLICT):
        await client.delete(kind, unique, namespace=where, uid=uid_of(first), propagation="Background")
    assert names_of((await client.list(kind, namespace=where)).items).count(unique) == 1
