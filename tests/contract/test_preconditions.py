"""Deleting only what was meant: by uid, by resourceVersion, by both."""

from __future__ import annotations

import pytest

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.resources import CONFIG_MAPS, NODES, OPENSHIFT_MACHINES, Resource
from tests.contract.objects import annotate, label, sample, uid_of, version_of
from tests.contract.refusals import CONFLICT, NOT_FOUND, refused

pytestmark = pytest.mark.parametrize("kind", [NODES, CONFIG_MAPS, OPENSHIFT_MACHINES], ids=label)


async def test_uid_and_version_that_are_current_let_a_deletion_through(
    client: ApiClient, kind: Resource, unique: str, where: str | None
) -> None:
    created = await client.create(kind, sample(kind, unique), namespace=where)
    await client.delete(kind, unique, namespace=where, uid=uid_of(created), resource_version=version_of(created))
    with refused(NOT_FOUND):
        await client.get(kind, unique, namespace=where)


async def test_a_stale_version_is_a_conflict(client: ApiClient, kind: Resource, unique: str, where: str | None) -> None:
    read = await client.create(kind, sample(kind, unique), namespace=where)
    current = await client.patch(kind, unique, annotate(promise="withdrawn"), namespace=where)
    for uid in (None, uid_of(read)):
        with refused(CONFLICT):
            await client.delete(kind, unique, namespace=where, uid=uid, resource_version=version_of(read))
    assert await client.get(kind, unique, namespace=where) == current


async def test_the_uid_of_an_earlier_incarnation_is_a_conflict(
    client: ApiClient, kind: Resource, unique: str, where: str | None
) -> None:
    first = await client.create(kind, sample(kind, unique), namespace=where)
    await client.delete(kind, unique, namespace=where)
    second = await client.create(kind, sample(kind, unique), namespace=where)
    with refused(CONFLICT):
        await client.delete(kind, unique, namespace=where, uid=uid_of(first))
    with refused(CONFLICT):
        await client.delete(kind, unique, namespace=where, uid=uid_of(first), resource_version=version_of(second))
    assert await client.get(kind, unique, namespace=where) == second


async def test_a_precondition_on_what_is_not_there_is_not_found(
    client: ApiClient, kind: Resource, unique: str, where: str | None
) -> None:
    with refused(NOT_FOUND):
        await client.delete(kind, f"{unique}-x", namespace=where, uid="any")


async def test_preconditions_also_guard_what_a_finalizer_holds(
    client: ApiClient, kind: Resource, unique: str, where: str | None
) -> None:
    created = await client.create(kind, sample(kind, unique, finalizers=["example.com/hold"]), namespace=where)
    with refused(CONFLICT):
        await client.delete(kind, unique, namespace=where, uid="another")
    assert await client.get(kind, unique, namespace=where) == created
    await client.delete(kind, unique, namespace=where, uid=uid_of(created))
    with refused(CONFLICT):
        await client.delete(kind, unique, namespace=where, resource_version=version_of(created))
