"""The status subresource and the generation: who may change what, and what counts as a change of intent."""

from __future__ import annotations

import pytest

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.resources import (
    BARE_METAL_HOSTS,
    CONFIG_MAPS,
    JOBS,
    LEASES,
    METAL3_REMEDIATIONS,
    NODES,
    OPENSHIFT_MACHINES,
    PODS,
    POISON_PILL_REMEDIATIONS,
    PROPOSED_REMEDIATIONS,
    VOLUME_ATTACHMENTS,
    Resource,
)
from tests.contract.objects import CUSTOM_KINDS, annotate, annotations_of, label, pod, sample, version_of
from tests.contract.refusals import CONFLICT, NOT_FOUND, refused


def ready(status: str) -> dict[str, object]:
    return {"status": {"conditions": [{"type": "Ready", "status": status}]}}


async def test_a_node_write_does_not_touch_its_status(client: ApiClient, unique: str) -> None:
    created = await client.create(NODES, {**sample(NODES, unique), **ready("True")})
    patched = await client.patch(NODES, unique, {**ready("False"), "spec": {"unschedulable": True}})
    assert patched["status"] == created["status"] and patched["spec"]["unschedulable"] is True


async def test_a_node_status_write_keeps_the_spec_but_carries_annotations(client: ApiClient, unique: str) -> None:
    created = await client.create(NODES, {**sample(NODES, unique), **ready("True")})
    patch = {**ready("False"), "spec": {"unschedulable": True}, **annotate(written="yes")}
    patched = await client.patch(NODES, unique, patch, subresource="status")
    assert patched["status"]["conditions"][0]["status"] == "False"
    assert patched["spec"] == created["spec"] and annotations_of(patched) == {"written": "yes"}


async def test_a_pod_write_does_not_touch_its_status(client: ApiClient, namespace: str) -> None:
    await client.create(PODS, pod("web"), namespace=namespace)
    patch = {"status": {"phase": "Running"}, **annotate(written="yes")}
    patched = await client.patch(PODS, "web", patch, namespace=namespace)
    assert patched["status"]["phase"] == "Pending" and annotations_of(patched) == {"written": "yes"}


async def test_a_pod_status_write_keeps_the_spec_but_carries_annotations(client: ApiClient, namespace: str) -> None:
    created = await client.create(PODS, pod("web"), namespace=namespace)
    patch = {"status": {"phase": "Running"}, "spec": {"activeDeadlineSeconds": 9}, **annotate(written="yes")}
    patched = await client.patch(PODS, "web", patch, namespace=namespace, subresource="status")
    assert patched["status"]["phase"] == "Running"
    assert patched["spec"] == created["spec"] and annotations_of(patched) == {"written": "yes"}


async def test_a_volume_attachment_write_does_not_touch_its_status(client: ApiClient, unique: str) -> None:
    await client.create(VOLUME_ATTACHMENTS, sample(VOLUME_ATTACHMENTS, unique))
    attached = {"status": {"attached": True}}
    assert (await client.patch(VOLUME_ATTACHMENTS, unique, attached))["status"] == {"attached": False}
    assert (await client.patch(VOLUME_ATTACHMENTS, unique, attached, subresource="status"))["status"] == {
        "attached": True
    }


@pytest.mark.parametrize("kind", CUSTOM_KINDS, ids=label)
async def test_a_custom_objects_write_does_not_touch_its_status(
    client: ApiClient, kind: Resource, namespace: str
) -> None:
    await client.create(kind, sample(kind, "one"), namespace=namespace)
    said = {"status": {"phase": "Running"}}
    await client.patch(kind, "one", said, namespace=namespace, subresource="status")
    patch = {"status": {"phase": "Failed"}, **annotate(written="yes")}
    patched = await client.patch(kind, "one", patch, namespace=namespace)
    assert patched["status"] == {"phase": "Running"} and annotations_of(patched) == {"written": "yes"}
    replaced = await client.update(kind, {**patched, "status": {"phase": "Failed"}}, namespace=namespace)
    assert replaced == patched


@pytest.mark.parametrize("kind", CUSTOM_KINDS, ids=label)
async def test_a_custom_objects_status_write_touches_nothing_else(
    client: ApiClient, kind: Resource, namespace: str
) -> None:
    body = sample(kind, "one", annotations={"kept": "yes"}, labels={"rack": "7"}, finalizers=["example.com/hold"])
    created = await client.create(kind, body, namespace=namespace)
    meddling = {
        "metadata": {"annotations": None, "labels": {"rack": "8"}, "finalizers": None},
        "spec": {"paused": True},
    }
    patch = {**meddling, "status": {"phase": "Running"}}
    patched = await client.patch(kind, "one", patch, namespace=namespace, subresource="status")
    assert patched["status"] == {"phase": "Running"} and patched["spec"] == created["spec"]
    for key in ("annotations", "labels", "finalizers", "generation"):
        assert patched["metadata"][key] == created["metadata"][key]
    assert int(version_of(patched)) > int(version_of(created))


