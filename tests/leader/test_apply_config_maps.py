"""The leader's own ConfigMaps: made, replaced and dropped only in the version that it has seen."""

from __future__ import annotations

import pytest

from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.resources import CONFIG_MAPS, NODES
from pp_hostd.leader.steps.nodes import DropBackup, StoreBackup
from pp_hostd.leader.steps.own_objects import SpendBudget, WriteRoster
from pp_hostd.leader.steps.port import (
    CONFIG_MAP,
)
from pp_hostd.model.backup import Backup, parse_stored_backup
from pp_hostd.model.budget import Beginning, Budget, parse_budget
from pp_hostd.model.keys import BUDGET, NAMESPACE, ROSTER, backup_name
from pp_hostd.model.roster import Member, Roster, parse_roster
from tests.agent.objects import Home, create_our_namespace
from tests.contract.objects import annotate, sample, version_of
from tests.leader.applying import Actuators, backup_of, read


@pytest.fixture
def actuators(client: ApiClient, namespace: str) -> Actuators:
    return Actuators(Home(client, "node", namespace))


async def a_backup(client: ApiClient, name: str, condemnation_id: int = 7) -> Backup:
    await create_our_namespace(client)
    node = await read(client, NODES, name) or await client.create(NODES, sample(NODES, name))
    return backup_of(node, condemnation_id)


async def stored(client: ApiClient, node: str) -> Json:
    return await client.get(CONFIG_MAPS, backup_name(node), namespace=NAMESPACE)


async def test_a_backup_is_stored_replaced_and_dropped(actuators: Actuators, client: ApiClient, unique: str) -> None:
    backup = await a_backup(client, unique)
    await actuators.done(StoreBackup(backup, None))
    first = await stored(client, unique)
    assert parse_stored_backup(first["data"]) == backup
    later = await a_backup(client, unique, 8)
    await actuators.done(StoreBackup(later, version_of(first)))
    second = await stored(client, unique)
    assert parse_stored_backup(second["data"]) == later
    await actuators.done(DropBackup(unique, backup.uid, version_of(second)))
    assert await read(client, CONFIG_MAPS, backup_name(unique), NAMESPACE) is None
    versions = (None, version_of(first), version_of(second))
    assert actuators.shown == [(CONFIG_MAP, backup_name(unique), version) for version in versions]


async def test_a_backup_that_is_there_is_not_overwritten_unseen(
    actuators: Actuators, client: ApiClient, unique: str
) -> None:
    backup = await a_backup(client, unique)
    await actuators.done(StoreBackup(backup, None))
    before = await stored(client, unique)
    actuators.shown.clear()
    assert "already exists" in await actuators.refused(StoreBackup(await a_backup(client, unique, 8), None))
    assert await stored(client, unique) == before


async def test_a_backup_that_has_changed_since_is_neither_replaced_nor_dropped(
    actuators: Actuators, client: ApiClient, unique: str
) -> None:
    backup = await a_backup(client, unique)
    await actuators.done(StoreBackup(backup, None))
    old = version_of(await stored(client, unique))
    changed = await client.patch(CONFIG_MAPS, backup_name(unique), annotate(note="new"), namespace=NAMESPACE)
    actuators.shown.clear()
    await actuators.refused(StoreBackup(await a_backup(client, unique, 8), old))
    await actuators.refused(DropBackup(unique, backup.uid, old))
    assert await stored(client, unique) == changed


async def test_a_backup_that_is_gone_is_neither_replaced_nor_dropped(
    actuators: Actuators, client: ApiClient, unique: str
) -> None:
    backup = await a_backup(client, unique)
    await actuators.refused(StoreBackup(backup, "1"))
    await actuators.refused(DropBackup(unique, backup.uid, "1"))
    assert await read(client, CONFIG_MAPS, backup_name(unique), NAMESPACE) is None


@pytest.mark.parametrize("node", ["gone", "recreated"])
async def test_a_backup_stays_while_its_node_is_missing_or_another_whatever_the_watch_has_shown(
    actuators: Actuators, client: ApiClient, unique: str, node: str
) -> None:
    backup = await a_backup(client, unique)
    await actuators.done(StoreBackup(backup, None))
    before = await stored(client, unique)
    actuators.shown.clear()
    await client.delete(NODES, unique)
    if node == "recreated":
        await client.create(NODES, sample(NODES, unique))
    await actuators.refused(DropBackup(unique, backup.uid, version_of(before)))
    assert await stored(client, unique) == before


async def test_a_beginning_is_counted_only_in_the_budget_that_was_seen(
    actuators: Actuators, client: ApiClient, unique: str
) -> None:
    await create_our_namespace(client)
    before = await read(client, CONFIG_MAPS, BUDGET, NAMESPACE)  # one that another test may have left
    version = None if before is None else version_of(before)
    budget = Budget().after(Beginning(unique, 1_800_000_000))
    await actuators.done(SpendBudget(budget, version))
    first = await client.get(CONFIG_MAPS, BUDGET, namespace=NAMESPACE)
    assert parse_budget(first["data"][BUDGET]) == budget
    later = budget.after(Beginning(unique, 1_800_000_001))
    await actuators.done(SpendBudget(later, version_of(first)))
    second = await client.get(CONFIG_MAPS, BUDGET, namespace=NAMESPACE)
    actuators.shown.clear()
    for stale in (None, version_of(first)):
        await actuators.refused(SpendBudget(budget, stale))
    assert await client.get(CONFIG_MAPS, BUDGET, namespace=NAMESPACE) == second


def roster(version: int, name: str) -> Roster:
    return Roster.of(version, 1, [Member(name, None, "192.0.2.1", "uid", 1, None)])


async def test_the_roster_is_written_in_place_of_the_one_that_was_seen(
    actuators: Actuators, client: ApiClient, unique: str
) -> None:
    await create_our_namespace(client)
    before = await read(client, CONFIG_MAPS, ROSTER, NAMESPACE)  # one that another test may have left
    version = None if before is None else version_of(before)
    assert await actuators.apply.write_roster(WriteRoster(roster(1, unique), version)) == ""
    first = await client.get(CONFIG_MAPS, ROSTER, namespace=NAMESPACE)
    assert await actuators.apply.write_roster(WriteRoster(roster(2, unique), version_of(first))) == ""
    second = await client.get(CONFIG_MAPS, ROSTER, namespace=NAMESPACE)
    assert parse_roster(second["data"][ROSTER]) == roster(2, unique)
    for stale in (None, version_of(first)):
        assert "conflict" in await actuators.apply.write_roster(WriteRoster(roster(3, unique), stale))
    assert await client.get(CONFIG_MAPS, ROSTER, namespace=NAMESPACE) == second
    assert actuators.news == []
