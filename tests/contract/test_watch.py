"""Watches: every change once and in order, also across a resumption and through a selector."""

from __future__ import annotations

import asyncio

import pytest

from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.outcome import Outcome
from pp_hostd.kube.resources import BARE_METAL_HOSTS, CONFIG_MAPS, NODES, OPENSHIFT_MACHINES, PODS, Resource
from pp_hostd.kube.watch import ChangeKind
from tests.contract.following import follow, story
from tests.contract.objects import (
    annotate,
    annotations_of,
    config_map,
    label,
    name_of,
    pod,
    sample,
    uid_of,
    version_of,
)

END = "the-end"
CONDEMNED = "pp-hostd.io/condemned"


def relabel(value: object) -> Json:
    return {"metadata": {"labels": {CONDEMNED: value}}}


async def write_the_end(client: ApiClient, namespace: str, kind: Resource = CONFIG_MAPS) -> None:
    """The last change that a case makes: what was to come has come when this is seen."""
    await client.create(kind, sample(kind, END, labels={CONDEMNED: "yes"}), namespace=namespace)


async def test_a_watch_starts_with_what_is_there(client: ApiClient, namespace: str) -> None:
    there = [await client.create(CONFIG_MAPS, config_map(name), namespace=namespace) for name in "ab"]
    async with follow(client, CONFIG_MAPS, namespace=namespace) as following:
        assert (await following.snapshot()).items == there
        await write_the_end(client, namespace)
        assert await following.until(END) == []


async def test_the_changes_of_an_object_come_in_the_order_of_its_writes(client: ApiClient, namespace: str) -> None:
    async with follow(client, CONFIG_MAPS, namespace=namespace) as following:
        await following.snapshot()
        written = [await client.create(CONFIG_MAPS, config_map("counter"), namespace=namespace)]
        for count in range(20):
            patch = annotate(count=str(count))
            written.append(await client.patch(CONFIG_MAPS, "counter", patch, namespace=namespace))
        await write_the_end(client, namespace)
        changes = await following.until(END)
    assert [change.object for change in changes] == written
    assert [change.kind for change in changes] == [ChangeKind.ADDED, *[ChangeKind.MODIFIED] * 20]


async def test_the_changes_of_many_objects_come_in_the_order_of_versions(client: ApiClient, namespace: str) -> None:
    async def live(name: str) -> None:
        await client.create(CONFIG_MAPS, config_map(name), namespace=namespace)
        await client.patch(CONFIG_MAPS, name, annotate(seen="yes"), namespace=namespace)
        await client.delete(CONFIG_MAPS, name, namespace=namespace)

    async with follow(client, CONFIG_MAPS, namespace=namespace) as following:
        await following.snapshot()
        await asyncio.gather(*(live(name) for name in "abcdef"))
        await write_the_end(client, namespace)
        changes = await following.until(END)
    versions = [int(version_of(change.object)) for change in changes]
    assert versions == sorted(set(versions)) and len(versions) == 18
    for name in "abcdef":
        kinds = [change.kind.value for change in changes if name_of(change.object) == name]
        assert kinds == ["ADDED", "MODIFIED", "DELETED"]


async def test_a_deletion_shows_the_last_state_at_a_new_version(client: ApiClient, namespace: str) -> None:
    async with follow(client, CONFIG_MAPS, namespace=namespace) as following:
        await following.snapshot()
        last = await client.create(CONFIG_MAPS, config_map("a", annotations={"last": "words"}), namespace=namespace)
        await client.delete(CONFIG_MAPS, "a", namespace=namespace)
        gone = (await following.until_deleted())[-1].object
    assert (uid_of(gone), annotations_of(gone)) == (uid_of(last), {"last": "words"})
    assert int(version_of(gone)) > int(version_of(last))


async def test_a_name_used_again_is_told_as_an_end_and_a_beginning(client: ApiClient, unique: str) -> None:
    first = await client.create(NODES, sample(NODES, unique))
    async with follow(client, NODES, field_selector=f"metadata.name={unique}") as following:
        await following.snapshot()
        await client.delete(NODES, unique)
        second = await client.create(NODES, sample(NODES, unique))
        deleted, added = await following.change(), await following.change()
    assert (deleted.kind, uid_of(deleted.object)) == (ChangeKind.DELETED, uid_of(first))
    assert (added.kind, added.object) == (ChangeKind.ADDED, second)


