"""Deletion: at once, held back by finalizers, and what a name means afterwards."""

from __future__ import annotations

import pytest

from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.resources import (
    BARE_METAL_HOSTS,
    CONFIG_MAPS,
    JOBS,
    LEASES,
    METAL3_REMEDIATIONS,
    NODES,
    OPENSHIFT_MACHINES,
    VOLUME_ATTACHMENTS,
    Resource,
)
from tests.contract.objects import CUSTOM_KINDS, annotate, annotations_of, label, sample, uid_of, version_of
from tests.contract.refusals import ALREADY_EXISTS, INVALID, NOT_FOUND, refused

HOLD, OTHER = "example.com/hold", "example.com/other"
HELD_KINDS = [NODES, CONFIG_MAPS, VOLUME_ATTACHMENTS, METAL3_REMEDIATIONS]


class Held:
    """An object that its finalizers keep after a deletion."""

    def __init__(self, client: ApiClient, kind: Resource, name: str, namespace: str) -> None:
        self.client, self.kind, self.name = client, kind, name
        self.namespace = namespace if kind.namespaced else None

    async def create(self, *finalizers: str) -> Json:
        body = sample(self.kind, self.name, finalizers=list(finalizers))
        return await self.client.create(self.kind, body, namespace=self.namespace)

    async def get(self) -> Json:
        return await self.client.get(self.kind, self.name, namespace=self.namespace)

    async def delete(self) -> Json:
        return await self.client.delete(self.kind, self.name, namespace=self.namespace)

    async def patch(self, patch: Json) -> Json:
        return await self.client.patch(self.kind, self.name, patch, namespace=self.namespace)

    async def set_finalizers(self, *finalizers: str) -> Json:
        return await self.patch({"metadata": {"finalizers": list(finalizers)}})


@pytest.fixture(params=HELD_KINDS, ids=label)
def held(request: pytest.FixtureRequest, client: ApiClient, unique: str, namespace: str) -> Held:
    return Held(client, request.param, unique, namespace)


@pytest.mark.parametrize("kind", [NODES, CONFIG_MAPS, LEASES, *CUSTOM_KINDS], ids=label)
async def test_a_deletion_says_what_it_deleted(
    client: ApiClient, kind: Resource, unique: str, where: str | None
) -> None:
    created = await client.create(kind, sample(kind, unique), namespace=where)
    answer = await client.delete(kind, unique, namespace=where)
    assert (answer["kind"], answer["status"]) == ("Status", "Success")
    assert answer["details"].get("group", "") == kind.group
    assert (answer["details"]["kind"], answer["details"]["uid"]) == (kind.plural, uid_of(created))


async def test_a_deleted_volume_attachment_is_shown_once_more(client: ApiClient, unique: str) -> None:
    created = await client.create(VOLUME_ATTACHMENTS, sample(VOLUME_ATTACHMENTS, unique))
    answer = await client.delete(VOLUME_ATTACHMENTS, unique)
    assert (answer["kind"], uid_of(answer)) == ("VolumeAttachment", uid_of(created))
    with refused(NOT_FOUND):
        await client.get(VOLUME_ATTACHMENTS, unique)


async def test_deleting_what_is_not_there_is_not_found(client: ApiClient, unique: str) -> None:
    with refused(NOT_FOUND):
        await client.delete(NODES, unique)


async def test_a_name_used_again_is_another_object(client: ApiClient, unique: str) -> None:
    first = await client.create(NODES, sample(NODES, unique, annotations={"mark": "old"}))
    await client.delete(NODES, unique)
    second = await client.create(NODES, sample(NODES, unique))
    assert uid_of(second) != uid_of(first) and int(version_of(second)) > int(version_of(first))
    assert annotations_of(second) == {}


async def test_a_finalizer_keeps_an_object_that_is_being_deleted(held: Held) -> None:
    created = await held.create(HOLD)
    answer = await held.delete()
    kept = await held.get()
    assert answer == kept and uid_of(kept) == uid_of(created)
    assert kept["metadata"]["deletionTimestamp"] >= kept["metadata"]["creationTimestamp"]
    assert kept["metadata"]["deletionGracePeriodSeconds"] == 0
    assert int(version_of(kept)) > int(version_of(created))


async def test_a_second_deletion_changes_nothing(held: Held) -> None:
    await held.create(HOLD)
    await held.delete()
    kept = await held.get()
    await held.delete()
    assert await held.get() == kept


