"""The agent's record on its Node: written only on what was read, and every outcome told for what it is (rule 5)."""

from __future__ import annotations

from dataclasses import replace
from typing import Callable

import pytest

from pp_hostd.agent.sense.api import read_node, store
from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.kubeconfig import Kubeconfig
from pp_hostd.kube.resources import CONFIG_MAPS, NODES
from pp_hostd.model.boot_commitments import StoreEnded
from pp_hostd.model.keys import AGENT, NAMESPACE, backup_name
from pp_hostd.model.node import Node, parse_node
from pp_hostd.model.promise import AgentRecord, Armed, Committed, GateClosed, GateKind, WatchdogKind, Withdrawn
from pp_hostd.model.step import Written
from tests.agent.objects import boottime, create_our_namespace
from tests.contract.objects import annotate, config_map, sample, version_of
from tests.harness.trouble import TroubleServer
from tests.kube.conftest import Dial

ClientOf = Callable[[str], ApiClient]
ARMED = Armed("boot-1", 22.0, 10.0, WatchdogKind.HARDWARE, GateKind.HOLD, "machine-uid", 12)
NODE = Node("worker", "uid", "1", None, None, None, tainted=False, unschedulable=False)
RECORDS: list[AgentRecord] = [GateClosed("boot-1", GateKind.TAINT), ARMED, Withdrawn("boot-1"), Committed(ARMED, 7)]


async def as_read(client: ApiClient, name: str) -> Node:
    look = await read_node(client, name, boottime)
    assert look.node is not None
    return look.node


async def create(client: ApiClient, name: str) -> Node:
    node = parse_node(await client.create(NODES, sample(NODES, name)))
    assert isinstance(node, Node)
    return node


def not_written(ended: StoreEnded, written: Written) -> str:
    assert (ended.written, ended.record, ended.node) == (written, ARMED, None)
    return ended.sentence


async def test_the_node_is_read_with_what_its_agent_states(client: ApiClient, unique: str) -> None:
    created = await create(client, unique)
    before = boottime()
    look = await read_node(client, unique, boottime)
    assert before < look.began_at < look.ended_at < boottime()
    assert (look.node, look.missing, look.failure) == (created, False, "")


@pytest.mark.parametrize("backed_up", [False, True])
async def test_a_node_that_is_missing_has_a_backup_or_has_none(client: ApiClient, unique: str, backed_up: bool) -> None:
    await create_our_namespace(client)
    if backed_up:
        await client.create(CONFIG_MAPS, config_map(backup_name(unique)), namespace=NAMESPACE)
    look = await read_node(client, unique, boottime)
    assert (look.node, look.missing, look.backup, look.failure) == (None, True, backed_up, "")


async def test_a_missing_node_whose_backup_cannot_be_looked_for_is_no_finding(client_of: ClientOf, unique: str) -> None:
    look = await read_node(client_of(f"system:node:{unique}"), unique, boottime)
    assert (look.missing, look.backup) == (False, False)
    assert f"ConfigMap pp-hostd/backup-{unique}: forbidden" in look.failure


async def test_whoever_may_not_read_the_node_is_told_so(client_of: ClientOf, unique: str) -> None:
    look = await read_node(client_of("nobody"), unique, boottime)
    assert (look.node, look.missing) == (None, False)
    assert f"reading Node {unique}: forbidden" in look.failure


async def test_an_unreadable_node_is_a_failed_look(trouble: TroubleServer, dial: Dial) -> None:
    look = await read_node(dial(trouble.listen("good").url), "worker", boottime)
    assert look.failure == "reading Node worker: the Node is unreadable: uid is missing, not one word of ASCII"


async def test_a_node_s_own_credential_stores_one_record_after_the_other(
    client: ApiClient, client_of: ClientOf, unique: str
) -> None:
    node = await create(client, unique)
    for record in RECORDS:
        ended = await store(client_of(f"system:node:{unique}"), node, record, boottime)
        assert (ended.written, ended.record, ended.sentence) == (Written.DONE, record, "")
        assert ended.resource_version == node.resource_version
        assert ended.node == await as_read(client, unique)
        assert ended.node.agent == record
        node = ended.node


async def test_a_node_that_has_changed_is_a_conflict_and_stays_as_it_is(client: ApiClient, unique: str) -> None:
    node = await create(client, unique)
    changed = await client.patch(NODES, unique, annotate(cordoned="yes"))
    assert "conflict" in not_written(await store(client, node, ARMED, boottime), Written.CONFLICT)
    assert version_of(await client.get(NODES, unique)) == version_of(changed)


async def test_another_incarnation_of_the_node_is_a_conflict(client: ApiClient, unique: str) -> None:
    first = await create(client, unique)
    await client.delete(NODES, unique)
    second = await create(client, unique)
    mixed = replace(second, uid=first.uid)
    not_written(await store(client, mixed, ARMED, boottime), Written.CONFLICT)
    assert await as_read(client, unique) == second


async def test_a_node_that_is_gone_is_a_conflict(client: ApiClient, unique: str) -> None:
    node = await create(client, unique)
    await client.delete(NODES, unique)
    assert "not found" in not_written(await store(client, node, ARMED, boottime), Written.CONFLICT)


async def test_what_is_forbidden_is_not_done(client: ApiClient, client_of: ClientOf, unique: str) -> None:
    node = await create(client, unique)
    another = client_of(f"system:node:{unique}-x")
    assert "forbidden" in not_written(await store(another, node, ARMED, boottime), Written.NOT_DONE)


async def test_what_the_api_finds_invalid_is_not_done(trouble: TroubleServer, dial: Dial) -> None:
    client = dial(trouble.listen("422").url)
    assert "invalid" in not_written(await store(client, NODE, ARMED, boottime), Written.NOT_DONE)


@pytest.mark.parametrize("behaviour", ["silent", "no answer", "half a body", "not JSON", "500", "other name", "good"])
async def test_a_write_that_left_and_was_not_plainly_answered_is_unknown(
    trouble: TroubleServer, dial: Dial, behaviour: str
) -> None:
    client = dial(trouble.listen(behaviour).url, deadline_seconds=1.0)
    assert not_written(await store(client, NODE, ARMED, boottime), Written.UNKNOWN)


@pytest.mark.parametrize("behaviour", ["silent before TLS", "black hole", "429", "401"])
async def test_a_write_that_never_left_or_was_turned_away_is_not_done(
    trouble: TroubleServer, dial: Dial, behaviour: str
) -> None:
    client = dial(trouble.listen(behaviour).url, deadline_seconds=1.0)
    assert not_written(await store(client, NODE, ARMED, boottime), Written.NOT_DONE)


class Elsewhere(ApiClient):
    """Says that all went well, and shows a Node that is not what was to be written."""

    shown: Json

    async def patch(self, *_: object, **__: object) -> Json:
        return self.shown


@pytest.mark.parametrize(("uid", "record"), [("another", ARMED), ("uid", Withdrawn("boot-1"))])
async def test_a_reply_that_shows_something_else_leaves_the_outcome_unknown(
    kubeconfig: Kubeconfig, uid: str, record: AgentRecord
) -> None:
    client = Elsewhere(kubeconfig, deadline_seconds=1.0)
    annotations = {AGENT: record.render()}
    client.shown = {"metadata": {"name": "worker", "uid": uid, "resourceVersion": "2", "annotations": annotations}}
    assert "does not show" in not_written(await store(client, NODE, ARMED, boottime), Written.UNKNOWN)