@pytest.mark.parametrize("kind", [CONFIG_MAPS, OPENSHIFT_MACHINES], ids=label)
async def test_a_resumed_watch_misses_nothing_and_repeats_nothing(
    client: ApiClient, kind: Resource, namespace: str
) -> None:
    start = (await client.list(kind, namespace=namespace)).resource_version
    for name in "abc":
        await client.create(kind, sample(kind, name), namespace=namespace)
        await client.patch(kind, name, annotate(seen="yes"), namespace=namespace)
    await client.delete(kind, "b", namespace=namespace)
    await write_the_end(client, namespace, kind)
    async with follow(client, kind, namespace=namespace, resource_version=start) as following:
        whole = await following.until(END)
    assert len(whole) == 7
    for read, change in enumerate(whole, start=1):
        last_seen = version_of(change.object)
        async with follow(client, kind, namespace=namespace, resource_version=last_seen) as following:
            assert await following.until(END) == whole[read:]


async def test_a_watch_goes_on_from_the_version_of_a_list(client: ApiClient, namespace: str) -> None:
    await client.create(CONFIG_MAPS, config_map("before"), namespace=namespace)
    listed = await client.list(CONFIG_MAPS, namespace=namespace)
    await client.create(CONFIG_MAPS, config_map("after"), namespace=namespace)
    await write_the_end(client, namespace)
    version = listed.resource_version
    async with follow(client, CONFIG_MAPS, namespace=namespace, resource_version=version) as following:
        assert story(await following.until(END)) == [("ADDED", "after")]


async def test_a_write_that_changes_nothing_is_no_news(client: ApiClient, namespace: str) -> None:
    created = await client.create(CONFIG_MAPS, config_map("a"), namespace=namespace)
    async with follow(client, CONFIG_MAPS, namespace=namespace) as following:
        await following.snapshot()
        await client.patch(CONFIG_MAPS, "a", {}, namespace=namespace)
        await client.update(CONFIG_MAPS, created, namespace=namespace)
        await write_the_end(client, namespace)
        assert await following.until(END) == []


async def test_a_write_that_is_refused_is_no_news(client: ApiClient, namespace: str) -> None:
    created = await client.create(CONFIG_MAPS, config_map("a"), namespace=namespace)
    await client.patch(CONFIG_MAPS, "a", annotate(a="1"), namespace=namespace)
    async with follow(client, CONFIG_MAPS, namespace=namespace) as following:
        await following.snapshot()
        refusals = await asyncio.gather(
            client.update(CONFIG_MAPS, created, namespace=namespace),
            client.create(CONFIG_MAPS, config_map("a"), namespace=namespace),
            client.delete(CONFIG_MAPS, "a", namespace=namespace, uid="another"),
            return_exceptions=True,
        )
        await write_the_end(client, namespace)
        assert await following.until(END) == []
    assert all(isinstance(refusal, Exception) for refusal in refusals)


async def test_a_namespaced_watch_sees_its_namespace_only(client: ApiClient, namespace: str) -> None:
    async with follow(client, CONFIG_MAPS, namespace=namespace) as following:
        await following.snapshot()
        await client.create(CONFIG_MAPS, config_map(namespace), namespace="default")
        await write_the_end(client, namespace)
        assert await following.until(END) == []


async def test_a_watch_of_all_namespaces_sees_them_all(client: ApiClient, namespace: str) -> None:
    labels = {"case": namespace}
    async with follow(client, CONFIG_MAPS, label_selector=f"case={namespace}") as following:
        await following.snapshot()
        await client.create(CONFIG_MAPS, config_map(namespace, labels=labels), namespace="default")
        await client.create(CONFIG_MAPS, config_map(END, labels=labels), namespace=namespace)
        assert story(await following.until(END)) == [("ADDED", namespace)]


async def test_two_watches_tell_the_same_story(client: ApiClient, namespace: str) -> None:
    async with (
        follow(client, CONFIG_MAPS, namespace=namespace) as one,
        follow(client, CONFIG_MAPS, namespace=namespace) as two,
    ):
        await one.snapshot()
        await two.snapshot()
        for name in "abc":
            await client.create(CONFIG_MAPS, config_map(name), namespace=namespace)
        await client.delete(CONFIG_MAPS, "b", namespace=namespace)
        await write_the_end(client, namespace)
        assert await one.until(END) == await two.until(END)


@pytest.mark.parametrize("kind", [NODES, OPENSHIFT_MACHINES, CONFIG_MAPS], ids=label)
async def test_a_label_selects_what_is_watched(
    client: ApiClient, kind: Resource, unique: str, where: str | None
) -> None:
    """The list of the condemned: objects come when they are labelled and go when they no longer are."""
    await client.create(kind, sample(kind, unique), namespace=where)
    selector = f"{CONDEMNED}={unique}"
    async with follow(client, kind, namespace=where, label_selector=selector) as following:
        assert (await following.snapshot()).items == []
        await client.patch(kind, unique, annotate(unseen="yes"), namespace=where)
        condemned = await client.patch(kind, unique, relabel(unique), namespace=where)
        noted = await client.patch(kind, unique, annotate(seen="yes"), namespace=where)
        lifted = await client.patch(kind, unique, relabel(None), namespace=where)
        added, modified, gone = await following.until_deleted()
        await client.patch(kind, unique, annotate(unseen="again"), namespace=where)
        await client.patch(kind, unique, relabel(unique), namespace=where)
        again = await following.change()
    assert (added.kind, added.object) == (ChangeKind.ADDED, condemned)
    assert (modified.kind, modified.object) == (ChangeKind.MODIFIED, noted)
    # An object that left the selection is shown as it last matched, at the version of the change that took it out.
    assert gone.object["metadata"]["labels"] == noted["metadata"]["labels"]
    assert (uid_of(gone.object), version_of(gone.object)) == (uid_of(noted), version_of(lifted))
    assert (again.kind, annotations_of(again.object)["unseen"]) == (ChangeKind.ADDED, "again")