async def test_the_object_goes_with_its_last_finalizer(held: Held) -> None:
    await held.create(HOLD, OTHER)
    await held.delete()
    assert (await held.set_finalizers(OTHER))["metadata"]["finalizers"] == [OTHER]
    last = await held.patch({"metadata": {"finalizers": None}})
    assert "finalizers" not in last["metadata"]
    with refused(NOT_FOUND):
        await held.get()


async def test_an_update_can_take_the_last_finalizer_too(held: Held) -> None:
    await held.create(HOLD)
    await held.delete()
    kept = await held.get()
    kept["metadata"]["finalizers"] = []
    await held.client.update(held.kind, kept, namespace=held.namespace)
    with refused(NOT_FOUND):
        await held.get()


async def test_no_finalizer_can_be_added_to_what_is_being_deleted(held: Held) -> None:
    await held.create(HOLD)
    await held.delete()
    kept = await held.get()
    for finalizers in ([HOLD, OTHER], [OTHER]):
        with refused(INVALID):
            await held.set_finalizers(*finalizers)
    assert await held.get() == kept


async def test_a_finalizer_on_a_living_object_comes_and_goes(held: Held) -> None:
    await held.create()
    await held.set_finalizers(HOLD)
    freed = await held.set_finalizers()
    assert await held.get() == freed and "deletionTimestamp" not in freed["metadata"]


async def test_what_is_being_deleted_can_still_be_annotated_but_not_revived(held: Held) -> None:
    await held.create(HOLD)
    deleted_at = (await held.delete())["metadata"]["deletionTimestamp"]
    patch = annotate(note="late")
    patch["metadata"]["deletionTimestamp"] = None
    patched = await held.patch(patch)
    assert annotations_of(patched) == {"note": "late"}
    assert patched["metadata"]["deletionTimestamp"] == deleted_at


async def test_the_name_is_taken_until_the_last_finalizer_is_gone(held: Held) -> None:
    await held.create(HOLD)
    await held.delete()
    with refused(ALREADY_EXISTS):
        await held.create()
    await held.set_finalizers()
    await held.create()


async def test_the_mark_of_deletion_raises_the_generation(client: ApiClient, namespace: str) -> None:
    machine = Held(client, OPENSHIFT_MACHINES, "worker-1", namespace)
    assert (await machine.create(HOLD))["metadata"]["generation"] == 1
    assert (await machine.delete())["metadata"]["generation"] == 2


@pytest.mark.parametrize(("propagation", "finalizer"), [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")])
async def test_a_policy_for_dependents_is_a_finalizer_at_first(
    client: ApiClient, propagation: str, finalizer: str, namespace: str
) -> None:
    await client.create(CONFIG_MAPS, sample(CONFIG_MAPS, "owner"), namespace=namespace)
    answer = await client.delete(CONFIG_MAPS, "owner", namespace=namespace, propagation=propagation)
    assert answer["metadata"]["finalizers"] == [finalizer] and answer["metadata"]["deletionTimestamp"]


async def test_a_job_orphans_its_pods_unless_told_otherwise(client: ApiClient, namespace: str) -> None:
    await client.create(JOBS, sample(JOBS, "fence"), namespace=namespace)
    answer = await client.delete(JOBS, "fence", namespace=namespace)
    assert (answer["kind"], answer["metadata"]["finalizers"]) == ("Job", ["orphan"])


async def test_a_job_goes_at_once_in_the_background(client: ApiClient, namespace: str) -> None:
    created = await client.create(JOBS, sample(JOBS, "fence"), namespace=namespace)
    answer = await client.delete(JOBS, "fence", namespace=namespace, propagation="Background")
    assert (answer["kind"], answer["details"]["uid"]) == ("Status", uid_of(created))
    with refused(NOT_FOUND):
        await client.get(JOBS, "fence", namespace=namespace)


async def test_an_unknown_policy_is_invalid(client: ApiClient, namespace: str) -> None:
    await client.create(CONFIG_MAPS, sample(CONFIG_MAPS, "owner"), namespace=namespace)
    with refused(INVALID):
        await client.delete(CONFIG_MAPS, "owner", namespace=namespace, propagation="Somehow")
    await client.get(CONFIG_MAPS, "owner", namespace=namespace)


async def test_a_grace_period_means_nothing_to_other_kinds_than_pods(client: ApiClient, namespace: str) -> None:
    await client.create(BARE_METAL_HOSTS, sample(BARE_METAL_HOSTS, "host-1"), namespace=namespace)
    await client.delete(BARE_METAL_HOSTS, "host-1", namespace=namespace, grace_period_seconds=30)
    with refused(NOT_FOUND):
        await client.get(BARE_METAL_HOSTS, "host-1", namespace=namespace)
