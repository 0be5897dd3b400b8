"""Replacing objects: every write of ours is conditional on the resourceVersion that was read."""

from __future__ import annotations

import asyncio

import pytest

from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.outcome import ApiError, Outcome
from pp_hostd.kube.resources import (
    BARE_METAL_HOSTS,
    CONFIG_MAPS,
    EVENTS,
    JOBS,
    LEASES,
    NODES,
    PODS,
    VOLUME_ATTACHMENTS,
    Resource,
)
from tests.contract.objects import (
    CUSTOM_KINDS,
    annotate,
    annotations_of,
    config_map,
    label,
    sample,
    uid_of,
    version_of,
)
from tests.contract.refusals import BAD_REQUEST, CONFLICT, INTERNAL, INVALID, NOT_FOUND, refused


async def create(client: ApiClient, namespace: str) -> Json:
    body = config_map("roster", annotations={"a": "1", "b": "2"})
    return await client.create(CONFIG_MAPS, body, namespace=namespace)


async def test_an_update_replaces_the_whole_object(client: ApiClient, namespace: str) -> None:
    read = await create(client, namespace)
    read["metadata"]["annotations"] = {"b": "3"}
    read["data"] = {"other": "2"}
    updated = await client.update(CONFIG_MAPS, read, namespace=namespace)
    assert annotations_of(updated) == {"b": "3"} and updated["data"] == {"other": "2"}
    assert uid_of(updated) == uid_of(read) and int(version_of(updated)) > int(version_of(read))


async def test_of_two_writers_that_read_the_same_version_one_loses(client: ApiClient, unique: str) -> None:
    read = await client.create(NODES, sample(NODES, unique))

    async def write(writer: str) -> str:
        body = {**read, "metadata": {**read["metadata"], "annotations": {"writer": writer}}}
        await client.update(NODES, body)
        return writer

    outcomes = await asyncio.gather(*(write(str(number)) for number in range(8)), return_exceptions=True)
    winners = [outcome for outcome in outcomes if isinstance(outcome, str)]
    losers = [outcome for outcome in outcomes if isinstance(outcome, ApiError)]
    assert len(winners) == 1 and [loser.outcome for loser in losers] == [Outcome.CONFLICT] * 7
    assert annotations_of(await client.get(NODES, unique)) == {"writer": winners[0]}


async def test_counting_by_read_and_conditional_write_loses_nothing(client: ApiClient, namespace: str) -> None:
    await client.create(CONFIG_MAPS, config_map("counter", annotations={"count": "0"}), namespace=namespace)

    async def add_one() -> None:
        while True:
            read = await client.get(CONFIG_MAPS, "counter", namespace=namespace)
            read["metadata"]["annotations"]["count"] = str(int(annotations_of(read)["count"]) + 1)
            try:
                await client.update(CONFIG_MAPS, read, namespace=namespace)
            except ApiError as error:
                assert error.reason == "Conflict"
            else:
                return

    await asyncio.gather(*(add_one() for _ in range(6)))
    assert annotations_of(await client.get(CONFIG_MAPS, "counter", namespace=namespace)) == {"count": "6"}


async def test_an_update_that_changes_nothing_keeps_the_version(client: ApiClient, namespace: str) -> None:
    read = await create(client, namespace)
    assert version_of(await client.update(CONFIG_MAPS, read, namespace=namespace)) == version_of(read)


async def test_a_stale_version_is_a_conflict_even_if_nothing_would_change(client: ApiClient, namespace: str) -> None:
    read = await create(client, namespace)
    current = await client.patch(CONFIG_MAPS, "roster", annotate(a="9"), namespace=namespace)
    current["metadata"]["resourceVersion"] = version_of(read)
    with refused(CONFLICT):
        await client.update(CONFIG_MAPS, current, namespace=namespace)


async def test_a_version_that_never_was_is_a_conflict(client: ApiClient, namespace: str) -> None:
    read = await create(client, namespace)
    read["metadata"]["resourceVersion"] = str(int(version_of(read)) + 1_000_000)
    with refused(CONFLICT):
        await client.update(CONFIG_MAPS, read, namespace=namespace)


async def test_a_version_that_is_no_number_is_an_error_of_the_server(client: ApiClient, namespace: str) -> None:
    read = await create(client, namespace)
    read["metadata"]["resourceVersion"] = "latest"
    with refused(INTERNAL):
        await client.update(CONFIG_MAPS, read, namespace=namespace)


@pytest.mark.parametrize("version", [None, "", "0"])
async def test_what_counts_as_no_version_makes_an_update_unconditional(
    client: ApiClient, version: object, namespace: str
) -> None:
    read = await create(client, namespace)
    await client.patch(CONFIG_MAPS, "roster", annotate(a="9"), namespace=namespace)
    read["metadata"]["resourceVersion"] = version
    assert annotations_of(await client.update(CONFIG_MAPS, read, namespace=namespace)) == {"a": "1", "b": "2"}


