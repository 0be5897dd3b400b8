"""The suspects on the agent's own Node, on a real API: written only on a change, and beside the agent's record."""

from __future__ import annotations

from typing import Callable

import pytest

from pp_hostd.agent.sense.api import post_annotation, read_node, store
from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.resources import NODES
from pp_hostd.model.keys import AGENT, SUSPECTS
from pp_hostd.model.promise import Withdrawn
from pp_hostd.model.step import Written
from pp_hostd.model.suspicion import Suspicion
from tests.agent.objects import boottime
from tests.contract.objects import annotate, sample, version_of

ClientOf = Callable[[str], ApiClient]
A, B = Suspicion(("a",)), Suspicion(("a", "b"))


async def post_suspicion(api: ApiClient, name: str, wanted: Suspicion | None) -> str:
    return await post_annotation(api, name, SUSPECTS, None if wanted is None else wanted.render())


def on_node(node: Json) -> dict[str, str]:
    return dict(node["metadata"].get("annotations", {}))


async def test_a_node_s_own_credential_names_suspects_and_removes_them(
    client: ApiClient, client_of: ClientOf, unique: str
) -> None:
    await client.create(NODES, sample(NODES, unique))
    own = client_of(f"system:node:{unique}")
    for wanted in (A, B, None):
        assert await post_suspicion(own, unique, wanted) == ""
        found = on_node(await client.get(NODES, unique)).get(SUSPECTS)
        assert found == (None if wanted is None else wanted.render())


@pytest.mark.parametrize("wanted", [None, A])
async def test_what_stands_there_already_is_not_written_again(
    client: ApiClient, unique: str, wanted: Suspicion | None
) -> None:
    named = {} if wanted is None else {SUSPECTS: wanted.render()}
    created = await client.create(NODES, sample(NODES, unique, annotations=named))
    assert await post_suspicion(client, unique, wanted) == ""
    assert version_of(await client.get(NODES, unique)) == version_of(created)


async def test_the_record_and_other_annotations_stay_and_so_do_the_suspects(client: ApiClient, unique: str) -> None:
    await client.create(NODES, sample(NODES, unique))
    await client.patch(NODES, unique, annotate(foreign="yes"))
    assert await post_suspicion(client, unique, A) == ""
    look = await read_node(client, unique, boottime)
    assert look.node is not None
    ended = await store(client, look.node, Withdrawn("boot-1"), boottime)
    assert ended.written is Written.DONE
    assert await post_suspicion(client, unique, B) == ""
    found = on_node(await client.get(NODES, unique))
    assert (found[AGENT], found[SUSPECTS]) == (Withdrawn("boot-1").render(), B.render())
    assert len(found) == 3 + len(on_node(sample(NODES, unique)))


async def test_without_a_node_there_is_nothing_to_remove_and_nothing_to_write_to(
    client: ApiClient, client_of: ClientOf, unique: str
) -> None:
    assert await post_suspicion(client, unique, None) == ""
    assert "not found" in await post_suspicion(client, unique, A)
    assert "forbidden" in await post_suspicion(client_of("nobody"), unique, A)
