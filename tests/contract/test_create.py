"""Creating objects: what the server decides, and what it refuses."""

from __future__ import annotations

import pytest

from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.resources import (
    BARE_METAL_HOSTS,
    CONFIG_MAPS,
    EVENTS,
    LEASES,
    NODES,
    OPENSHIFT_MACHINES,
    PODS,
    Resource,
)
from tests.contract.objects import CUSTOM_KINDS, config_map, label, name_of, names_of, pod, sample, uid_of
from tests.contract.refusals import ALREADY_EXISTS, BAD_REQUEST, INTERNAL, INVALID, NOT_FOUND, refused


async def test_a_name_that_is_taken_is_a_conflict_of_its_own_sort(client: ApiClient, namespace: str) -> None:
    first = await client.create(CONFIG_MAPS, config_map("roster"), namespace=namespace)
    with refused(ALREADY_EXISTS):
        await client.create(CONFIG_MAPS, config_map("roster", labels={"rack": "7"}), namespace=namespace)
    assert await client.get(CONFIG_MAPS, "roster", namespace=namespace) == first


async def test_the_same_name_is_free_in_another_kind_and_another_namespace(client: ApiClient, namespace: str) -> None:
    first = await client.create(CONFIG_MAPS, config_map(namespace), namespace=namespace)
    other_kind = await client.create(OPENSHIFT_MACHINES, sample(OPENSHIFT_MACHINES, namespace), namespace=namespace)
    other_place = await client.create(CONFIG_MAPS, config_map(namespace), namespace="default")
    assert len({uid_of(first), uid_of(other_kind), uid_of(other_place)}) == 3


async def test_generate_name_makes_a_new_name_each_time(client: ApiClient, namespace: str) -> None:
    body = {"metadata": {"generateName": "host-"}, "involvedObject": {"namespace": namespace}}
    made = [await client.create(EVENTS, body, namespace=namespace) for _ in range(3)]
    assert all(name_of(event).startswith("host-") and len(name_of(event)) > 5 for event in made)
    assert sorted(names_of(made)) == names_of((await client.list(EVENTS, namespace=namespace)).items)
    assert len({name_of(event) for event in made}) == 3


async def test_a_missing_namespace_is_not_found(client: ApiClient, unique: str) -> None:
    with refused(NOT_FOUND) as caught:
        await client.create(CONFIG_MAPS, config_map("roster"), namespace=unique)
    assert f'namespaces "{unique}" not found' in caught.value.sentence


@pytest.mark.parametrize("kind", CUSTOM_KINDS, ids=label)
async def test_a_missing_namespace_is_not_found_for_custom_kinds_too(
    client: ApiClient, kind: Resource, unique: str
) -> None:
    with refused(NOT_FOUND):
        await client.create(kind, sample(kind, "one"), namespace=unique)


async def test_identity_and_times_are_the_servers_to_give(client: ApiClient, namespace: str) -> None:
    dream = {"uid": "my-own", "creationTimestamp": "2020-01-01T00:00:00Z", "deletionTimestamp": "2020-01-01T00:00:00Z"}
    created = await client.create(CONFIG_MAPS, config_map("roster", **dream), namespace=namespace)
    assert uid_of(created) != "my-own"
    assert created["metadata"]["creationTimestamp"] > "2020-01-02"
    assert "deletionTimestamp" not in created["metadata"]


async def test_a_resource_version_has_no_place_in_a_new_object(client: ApiClient, namespace: str) -> None:
    with refused(INTERNAL):
        await client.create(CONFIG_MAPS, config_map("roster", resourceVersion="7"), namespace=namespace)
    assert (await client.list(CONFIG_MAPS, namespace=namespace)).items == []


async def test_the_namespace_in_the_body_must_be_that_of_the_path(client: ApiClient, namespace: str) -> None:
    with refused(BAD_REQUEST):
        body = {"metadata": {"name": "roster", "namespace": "default"}}
        await client.create(CONFIG_MAPS, body, namespace=namespace)