@pytest.mark.parametrize("kind", [NODES, PODS, CONFIG_MAPS, EVENTS, JOBS], ids=label)
async def test_without_a_version_most_builtin_kinds_are_updated_unconditionally(
    client: ApiClient, kind: Resource, unique: str, where: str | None
) -> None:
    read = await client.create(kind, sample(kind, unique, namespace=where), namespace=where)
    await client.patch(kind, unique, annotate(a="1"), namespace=where)
    del read["metadata"]["resourceVersion"]
    assert annotations_of(await client.update(kind, read, namespace=where)) == {}


@pytest.mark.parametrize("kind", [LEASES, VOLUME_ATTACHMENTS, *CUSTOM_KINDS], ids=label)
async def test_without_a_version_the_other_kinds_are_not_updated(
    client: ApiClient, kind: Resource, unique: str, where: str | None
) -> None:
    read = await client.create(kind, sample(kind, unique), namespace=where)
    body = {**read, "metadata": {"name": unique, "annotations": {"a": "1"}}}
    with refused(INVALID):
        await client.update(kind, body, namespace=where)


async def test_an_update_meant_for_an_earlier_incarnation_is_a_conflict(client: ApiClient, unique: str) -> None:
    first = await client.create(NODES, sample(NODES, unique))
    await client.delete(NODES, unique)
    second = await client.create(NODES, sample(NODES, unique))
    del first["metadata"]["resourceVersion"]
    with refused(CONFLICT):
        await client.update(NODES, first)
    assert await client.get(NODES, unique) == second


async def test_the_time_of_creation_stays_what_it_was(client: ApiClient, namespace: str) -> None:
    read = await create(client, namespace)
    meddled = {**read, "metadata": {**read["metadata"], "creationTimestamp": "2020-01-01T00:00:00Z"}}
    assert await client.update(CONFIG_MAPS, meddled, namespace=namespace) == read


async def test_only_a_deletion_sets_the_time_of_deletion(client: ApiClient, namespace: str) -> None:
    read = await create(client, namespace)
    read["metadata"]["deletionTimestamp"] = "2020-01-01T00:00:00Z"
    with refused(INVALID):
        await client.update(CONFIG_MAPS, read, namespace=namespace)


@pytest.mark.parametrize("kind", [NODES, PODS, CONFIG_MAPS, BARE_METAL_HOSTS], ids=label)
async def test_an_update_of_what_is_not_there_is_not_found(
    client: ApiClient, kind: Resource, unique: str, where: str | None
) -> None:
    with refused(NOT_FOUND):
        await client.update(kind, sample(kind, f"{unique}-missing", resourceVersion="7"), namespace=where)


@pytest.mark.parametrize("kind", [LEASES, EVENTS], ids=label)
async def test_an_update_of_a_lease_or_event_that_is_not_there_creates_it(
    client: ApiClient, kind: Resource, namespace: str
) -> None:
    made = await client.update(kind, sample(kind, "one", namespace=namespace), namespace=namespace)
    assert await client.get(kind, "one", namespace=namespace) == made


@pytest.mark.parametrize("metadata", [{"name": "other"}, {}, {"name": "roster", "namespace": "default"}])
async def test_name_and_namespace_in_the_body_must_be_those_of_the_path(
    client: ApiClient, metadata: Json, namespace: str
) -> None:
    await create(client, namespace)
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    with refused(BAD_REQUEST):
        await client.request("PUT", CONFIG_MAPS.path(namespace, "roster"), body)


async def test_an_update_with_a_bad_label_changes_nothing(client: ApiClient, namespace: str) -> None:
    read = await create(client, namespace)
    with refused(INVALID):
        await client.update(
            CONFIG_MAPS, {**read, "metadata": {**read["metadata"], "labels": {"a": "b c"}}}, namespace=namespace
        )
    assert await client.get(CONFIG_MAPS, "roster", namespace=namespace) == read


async def test_a_lease_is_renewed_by_its_holder_and_lost_to_nobody_else(client: ApiClient, namespace: str) -> None:
    held = await client.create(LEASES, sample(LEASES, "pp-leader"), namespace=namespace)
    renewed = {**held, "spec": {**held["spec"], "renewTime": "2031-02-03T04:05:06.000007Z"}}
    renewed = await client.update(LEASES, renewed, namespace=namespace)
    assert renewed["spec"]["renewTime"] == "2031-02-03T04:05:06.000007Z"
    with refused(CONFLICT):
        await client.update(LEASES, {**held, "spec": {"holderIdentity": "two"}}, namespace=namespace)