async def test_a_selecting_watch_resumes_without_loss(client: ApiClient, namespace: str) -> None:
    start = (await client.list(CONFIG_MAPS, namespace=namespace)).resource_version
    await client.create(CONFIG_MAPS, config_map("a"), namespace=namespace)
    for value in ("yes", None, "yes"):
        await client.patch(CONFIG_MAPS, "a", relabel(value), namespace=namespace)
    await client.delete(CONFIG_MAPS, "a", namespace=namespace)
    await write_the_end(client, namespace)
    options = {"namespace": namespace, "label_selector": f"{CONDEMNED}=yes"}
    async with follow(client, CONFIG_MAPS, resource_version=start, **options) as following:
        whole = await following.until(END)
    assert [change.kind.value for change in whole] == ["ADDED", "DELETED", "ADDED", "DELETED"]
    for read, change in enumerate(whole, start=1):
        version = version_of(change.object)
        async with follow(client, CONFIG_MAPS, resource_version=version, **options) as following:
            assert await following.until(END) == whole[read:]


async def test_the_pods_of_a_node_are_watched_by_field(client: ApiClient, namespace: str) -> None:
    async with follow(client, PODS, namespace=namespace, field_selector="spec.nodeName=worker-1") as following:
        await following.snapshot()
        await client.create(PODS, pod("elsewhere", nodeName="worker-2"), namespace=namespace)
        await client.create(PODS, pod("here", nodeName="worker-1"), namespace=namespace)
        await client.delete(PODS, "here", namespace=namespace, grace_period_seconds=0)
        changes = await following.until_deleted()
    assert {name_of(change.object) for change in changes} == {"here"}
    assert changes[0].kind is ChangeKind.ADDED


async def test_a_deletion_held_by_a_finalizer_is_seen_twice(client: ApiClient, namespace: str) -> None:
    kind = OPENSHIFT_MACHINES
    async with follow(client, kind, namespace=namespace) as following:
        await following.snapshot()
        await client.create(kind, sample(kind, "one", finalizers=["example.com/hold"]), namespace=namespace)
        marked = await client.delete(kind, "one", namespace=namespace)
        await client.patch(kind, "one", {"metadata": {"finalizers": None}}, namespace=namespace)
        added, modified, deleted = await following.until_deleted()
    assert "deletionTimestamp" not in added.object["metadata"] and modified.object == marked
    assert deleted.object["metadata"]["deletionTimestamp"] == marked["metadata"]["deletionTimestamp"]
    assert int(version_of(deleted.object)) > int(version_of(marked))


async def test_status_writes_are_news_too(client: ApiClient, namespace: str) -> None:
    kind = BARE_METAL_HOSTS
    await client.create(kind, sample(kind, "host-1"), namespace=namespace)
    async with follow(client, kind, namespace=namespace) as following:
        await following.snapshot()
        off = {"status": {"poweredOn": False}}
        patched = await client.patch(kind, "host-1", off, namespace=namespace, subresource="status")
        change = await following.change()
    assert (change.kind, change.object) == (ChangeKind.MODIFIED, patched)


async def test_a_watch_that_the_server_ends_goes_on_without_loss(client: ApiClient, namespace: str) -> None:
    clock = asyncio.get_running_loop()
    async with follow(client, CONFIG_MAPS, namespace=namespace, timeout_seconds=1) as following:
        await following.snapshot()
        ended_at = clock.time() + 1.5  # by then the first stream has ended
        number = 0
        while clock.time() < ended_at:
            name = f"change-{number}"
            created = await client.create(CONFIG_MAPS, config_map(name), namespace=namespace)
            assert (await following.change()).object == created
            number += 1


async def test_a_bad_selector_interrupts_a_watch_with_its_reason(client: ApiClient, namespace: str) -> None:
    version = (await client.list(CONFIG_MAPS, namespace=namespace)).resource_version
    options = {"namespace": namespace, "resource_version": version}
    async with follow(client, CONFIG_MAPS, field_selector="data.a=1", **options) as following:
        error = (await following.interrupted()).error
    assert (error.outcome, error.status) == (Outcome.INVALID, 400)
