"""Reading objects one by one and in lists, chosen by labels and fields."""

from __future__ import annotations

import pytest

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.resources import CONFIG_MAPS, EVENTS, JOBS, NODES, PODS, VOLUME_ATTACHMENTS, Resource
from tests.contract.objects import CUSTOM_KINDS, KINDS, annotate, config_map, label, names_of, pod, sample, version_of
from tests.contract.refusals import BAD_REQUEST, NOT_FOUND, refused

LABELS = {
    "bare": {},
    "east-db": {"zone": "east", "role": "db"},
    "east-web": {"zone": "east", "role": "web"},
    "north-db": {"zone": "north", "role": "db"},
    "west": {"zone": "west", "example.com/spare": ""},
}


async def test_a_missing_object_is_not_found(client: ApiClient, namespace: str) -> None:
    with refused(NOT_FOUND) as caught:
        await client.get(CONFIG_MAPS, "nobody", namespace=namespace)
    assert 'configmaps "nobody" not found' in caught.value.sentence


@pytest.mark.parametrize("kind", CUSTOM_KINDS, ids=label)
async def test_a_missing_custom_object_is_named_with_its_group(
    client: ApiClient, kind: Resource, namespace: str
) -> None:
    with refused(NOT_FOUND) as caught:
        await client.get(kind, "nobody", namespace=namespace)
    assert f'{kind.plural}.{kind.group} "nobody" not found' in caught.value.sentence


async def test_an_object_of_another_namespace_is_not_found(client: ApiClient, namespace: str) -> None:
    await client.create(CONFIG_MAPS, config_map("roster"), namespace=namespace)
    with refused(NOT_FOUND):
        await client.get(CONFIG_MAPS, "roster", namespace=f"{namespace}-other")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.namespaced], ids=label)
async def test_a_list_of_nothing_is_empty_and_still_has_a_version(
    client: ApiClient, kind: Resource, namespace: str
) -> None:
    listing = await client.list(kind, namespace=namespace)
    assert listing.items == [] and int(listing.resource_version) > 0


async def test_a_list_shows_one_namespace_in_the_order_of_names(client: ApiClient, namespace: str) -> None:
    for name in ("c", "a", "b.1", "b"):
        await client.create(CONFIG_MAPS, config_map(name), namespace=namespace)
    await client.create(CONFIG_MAPS, config_map(namespace), namespace="default")
    assert names_of((await client.list(CONFIG_MAPS, namespace=namespace)).items) == ["a", "b", "b.1", "c"]


async def test_a_list_of_all_namespaces_is_ordered_by_namespace_first(client: ApiClient, namespace: str) -> None:
    await client.create(CONFIG_MAPS, config_map("zebra", labels={"case": namespace}), namespace=namespace)
    await client.create(CONFIG_MAPS, config_map(f"a-{namespace}", labels={"case": namespace}), namespace="default")
    listing = await client.list(CONFIG_MAPS, label_selector=f"case={namespace}")
    assert names_of(listing.items) == ["zebra", f"a-{namespace}"]


async def test_a_read_shows_the_last_write(client: ApiClient, namespace: str) -> None:
    await client.create(CONFIG_MAPS, config_map("counter"), namespace=namespace)
    for count in range(20):
        written = await client.patch(CONFIG_MAPS, "counter", annotate(count=str(count)), namespace=namespace)
        assert await client.get(CONFIG_MAPS, "counter", namespace=namespace) == written
        assert (await client.list(CONFIG_MAPS, namespace=namespace)).items == [written]