BAD_METADATA = {
    "no name": {},
    "an upper-case name": {"name": "Roster"},
    "a name with a slash": {"name": "a/b"},
    "a name of 254 characters": {"name": "a" * 254},
    "a label value with a space": {"name": "roster", "labels": {"rack": "row 7"}},
    "a label value of 64 characters": {"name": "roster", "labels": {"rack": "7" * 64}},
    "a label key with a space": {"name": "roster", "labels": {"the rack": "7"}},
    "an annotation key with a space": {"name": "roster", "annotations": {"the rack": "7"}},
}


@pytest.mark.parametrize("kind", [CONFIG_MAPS, BARE_METAL_HOSTS], ids=label)
@pytest.mark.parametrize("metadata", BAD_METADATA.values(), ids=BAD_METADATA.keys())
async def test_bad_names_labels_and_annotations_are_invalid(
    client: ApiClient, kind: Resource, metadata: Json, namespace: str
) -> None:
    with refused(INVALID):
        await client.create(kind, {**sample(kind, "any"), "metadata": metadata}, namespace=namespace)


TAINT = {"key": "pp-hostd.io/condemned", "effect": "NoExecute"}
BAD_CONTENT = {
    "a taint without an effect": (NODES, {"spec": {"taints": [{"key": "pp-hostd.io/condemned"}]}}),
    "the same taint twice": (NODES, {"spec": {"taints": [TAINT, TAINT]}}),
    "a lease of no seconds": (LEASES, {"spec": {"leaseDurationSeconds": 0}}),
    "a pod of no containers": (PODS, {"spec": {"containers": []}}),
    "an event about another namespace": (EVENTS, {"involvedObject": {"namespace": "default"}}),
    "an event in a namespace about a node": (EVENTS, {"involvedObject": {"kind": "Node", "name": "worker-1"}}),
    "more than 1 MiB of data": (CONFIG_MAPS, {"data": {"backup": "x" * ((1 << 20) + 1)}}),
    "more than 256 KiB of annotations": (CONFIG_MAPS, {"metadata": {"annotations": {"backup": "x" * (1 << 18)}}}),
}


@pytest.mark.parametrize(("kind", "content"), BAD_CONTENT.values(), ids=BAD_CONTENT.keys())
async def test_content_that_makes_no_sense_is_invalid(
    client: ApiClient, kind: Resource, content: Json, unique: str, where: str | None
) -> None:
    body = {**sample(kind, unique, namespace=where), **content}
    body["metadata"] = {**body["metadata"], "name": unique}
    with refused(INVALID):
        await client.create(kind, body, namespace=where)


async def test_a_finalizer_of_a_builtin_kind_needs_a_domain(client: ApiClient, namespace: str) -> None:
    with refused(INVALID):
        await client.create(CONFIG_MAPS, config_map("roster", finalizers=["hold"]), namespace=namespace)


async def test_a_new_node_brings_its_status_and_gets_the_not_ready_taint(client: ApiClient, unique: str) -> None:
    ready = {"type": "Ready", "status": "True"}
    body = {"metadata": {"name": unique}, "spec": {"taints": [TAINT]}, "status": {"conditions": [ready]}}
    created = await client.create(NODES, body)
    not_ready = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    assert created["spec"]["taints"] == [TAINT, not_ready]
    assert [(c["type"], c["status"]) for c in created["status"]["conditions"]] == [("Ready", "True")]


async def test_a_new_pod_is_pending_whatever_it_claims(client: ApiClient, namespace: str) -> None:
    claimed = {**pod("web"), "status": {"phase": "Running"}}
    assert (await client.create(PODS, claimed, namespace=namespace))["status"]["phase"] == "Pending"


@pytest.mark.parametrize("kind", CUSTOM_KINDS, ids=label)
async def test_a_new_custom_object_has_no_status(client: ApiClient, kind: Resource, namespace: str) -> None:
    claimed = {**sample(kind, "one"), "status": {"phase": "Running"}}
    assert "status" not in await client.create(kind, claimed, namespace=namespace)