async def test_a_status_update_replaces_the_whole_status(client: ApiClient, namespace: str) -> None:
    kind = METAL3_REMEDIATIONS
    await client.create(kind, sample(kind, "one"), namespace=namespace)
    said = {"status": {"phase": "Running", "retryCount": 1}}
    read = await client.patch(kind, "one", said, namespace=namespace, subresource="status")
    read["status"] = {"phase": "Waiting"}
    updated = await client.update(kind, read, namespace=namespace, subresource="status")
    assert updated["status"] == {"phase": "Waiting"}


@pytest.mark.parametrize("kind", [NODES, OPENSHIFT_MACHINES], ids=label)
async def test_a_status_write_with_a_stale_version_is_a_conflict(
    client: ApiClient, kind: Resource, unique: str, where: str | None
) -> None:
    created = await client.create(kind, sample(kind, unique), namespace=where)
    await client.patch(kind, unique, annotate(a="1"), namespace=where)
    with refused(CONFLICT):
        await client.update(kind, {**created, **ready("False")}, namespace=where, subresource="status")
    with refused(CONFLICT):
        patch = {**ready("False"), "metadata": {"resourceVersion": version_of(created)}}
        await client.patch(kind, unique, patch, namespace=where, subresource="status")


@pytest.mark.parametrize("kind", [CONFIG_MAPS, LEASES], ids=label)
async def test_kinds_without_a_status_have_no_such_path(client: ApiClient, kind: Resource, namespace: str) -> None:
    await client.create(kind, sample(kind, "one"), namespace=namespace)
    with refused(NOT_FOUND):
        await client.patch(kind, "one", {}, namespace=namespace, subresource="status")


@pytest.mark.parametrize("kind", [NODES, BARE_METAL_HOSTS], ids=label)
async def test_reading_the_status_path_gives_the_whole_object(
    client: ApiClient, kind: Resource, unique: str, where: str | None
) -> None:
    created = await client.create(kind, sample(kind, unique), namespace=where)
    assert await client.request("GET", kind.path(where, unique, "status")) == created


CHANGES = {PROPOSED_REMEDIATIONS: {"deleteAfterRetries": 2}, POISON_PILL_REMEDIATIONS: {"retryLimit": 2}}
"""Where a schema drops what it does not know."""


@pytest.mark.parametrize("kind", CUSTOM_KINDS, ids=label)
async def test_the_generation_of_a_custom_object_counts_changes_of_its_spec(
    client: ApiClient, kind: Resource, namespace: str
) -> None:
    created = await client.create(kind, sample(kind, "one", generation=7), namespace=namespace)
    assert created["metadata"]["generation"] == 1
    annotated = await client.patch(kind, "one", annotate(a="1"), namespace=namespace)
    assert annotated["metadata"]["generation"] == 1
    said = {"status": {"phase": "Running"}}
    reported = await client.patch(kind, "one", said, namespace=namespace, subresource="status")
    assert reported["metadata"]["generation"] == 1
    changed = await client.patch(kind, "one", {"spec": CHANGES.get(kind, {"changed": "yes"})}, namespace=namespace)
    assert changed["metadata"]["generation"] == 2
    changed["metadata"]["generation"] = 7
    assert (await client.update(kind, changed, namespace=namespace))["metadata"]["generation"] == 2


async def test_the_generation_of_a_job_counts_changes_of_its_spec(client: ApiClient, namespace: str) -> None:
    created = await client.create(JOBS, sample(JOBS, "fence"), namespace=namespace)
    said = {"status": {"active": 1}}
    reported = await client.patch(JOBS, "fence", said, namespace=namespace, subresource="status")
    changed = await client.patch(JOBS, "fence", {"spec": {"parallelism": 2}}, namespace=namespace)
    assert [obj["metadata"]["generation"] for obj in (created, reported, changed)] == [1, 1, 2]
    assert changed["status"] == {"active": 1}


async def test_nodes_and_config_maps_have_no_generation(client: ApiClient, unique: str, namespace: str) -> None:
    await client.create(NODES, sample(NODES, unique))
    cordoned = await client.patch(NODES, unique, {"spec": {"unschedulable": True}})
    roster = await client.create(CONFIG_MAPS, sample(CONFIG_MAPS, "roster"), namespace=namespace)
    assert "generation" not in cordoned["metadata"] and "generation" not in roster["metadata"]