async def test_later_writes_have_higher_versions_across_kinds(client: ApiClient, namespace: str, unique: str) -> None:
    written = [
        await client.create(CONFIG_MAPS, config_map("a"), namespace=namespace),
        await client.create(NODES, sample(NODES, unique)),
        await client.create(PODS, pod("b"), namespace=namespace),
        await client.patch(NODES, unique, annotate(seen="yes")),
    ]
    versions = [int(version_of(obj)) for obj in written]
    assert versions == sorted(set(versions))


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("zone=east", ["east-db", "east-web"]),
        ("zone==west", ["west"]),
        ("zone!=east", ["bare", "north-db", "west"]),
        ("zone=east,role=db", ["east-db"]),
        ("zone in (west, north)", ["north-db", "west"]),
        ("zone notin (east,west)", ["bare", "north-db"]),
        ("role", ["east-db", "east-web", "north-db"]),
        ("!role", ["bare", "west"]),
        ("example.com/spare", ["west"]),
        ("example.com/spare=", ["west"]),
        ("zone,role!=db", ["east-web", "west"]),
        ("zone=south", []),
    ],
)
async def test_a_label_selector_chooses(client: ApiClient, selector: str, names: list[str], namespace: str) -> None:
    for name, labels in LABELS.items():
        await client.create(CONFIG_MAPS, config_map(name, labels=labels), namespace=namespace)
    assert names_of((await client.list(CONFIG_MAPS, namespace=namespace, label_selector=selector)).items) == names


@pytest.mark.parametrize("selector", ["zone east", "zone in (east", "zone in ()x", "zone=row 7", "=east", "zone=//"])
async def test_a_malformed_label_selector_is_a_bad_request(client: ApiClient, selector: str, namespace: str) -> None:
    with refused(BAD_REQUEST):
        await client.list(CONFIG_MAPS, namespace=namespace, label_selector=selector)


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("metadata.name=web", ["web"]),
        ("metadata.name!=web", ["batch", "loose"]),
        ("spec.nodeName=worker-1", ["batch", "web"]),
        ("spec.nodeName=", ["loose"]),
        ("spec.nodeName=worker-1,status.phase=Running", ["web"]),
        ("status.phase!=Running", ["batch", "loose"]),
        ("metadata.namespace=elsewhere", []),
    ],
)
async def test_a_field_selector_chooses_pods(
    client: ApiClient, selector: str, names: list[str], namespace: str
) -> None:
    for body in (pod("web", nodeName="worker-1"), pod("batch", nodeName="worker-1"), pod("loose")):
        await client.create(PODS, body, namespace=namespace)
    await client.patch(PODS, "web", {"status": {"phase": "Running"}}, namespace=namespace, subresource="status")
    assert names_of((await client.list(PODS, namespace=namespace, field_selector=selector)).items) == names


async def test_a_field_selector_chooses_cordoned_nodes(client: ApiClient, unique: str) -> None:
    for name, cordoned in ((f"{unique}-1", True), (f"{unique}-2", False)):
        body = {"metadata": {"name": name, "labels": {"case": unique}}, "spec": {"unschedulable": cordoned}}
        await client.create(NODES, body)
    listing = await client.list(NODES, label_selector=f"case={unique}", field_selector="spec.unschedulable=true")
    assert names_of(listing.items) == [f"{unique}-1"]


async def test_a_field_selector_chooses_the_events_about_an_object(client: ApiClient, namespace: str) -> None:
    for name, about in (("one", "worker-1"), ("two", "worker-2")):
        body = {**sample(EVENTS, name), "involvedObject": {"kind": "Machine", "name": about, "namespace": namespace}}
        await client.create(EVENTS, body, namespace=namespace)
    selector = "involvedObject.kind=Machine,involvedObject.name=worker-2"
    assert names_of((await client.list(EVENTS, namespace=namespace, field_selector=selector)).items) == ["two"]


@pytest.mark.parametrize(
    ("kind", "selector"),
    [
        (CONFIG_MAPS, "data.roster=1"),
        (PODS, "spec.unknown=1"),
        (PODS, "metadata.uid=1"),
        (NODES, "status.phase=Running"),
        (JOBS, "spec.parallelism=1"),
        (VOLUME_ATTACHMENTS, "spec.nodeName=worker-1"),
        *[(kind, "spec.providerID=x") for kind in CUSTOM_KINDS],
        (PODS, "spec.nodeName"),
    ],
)
async def test_a_field_that_cannot_be_selected_is_a_bad_request(
    client: ApiClient, kind: Resource, selector: str
) -> None:
    with refused(BAD_REQUEST):
        await client.list(kind, field_selector=selector)
