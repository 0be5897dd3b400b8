"""Requests that make no sense: each is refused with its status and reason, and changes nothing."""

from __future__ import annotations

import json

import pytest

from pp_hostd.kube.client import MERGE_PATCH, ApiClient, Json
from pp_hostd.kube.resources import BARE_METAL_HOSTS, CONFIG_MAPS, NODES, OPENSHIFT_MACHINES, PODS, Resource
from tests.contract.objects import config_map, label, sample
from tests.contract.refusals import (
    BAD_REQUEST,
    INTERNAL,
    INVALID,
    METHOD_NOT_ALLOWED,
    NO_SUCH_PATH,
    NOT_FOUND,
    TOO_LARGE,
    UNSUPPORTED_MEDIA_TYPE,
    Refusal,
    refused,
)

BOTH_SORTS = pytest.mark.parametrize("kind", [CONFIG_MAPS, BARE_METAL_HOSTS], ids=label)
NOT_OBJECTS = pytest.mark.parametrize("body", [b"{", b"[]", b'"text"', b"7", b"\xff"])


@BOTH_SORTS
@NOT_OBJECTS
async def test_a_body_that_is_no_json_object_is_a_bad_request(
    client: ApiClient, kind: Resource, body: bytes, namespace: str
) -> None:
    with refused(BAD_REQUEST):
        await client.request("POST", kind.path(namespace), body)


@BOTH_SORTS
@NOT_OBJECTS
async def test_a_patch_that_is_no_json_object_is_a_bad_request(
    client: ApiClient, kind: Resource, body: bytes, namespace: str
) -> None:
    created = await client.create(kind, sample(kind, "one"), namespace=namespace)
    with refused(BAD_REQUEST):
        await client.request("PATCH", kind.path(namespace, "one"), body, MERGE_PATCH)
    assert await client.get(kind, "one", namespace=namespace) == created


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"apiVersion": "v1", "kind": "Pod"}'])
async def test_options_that_make_no_sense_delete_nothing(client: ApiClient, body: bytes, namespace: str) -> None:
    await client.create(CONFIG_MAPS, config_map("roster"), namespace=namespace)
    with refused(BAD_REQUEST):
        await client.request("DELETE", CONFIG_MAPS.path(namespace, "roster"), body)
    await client.get(CONFIG_MAPS, "roster", namespace=namespace)


@pytest.mark.parametrize(
    ("kind", "changed", "refusal"),
    [
        (CONFIG_MAPS, {"kind": "Pod"}, BAD_REQUEST),
        (CONFIG_MAPS, {"apiVersion": "v2"}, BAD_REQUEST),
        (BARE_METAL_HOSTS, {"kind": "Host"}, INVALID),
        (BARE_METAL_HOSTS, {"apiVersion": "metal3.io/v9"}, BAD_REQUEST),
        (BARE_METAL_HOSTS, {"kind": ""}, BAD_REQUEST),
    ],
)
async def test_an_object_of_another_kind_is_refused(
    client: ApiClient, kind: Resource, changed: Json, refusal: Refusal, namespace: str
) -> None:
    with refused(refusal):
        await client.create(kind, {**sample(kind, "one"), **changed}, namespace=namespace)


@pytest.mark.parametrize(
    ("kind", "changed"),
    [
        (CONFIG_MAPS, {"metadata": "text"}),
        (CONFIG_MAPS, {"data": {"count": 7}}),
        (PODS, {"spec": "text"}),
        (NODES, {"metadata": {"name": "worker-1", "labels": {"rack": 7}}}),
        (CONFIG_MAPS, {"metadata": {"name": "one", "annotations": {"count": 7}}}),
        (OPENSHIFT_MACHINES, {"metadata": {"name": "one", "annotations": {"count": 7}}}),
        (OPENSHIFT_MACHINES, {"metadata": {"name": "one", "labels": {"rack": 7}}}),
    ],
)
async def test_a_value_of_the_wrong_type_is_a_bad_request(
    client: ApiClient, kind: Resource, changed: Json, where: str | None
) -> None:
    with refused(BAD_REQUEST):
        await client.create(kind, {**sample(kind, "one"), **changed}, namespace=where)


@BOTH_SORTS
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
async def test_an_unknown_media_type_is_not_supported(
    client: ApiClient, kind: Resource, method: str, namespace: str
) -> None:
    created = await client.create(kind, sample(kind, "one"), namespace=namespace)
    path = kind.path(namespace) if method == "POST" else kind.path(namespace, "one")
    with refused(UNSUPPORTED_MEDIA_TYPE):
        await client.request(method, path, created, "text/plain")


@BOTH_SORTS
async def test_a_patch_must_say_how_it_is_to_be_merged(client: ApiClient, kind: Resource, namespace: str) -> None:
    await client.create(kind, sample(kind, "one"), namespace=namespace)
    with refused(UNSUPPORTED_MEDIA_TYPE):
        await client.request("PATCH", kind.path(namespace, "one"), {}, "application/json")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/api/v1/namespaces/default/configmaps"),
        ("PATCH", "/api/v1/namespaces/default/configmaps"),
        ("POST", "/api/v1/namespaces/default/configmaps/roster"),
        ("POST", "/api/v1/configmaps"),
        ("DELETE", "/api/v1/configmaps"),
        ("DELETE", "/api/v1/nodes/worker-1/status"),
        ("POST", "/api/v1/nodes/worker-1"),
    ],
)
async def test_a_method_that_a_path_does_not_have_is_not_allowed(client: ApiClient, method: str, path: str) -> None:
    with refused(METHOD_NOT_ALLOWED):
        await client.request(
            method, path, config_map("roster"), MERGE_PATCH if method == "PATCH" else "application/json"
        )


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/nothings",
        "/api/v1/namespaces/default/nothings/one",
        "/api/v1/namespaces/default/nodes",
        "/api/v1/nodes/worker-1/nothing",
        "/apis/batch/v9/jobs",
        "/api/v1/namespaces/default/configmaps/roster/status",
    ],
)
async def test_an_unknown_kind_of_a_known_group_is_not_found(client: ApiClient, path: str) -> None:
    with refused(NOT_FOUND):
        await client.request("GET", path)


@pytest.mark.parametrize("path", ["/nothing", "/apis/nothing.example/v1/things", "/apis/metal3.io/v9/baremetalhosts"])
async def test_an_unknown_path_is_not_found(client: ApiClient, path: str) -> None:
    with refused(NO_SUCH_PATH):
        await client.request("GET", path)


@pytest.mark.parametrize(
    ("query", "refusal"),
    [
        ("resourceVersion=latest", BAD_REQUEST),
        ("watch=true&resourceVersion=latest", INTERNAL),
        ("watch=true&labelSelector=a%20b", BAD_REQUEST),
        ("watch=true&fieldSelector=data.a%3D1", BAD_REQUEST),
    ],
)
async def test_a_question_that_cannot_be_read_is_refused(
    client: ApiClient, query: str, refusal: Refusal, namespace: str
) -> None:
    with refused(refusal):
        await client.request("GET", f"{CONFIG_MAPS.path(namespace)}?{query}")


async def test_a_body_of_more_than_three_megabytes_is_too_large(client: ApiClient, namespace: str) -> None:
    body = json.dumps({**config_map("roster"), "data": {"roster": "x" * (3 * 1024 * 1024)}}).encode()
    with refused(TOO_LARGE):
        await client.request("POST", CONFIG_MAPS.path(namespace), body)
    assert (await client.list(CONFIG_MAPS, namespace=namespace)).items == []
