"""The key cases once more, through the official client: two clients must agree on each server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Callable

import kubernetes
import pytest

from pp_hostd.kube.client import MERGE_PATCH, ApiClient, Json
from pp_hostd.kube.kubeconfig import Kubeconfig
from pp_hostd.kube.resources import BARE_METAL_HOSTS, CONFIG_MAPS, NODES
from tests.contract.objects import config_map, name_of, names_of, pod, sample

official: Any = kubernetes  # typed in some of its releases and not in others
MACHINE = ("machine.openshift.io", "v1beta1")
HOST = ("metal3.io", "v1alpha1")


@pytest.fixture
def official_of(kubeconfig_of: Callable[[str], Kubeconfig]) -> Iterator[Callable[[str], Any]]:
    """Makes official clients for users by name."""
    clients = []

    def make(user: str) -> Any:
        clients.append(official.config.new_client_from_config(kubeconfig_of(user).path))
        return clients[-1]

    yield make
    for client in clients:
        client.close()
        client.rest_client.pool_manager.clear()


@pytest.fixture
def admin(official_of: Callable[[str], Any]) -> Any:
    return official_of("admin")


@pytest.fixture
def core(admin: Any) -> Any:
    return official.client.CoreV1Api(admin)


@pytest.fixture
def custom(admin: Any) -> Any:
    return official.client.CustomObjectsApi(admin)


@pytest.fixture
def merging(official_of: Callable[[str], Any]) -> Any:
    """For merge-patches only: this way to ask for them is the one that all releases have."""
    client = official_of("admin")
    client.set_default_header("Content-Type", MERGE_PATCH)
    return client


@contextmanager
def refused(status: int, reason: str) -> Iterator[None]:
    with pytest.raises(official.client.ApiException) as caught:
        yield
    assert (caught.value.status, json.loads(caught.value.body)["reason"]) == (status, reason)


def test_both_clients_read_the_same(core: Any, custom: Any, client: ApiClient, unique: str, namespace: str) -> None:
    async def create() -> list[Json]:
        return [
            await client.create(NODES, sample(NODES, unique)),
            await client.create(CONFIG_MAPS, config_map("roster"), namespace=namespace),
            await client.create(BARE_METAL_HOSTS, sample(BARE_METAL_HOSTS, "host-1"), namespace=namespace),
        ]

    created = asyncio.run(create())
    node = core.read_node(unique, _preload_content=False)
    roster = core.read_namespaced_config_map("roster", namespace, _preload_content=False)
    host = custom.get_namespaced_custom_object(*HOST, namespace, "baremetalhosts", "host-1")
    assert [json.loads(node.data), json.loads(roster.data), host] == created


def test_what_one_client_writes_the_other_reads(core: Any, client: ApiClient, namespace: str) -> None:
    made = core.create_namespaced_config_map(namespace, config_map("roster", annotations={"a": "1"}))
    read = asyncio.run(client.get(CONFIG_MAPS, "roster", namespace=namespace))
    assert (read["metadata"]["uid"], read["metadata"]["resourceVersion"]) == (
        made.metadata.uid,
        made.metadata.resource_version,
    )
    assert read["metadata"]["annotations"] == made.metadata.annotations == {"a": "1"}


def test_a_stale_replacement_is_a_conflict(core: Any, unique: str) -> None:
    node = core.create_node({"metadata": {"name": unique}})
    node.metadata.annotations = {"writer": "first"}
    core.replace_node(unique, node)
    node.metadata.annotations = {"writer": "second"}
    with refused(409, "Conflict"):
        core.replace_node(unique, node)
    assert core.read_node(unique).metadata.annotations == {"writer": "first"}


def test_a_taken_name_already_exists(core: Any, unique: str) -> None:
    core.create_node({"metadata": {"name": unique}})
    with refused(409, "AlreadyExists"):
        core.create_node({"metadata": {"name": unique}})


def test_an_annotation_is_set_and_removed_by_patch(core: Any, merging: Any, unique: str) -> None:
    patch = official.client.CoreV1Api(merging).patch_node
    core.create_node({"metadata": {"name": unique, "annotations": {"kept": "1"}}})
    both = patch(unique, {"metadata": {"annotations": {"added": "2"}}})
    left = patch(unique, {"metadata": {"annotations": {"added": None}}})
    assert both.metadata.annotations == {"kept": "1", "added": "2"}
    assert left.metadata.annotations == core.read_node(unique).metadata.annotations == {"kept": "1"}


def test_selectors_choose(core: Any, namespace: str) -> None:
    for name, node in (("a", "worker-1"), ("b", "worker-2")):
        core.create_namespaced_pod(
            namespace, {**pod(name, nodeName=node), "metadata": {"name": name, "labels": {"n": name}}}
        )
    by_field = core.list_namespaced_pod(namespace, field_selector="spec.nodeName=worker-2").items
    by_label = core.list_namespaced_pod(namespace, label_selector="n in (a)").items
    assert [[item.metadata.name for item in items] for items in (by_field, by_label)] == [["b"], ["a"]]
    with refused(400, "BadRequest"):
        core.list_namespaced_pod(namespace, field_selector="spec.unknown=1")


def test_pages_follow_each_other(core: Any, namespace: str) -> None:
    for name in "abc":
        core.create_namespaced_config_map(namespace, config_map(name))
    first = core.list_namespaced_config_map(namespace, limit=2)
    second = core.list_namespaced_config_map(namespace, limit=2, _continue=first.metadata._continue)
    assert [item.metadata.name for item in first.items + second.items] == ["a", "b", "c"]
    assert (first.metadata.remaining_item_count, second.metadata._continue) == (1, None)


def test_a_finalizer_holds_a_custom_object(custom: Any, merging: Any, namespace: str) -> None:
    where = (*MACHINE, namespace, "machines")
    body = {"apiVersion": "/".join(MACHINE), "kind": "Machine"}
    custom.create_namespaced_custom_object(
        *where, {**body, "metadata": {"name": "worker-1", "finalizers": ["example.com/hold"]}, "spec": {}}
    )
    custom.delete_namespaced_custom_object(*where, "worker-1")
    assert custom.get_namespaced_custom_object(*where, "worker-1")["metadata"]["deletionTimestamp"]
    freed = {"metadata": {"finalizers": None}}
    official.client.CustomObjectsApi(merging).patch_namespaced_custom_object(*where, "worker-1", freed)
    with refused(404, "NotFound"):
        custom.get_namespaced_custom_object(*where, "worker-1")


def test_the_status_of_a_custom_object_is_written_apart(custom: Any, merging: Any, namespace: str) -> None:
    where = (*HOST, namespace, "baremetalhosts")
    body = {"apiVersion": "/".join(HOST), "kind": "BareMetalHost", "metadata": {"name": "host-1"}}
    custom.create_namespaced_custom_object(*where, {**body, "spec": {"online": True}})
    both = {"spec": {"online": False}, "status": {"poweredOn": True}}
    official.client.CustomObjectsApi(merging).patch_namespaced_custom_object_status(*where, "host-1", both)
    read = custom.get_namespaced_custom_object(*where, "host-1")
    assert (read["spec"], read["status"]) == ({"online": True}, {"poweredOn": True})


def test_a_deletion_meant_for_another_incarnation_is_a_conflict(core: Any, unique: str) -> None:
    core.create_node({"metadata": {"name": unique}})
    meant = official.client.V1DeleteOptions(preconditions=official.client.V1Preconditions(uid="another"))
    with refused(409, "Conflict"):
        core.delete_node(unique, body=meant)
    core.delete_node(unique)
    with refused(404, "NotFound"):
        core.read_node(unique)


def test_a_pod_is_freed_at_once_by_a_grace_of_zero(core: Any, namespace: str) -> None:
    core.create_namespaced_pod(namespace, pod("web", nodeName="worker-1"))
    assert core.delete_namespaced_pod("web", namespace).metadata.deletion_grace_period_seconds == 30
    core.delete_namespaced_pod("web", namespace, grace_period_seconds=0)
    with refused(404, "NotFound"):
        core.read_namespaced_pod("web", namespace)


def test_a_lease_is_renewed_under_its_version(admin: Any, namespace: str) -> None:
    leases = official.client.CoordinationV1Api(admin)
    held = leases.create_namespaced_lease(
        namespace, {"metadata": {"name": "pp-leader"}, "spec": {"holderIdentity": "one"}}
    )
    held.spec.holder_identity = "two"
    leases.replace_namespaced_lease("pp-leader", namespace, held)
    with refused(409, "Conflict"):
        leases.replace_namespaced_lease("pp-leader", namespace, held)


def test_a_watch_tells_the_same_story(core: Any, namespace: str) -> None:
    core.create_namespaced_config_map(namespace, config_map("before"))
    version = core.list_namespaced_config_map(namespace).metadata.resource_version
    core.create_namespaced_config_map(namespace, config_map("a"))
    core.delete_namespaced_config_map("before", namespace)
    core.create_namespaced_config_map(namespace, config_map("the-end"))
    watch = official.watch.Watch()
    seen = []
    for event in watch.stream(core.list_namespaced_config_map, namespace, resource_version=version, timeout_seconds=10):
        seen.append((event["type"], event["object"].metadata.name))
        if seen[-1][1] == "the-end":
            watch.stop()
    assert seen == [("ADDED", "a"), ("DELETED", "before"), ("ADDED", "the-end")]


def test_a_watch_without_a_version_begins_with_what_is_there_and_ends_by_itself(core: Any, namespace: str) -> None:
    for name in "ba":
        core.create_namespaced_config_map(namespace, config_map(name))
    events = official.watch.Watch().stream(core.list_namespaced_config_map, namespace, timeout_seconds=1)
    assert [(event["type"], name_of(event["raw_object"])) for event in events] == [("ADDED", "a"), ("ADDED", "b")]


def test_lists_of_custom_objects_name_their_kind(custom: Any, namespace: str) -> None:
    where = (*HOST, namespace, "baremetalhosts")
    body = {"apiVersion": "/".join(HOST), "kind": "BareMetalHost", "metadata": {"name": "host-1"}}
    custom.create_namespaced_custom_object(*where, body)
    listing = custom.list_namespaced_custom_object(*where)
    assert (listing["kind"], names_of(listing["items"])) == ("BareMetalHostList", ["host-1"])
    assert (listing["items"][0]["kind"], listing["items"][0]["apiVersion"]) == ("BareMetalHost", "/".join(HOST))


def test_a_user_without_rights_is_forbidden(official_of: Callable[[str], Any]) -> None:
    with refused(403, "Forbidden"):
        official.client.CoreV1Api(official_of("nobody")).list_node()
