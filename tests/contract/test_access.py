"""Users without rights, and with a reader's: what they may do, and what the refusals tell them."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Callable

import pytest

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.outcome import Outcome
from pp_hostd.kube.resources import BARE_METAL_HOSTS, CONFIG_MAPS, EVENTS, JOBS, NODES, OPENSHIFT_MACHINES, Resource
from tests.contract.following import follow
from tests.contract.objects import annotate, config_map, label, sample
from tests.contract.refusals import FORBIDDEN, all_refused, refused

ClientOf = Callable[[str], ApiClient]


ATTEMPTS: dict[str, Callable[[ApiClient], Awaitable[object]]] = {
    'get resource "nodes"': lambda client: client.get(NODES, "worker-1"),
    'list resource "nodes"': lambda client: client.list(NODES),
    'create resource "nodes"': lambda client: client.create(NODES, sample(NODES, "worker-1")),
    'update resource "nodes"': lambda client: client.update(NODES, sample(NODES, "worker-1")),
    'patch resource "nodes"': lambda client: client.patch(NODES, "worker-1", {}),
    'patch resource "nodes/status"': lambda client: client.patch(NODES, "worker-1", {}, subresource="status"),
    'delete resource "nodes"': lambda client: client.delete(NODES, "worker-1"),
    'get resource "machines" in API group "machine.openshift.io" in the namespace "metal"': (
        lambda client: client.get(OPENSHIFT_MACHINES, "worker-1", namespace="metal")
    ),
}


@pytest.mark.parametrize("attempt", ATTEMPTS)
async def test_without_rights_nothing_goes_and_the_refusal_says_what(client_of: ClientOf, attempt: str) -> None:
    with refused(FORBIDDEN) as caught:
        await ATTEMPTS[attempt](client_of("nobody"))
    assert f'User "nobody" cannot {attempt}' in caught.value.sentence


async def test_a_watch_without_rights_is_interrupted_as_forbidden(client_of: ClientOf) -> None:
    async with follow(client_of("nobody"), NODES, resource_version="1") as following:
        assert (await following.interrupted()).error.outcome is Outcome.FORBIDDEN


async def test_without_rights_nobody_learns_what_is_missing_or_malformed(client_of: ClientOf, namespace: str) -> None:
    with refused(FORBIDDEN):
        await client_of("nobody").get(CONFIG_MAPS, "missing", namespace=namespace)
    with refused(FORBIDDEN):
        await client_of("nobody").request("POST", CONFIG_MAPS.path(namespace), b"{")


async def test_a_reader_reads_and_watches(client: ApiClient, client_of: ClientOf, namespace: str) -> None:
    reader = client_of("reader")
    async with follow(reader, CONFIG_MAPS, namespace=namespace) as following:
        await following.snapshot()
        created = await client.create(CONFIG_MAPS, config_map("roster"), namespace=namespace)
        assert (await following.change()).object == created
    assert await reader.get(CONFIG_MAPS, "roster", namespace=namespace) == created
    assert (await reader.list(CONFIG_MAPS, namespace=namespace)).items == [created]


async def test_a_reader_does_not_write(client: ApiClient, client_of: ClientOf, namespace: str) -> None:
    created = await client.create(CONFIG_MAPS, config_map("roster"), namespace=namespace)
    reader = client_of("reader")
    await all_refused(
        FORBIDDEN,
        reader.create(CONFIG_MAPS, config_map("other"), namespace=namespace),
        reader.update(CONFIG_MAPS, created, namespace=namespace),
        reader.patch(CONFIG_MAPS, "roster", annotate(a="1"), namespace=namespace),
        reader.delete(CONFIG_MAPS, "roster", namespace=namespace),
    )
    assert (await client.list(CONFIG_MAPS, namespace=namespace)).items == [created]


@pytest.mark.parametrize("kind", [JOBS, EVENTS, OPENSHIFT_MACHINES, BARE_METAL_HOSTS], ids=label)
async def test_a_reader_reads_no_more_than_it_may(client_of: ClientOf, kind: Resource, namespace: str) -> None:
    with refused(FORBIDDEN):
        await client_of("reader").list(kind, namespace=namespace)
