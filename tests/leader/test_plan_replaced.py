"""A Node that somebody else deletes or replaces: nothing is freed by that, and it gets back what it had."""

from __future__ import annotations

import pytest

from pp_hostd.leader.steps.nodes import Complete, Cordon, DeleteNode, DropBackup, Recreate, StoreBackup
from pp_hostd.leader.steps.workloads import FreeWorkloads
from pp_hostd.model.condemnation import NotRequested
from pp_hostd.model.settings import Leader, Settings
from tests.leader.remediation import BY_MARKER, CERTAIN, KINDS, after_steps, requested
from tests.leader.virtual_host import HOST, LABELS, MACHINE_OF_NODE, TAINT, World

BACKED_UP = range(CERTAIN.index(StoreBackup) + 1, len(CERTAIN) + 1)
"""After so many steps there is a backup, and it is an early one."""


def replaced(world: World) -> None:
    """Somebody else deletes the Node, and its kubelet registers it again."""
    world.delete_node(HOST)
    world.kubelet_registers()


def has_all(world: World) -> bool:
    node = world.api.get("nodes", HOST) or {}
    labelled = node["metadata"].get("labels") == LABELS and node["metadata"]["annotations"].get("team") == "blue"
    return labelled and TAINT in node["spec"].get("taints", [])


def backups(world: World) -> list[str]:
    return [name for name in world.api.objects["config maps"] if name.startswith("backup-")]


@KINDS
@pytest.mark.parametrize("steps", BACKED_UP)
def test_a_node_that_is_replaced_during_the_wait_gets_back_what_it_had(steps: int, machines: str) -> None:
    world = after_steps(steps, machines)
    replaced(world)
    world.held()
    assert has_all(world)
    assert not world.steps(FreeWorkloads, Recreate)
    assert not isinstance(world.node(HOST).freed, int)


@KINDS
@pytest.mark.parametrize("strategy", ["resources", "out-of-service"])
@pytest.mark.parametrize("steps", range(3, len(BY_MARKER) - 4))
def test_so_does_one_that_would_have_been_kept(steps: int, strategy: str, machines: str) -> None:
    world = requested(machines, strategy)
    world.run(lambda: len(world.done) == steps)
    replaced(world)
    world.spend(300.0)
    assert has_all(world)
    assert not world.steps(FreeWorkloads, Recreate)


@pytest.mark.parametrize("steps", BACKED_UP)
def test_a_node_that_somebody_deletes_and_that_stays_away_is_neither_freed_nor_recreated(steps: int) -> None:
    world = after_steps(steps)
    world.delete_node(HOST)
    told = world.held()
    assert not world.steps(FreeWorkloads, Recreate)
    assert "somebody else has deleted its Node, and its host may live: nothing is freed" in told
    assert world.pods[HOST] == 2


@pytest.mark.parametrize("steps", range(3))
def test_without_a_backup_a_missing_node_is_reported(steps: int) -> None:
    world = after_steps(steps)
    world.delete_node(HOST)
    assert "there is no Node x and no backup of one" in world.held()
    assert not world.steps(FreeWorkloads, Recreate)


@KINDS
@pytest.mark.parametrize("steps", BACKED_UP)
def test_another_leader_does_not_take_the_deletion_for_a_leaders_own(steps: int, machines: str) -> None:
    world = after_steps(steps, machines)
    world.delete_node(HOST)
    world.a_term("b")
    world.held()
    assert not world.steps(FreeWorkloads, Recreate)
    world.kubelet_registers()
    world.held()
    assert has_all(world)
    assert not world.steps(FreeWorkloads)


def test_a_node_that_is_replaced_twice_gets_all_back_both_times() -> None:
    world = after_steps(len(CERTAIN) - 1)
    for _ in range(2):
        replaced(world)
        world.annotate_node(HOST, **{MACHINE_OF_NODE: world.machine_key})
        world.spend(20.0)
        assert has_all(world)
        world.promises()
        world.spend(20.0)
    assert len(world.steps(Complete)) == 2


def test_a_replaced_node_whose_agent_promises_again_is_remedied_from_the_start() -> None:
    world = after_steps(len(CERTAIN))
    replaced(world)
    world.run(lambda: bool(world.steps(DropBackup)))
    replaced_at = world.now
    world.state(world.promise)
    world.run(world.given_back)
    assert world.at(DeleteNode) >= replaced_at + 44.0
    assert world.pods[HOST] == 0


@pytest.mark.parametrize("steps", BACKED_UP)
def test_a_request_that_is_taken_back_while_the_node_is_missing_frees_nothing_and_keeps_the_backup(steps: int) -> None:
    world = after_steps(steps)
    world.delete_node(HOST)
    world.spend(5.0)
    world.lift()
    world.held()
    assert backups(world) and not world.steps(FreeWorkloads, Recreate)
    world.kubelet_registers()
    world.run(world.given_back)
    assert has_all(world)
    assert isinstance(world.condemnation(), NotRequested)


def test_the_early_backup_goes_when_the_request_is_taken_back_before_the_cordon() -> None:
    world = after_steps(CERTAIN.index(StoreBackup) + 1)
    world.lift()
    world.run(world.given_back)
    assert not world.steps(Cordon)


def test_the_early_backup_goes_when_the_node_is_held_back_before_the_cordon() -> None:
    world = after_steps(CERTAIN.index(StoreBackup) + 1)
    world.order({"paused": '{"v": 1, "who": "ann", "when": "2026-03-01T00:00:00Z", "why": "x"}'})
    world.held()
    assert not backups(world)
    world.order({})
    world.run(world.given_back)
    assert world.restored()


def test_the_early_backup_of_a_node_that_is_no_longer_enrolled_goes() -> None:
    world = after_steps(len(CERTAIN))
    world.delete_node(HOST)
    world.spend(5.0)
    assert backups(world)
    world.enrol(["a", "b", "c", "d"])
    world.spend(5.0)
    assert not backups(world)


def test_an_early_backup_takes_no_turn_from_others() -> None:
    world = World(settings=Settings(leader=Leader(max_at_once=1)))
    world.request()
    world.run(world.given_back)
    assert world.restored()


def test_a_node_that_is_deleted_by_somebody_just_before_the_licence_is_stored_is_given_back() -> None:
    """Then the deletion is as safe as our own: the host is certainly dead."""
    world = after_steps(len(CERTAIN))
    world.driver.turn()
    assert isinstance(world.under_way[0][1], StoreBackup)
    world.delete_node(HOST)
    world.run(world.given_back)
    assert world.restored()
    assert isinstance(world.node(HOST).freed, int)


def test_an_administrators_own_cordon_survives_the_deletion() -> None:
    world = World()
    world.api.patch("nodes", HOST, {"spec": {"unschedulable": True}})
    world.request()
    world.run(lambda: bool(world.steps(Recreate)))
    world.run(world.given_back)
    assert world.node(HOST).node.unschedulable


def test_our_own_cordon_does_not() -> None:
    world = requested()
    world.run(world.given_back)
    assert not world.node(HOST).node.unschedulable
