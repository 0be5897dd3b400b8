"""A remediation ends well, whoever interferes with it or takes it over, and at whichever step."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pp_hostd.leader.remedies.poison_pill.steps import AskPeers, Condemn
from pp_hostd.leader.steps.machines import Clear, Inspect
from pp_hostd.leader.steps.nodes import (
    Complete,
    DeleteNode,
    DropBackup,
    MarkFreeing,
    NoteRequest,
    Recreate,
    SetUnknown,
    StoreBackup,
    Uncordon,
)
from pp_hostd.leader.steps.workloads import FreeWorkloads
from pp_hostd.model.condemnation import NotRequested, last_id
from pp_hostd.model.control import Pause
from pp_hostd.model.keys import CONDEMNATION_ID
from pp_hostd.model.step import Written
from tests.leader.remediation import (
    BY_DELETION,
    BY_MARKER,
    CERTAIN,
    KINDS,
    WAIT_SECONDS,
    after_steps,
    requested,
    waiting,
)
from tests.leader.virtual_cluster import SINCE
from tests.leader.virtual_host import HOST, LABELS, TAINT, World


@KINDS
@pytest.mark.parametrize("steps", range(len(BY_DELETION)))
def test_when_it_is_lifted_in_the_middle_everything_is_undone(steps: int, machines: str) -> None:
    world = after_steps(steps, machines)
    if world.machine(world.machine_key) is not None:
        world.lift()
    world.run(world.given_back)
    deleted = steps > len(CERTAIN) + 1
    assert len(world.steps(DeleteNode)) == deleted
    assert (world.node(HOST).node.uid == "node-x") is not deleted
    assert world.restored()


@KINDS
@pytest.mark.parametrize("steps", range(len(BY_DELETION)))
def test_when_only_the_annotation_is_removed_all_is_taken_back_and_the_id_stays(steps: int, machines: str) -> None:
    world = after_steps(steps, machines)
    machine = world.machine(world.machine_key)
    newest = 0 if machine is None else last_id(machine.condemnation)
    if machine is not None:
        world.remove_annotation()
    world.run(lambda: world.given_back() and not world.labelled() and not world.driver.next_actions)
    assert len(world.steps(DeleteNode)) == (steps > len(CERTAIN) + 1)
    assert world.restored()
    assert world.condemnation() == NotRequested(newest) or machines == "node"


@pytest.mark.parametrize("strategy", ["resources", "out-of-service"])
@pytest.mark.parametrize("steps", range(len(BY_MARKER)))
def test_so_it_is_where_the_node_is_kept(steps: int, strategy: str) -> None:
    world = requested(strategy=strategy)
    world.run(lambda: len(world.done) == steps)
    world.remove_annotation()
    world.run(lambda: world.given_back() and not world.labelled() and not world.driver.next_actions)
    assert len(world.steps(MarkFreeing)) == (steps > len(CERTAIN))


def test_a_label_without_a_request_counts_for_no_valve_and_no_refusal() -> None:
    world = after_steps(len(CERTAIN))
    world.remove_annotation()
    world.api.patch("machines", world.machine_key, {"status": {"nodeRef": None}})
    world.driver.turn()
    assert all(not next_action.refused for next_action in world.driver.next_actions)


def test_where_a_person_had_cordoned_the_node_it_stays_cordoned_when_it_is_lifted() -> None:
    world = World()
    world.api.patch("nodes", HOST, {"spec": {"unschedulable": True}})
    world.request()
    world.run(lambda: bool(world.steps(AskPeers)))
    assert world.node(HOST).node.tainted
    world.lift()
    world.run(world.given_back)
    assert world.node(HOST).node.unschedulable


def test_a_backup_is_the_first_to_go_when_it_is_lifted() -> None:
    world = after_steps(len(CERTAIN) + 1)
    world.lift()
    world.run(world.given_back)
    assert [type(step) for step in world.steps()[-2:]] == [DropBackup, Uncordon]


def test_a_node_that_somebody_deletes_after_it_was_lifted_is_given_back_and_nothing_is_freed() -> None:
    world = after_steps(len(CERTAIN) + 1)
    world.lift()
    assert world.comes_back()
    world.delete_node(HOST)
    world.a_term("b")
    world.run(world.given_back)
    assert not world.steps(FreeWorkloads)
    assert world.restored()


@pytest.mark.parametrize("steps", range(5, len(BY_DELETION) - 4))
@KINDS
def test_a_condemnation_that_lapsed_for_a_moment_is_void_and_starts_again_under_a_new_id(
    steps: int, machines: str
) -> None:
    world = after_steps(steps, machines)
    lapsed_at = world.now
    world.lapse()
    world.run(world.given_back)
    ids = [step.id for step in world.steps(Condemn) if isinstance(step, Condemn)]
    assert ids == [1, 2]
    assert world.at(DeleteNode) == lapsed_at + WAIT_SECONDS


def test_a_lapse_that_the_watch_does_not_show_yet_is_found_by_the_last_look() -> None:
    world = after_steps(7)
    world.pass_until(world.now + 20.0)
    world.api.lags = True
    world.lapse()
    assert "the machine or its Node has changed" in world.held(60.0)
    world.api.lags = False
    world.api.catch_up()
    world.run(world.given_back)
    assert len(world.steps(Condemn)) == 2


def test_what_was_found_under_a_condemnation_that_lapsed_counts_for_nothing() -> None:
    world = after_steps(5)
    world.driver.turn()
    assert isinstance(world.under_way[0][1], Inspect)
    world.lapse()
    world.run(world.given_back)
    kinds = [type(step) for step in world.steps()]
    assert kinds[5:9] == [Inspect, Condemn, Inspect, AskPeers]


def test_a_promise_that_was_another_one_for_a_moment_makes_the_wait_start_anew() -> None:
    world = waiting()
    promise = world.a_promise()
    world.api.lags = True  # both changes are shown at once, and no plan sees the first
    world.state(replace(promise, self_timeout_seconds=60.0))
    world.state(promise)
    world.api.lags = False
    world.api.catch_up()
    changed_at = world.now
    world.run(world.given_back)
    assert len(world.steps(Condemn)) == 1
    assert world.at(DeleteNode) >= changed_at + WAIT_SECONDS


def test_a_taint_that_was_absent_for_a_moment_makes_the_wait_start_again() -> None:
    world = waiting()
    tainted = world.api.objects["nodes"][HOST]["spec"]["taints"]
    world.api.lags = True  # both changes are shown at once, and no plan sees the first
    world.api.patch("nodes", HOST, {"spec": {"taints": [TAINT]}})
    world.api.patch("nodes", HOST, {"spec": {"taints": tainted}})
    world.api.lags = False
    world.api.catch_up()
    changed_at = world.now
    world.run(world.given_back)
    assert world.at(DeleteNode) >= changed_at + WAIT_SECONDS


def test_a_watch_that_began_anew_may_have_missed_a_lapse() -> None:
    world = after_steps(7)
    world.pass_until(world.now + 20.0)
    world.api.relist()
    world.run(world.given_back)
    assert len(world.steps(Condemn)) == 2
    assert world.at(DeleteNode) == world.at(Condemn) + WAIT_SECONDS


@KINDS
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("steps", range(len(BY_DELETION)))
def test_another_leader_finishes_what_one_has_begun(steps: int, known: bool, machines: str) -> None:
    world = after_steps(steps, machines)
    if known:  # and has begun the next one
        world.driver.turn()
    world.a_term("b")
    world.run(world.given_back)
    assert len(world.steps(DeleteNode)) == 1
    assert len(world.steps(Recreate, Complete)) == 1
    assert world.restored()
    assert world.pods[HOST] == 0


def test_another_leader_condemns_under_its_own_id_and_waits_anew() -> None:
    world = after_steps(7)
    world.pass_until(world.now + 30.0)
    world.a_term("b")
    began_at = world.now
    world.run(world.given_back)
    assert [step.id for step in world.steps(Condemn) if isinstance(step, Condemn)] == [1, 2]
    assert world.at(DeleteNode) == began_at + WAIT_SECONDS


@pytest.mark.parametrize("strategy", ["resources", "out-of-service"])
@pytest.mark.parametrize("steps", range(len(BY_MARKER)))
def test_another_leader_finishes_also_where_the_node_is_kept(steps: int, strategy: str) -> None:
    world = requested(strategy=strategy)
    world.run(lambda: len(world.done) == steps)
    world.a_term("b")
    world.run(world.given_back)
    assert len(world.steps(MarkFreeing)) == 1
    assert world.pods[HOST] == 0


def test_the_backup_of_another_term_is_no_licence_and_an_early_one_takes_its_place() -> None:
    world = after_steps(len(CERTAIN) + 1)
    assert world.licensed()
    world.a_term("b")
    world.run(lambda: len(world.steps(Condemn)) == 2)
    assert [type(step) for step in world.steps()[-4:]] == [DropBackup, Inspect, StoreBackup, Condemn]
    assert not world.licensed()


@KINDS
@pytest.mark.parametrize("deleted_by_us", [True, False])
def test_with_the_backup_stored_any_deletion_is_finished(deleted_by_us: bool, machines: str) -> None:
    world = after_steps(len(CERTAIN) + 1, machines)
    if not deleted_by_us:
        world.delete_node(HOST)
    world.run(world.given_back)
    assert len(world.steps(DeleteNode)) == deleted_by_us
    assert world.pods[HOST] == 0
    assert world.restored()


@KINDS
@pytest.mark.parametrize("steps", [len(CERTAIN) + 2, len(CERTAIN) + 3])
def test_a_node_that_comes_back_by_itself_is_completed_and_never_overwritten(steps: int, machines: str) -> None:
    world = after_steps(steps, machines)
    world.kubelet_registers()
    world.api.patch("nodes", HOST, {"metadata": {"labels": {"zone": "south"}}})
    world.run(world.given_back)
    assert not world.steps(Recreate)
    node = world.api.get("nodes", HOST) or {}
    assert node["metadata"]["labels"] == {**LABELS, "zone": "south"}
    assert node["metadata"]["annotations"]["team"] == "blue"
    assert world.condemnation() == NotRequested(1)


@KINDS
def test_a_node_that_comes_back_without_conditions_is_unknown_before_the_condemnation_is_lifted(machines: str) -> None:
    world = after_steps(len(CERTAIN) + 3, machines)
    world.api.put("nodes", HOST, {"metadata": {"name": HOST, "labels": {"kubernetes.io/hostname": "x"}}})
    world.run(world.given_back)
    back = [Complete, SetUnknown, Clear, DropBackup]
    expected = [kind for kind in back if machines != "node" or kind is not Clear]
    assert [type(step) for step in world.steps()[-len(expected) :]] == expected
    assert world.ready() == "Unknown"


def test_a_kubelet_that_reports_before_the_node_is_called_unknown_keeps_its_word() -> None:
    world = after_steps(len(CERTAIN) + 3)
    world.api.put("nodes", HOST, {"metadata": {"name": HOST, "labels": {"kubernetes.io/hostname": "x"}}})
    world.run(lambda: bool(world.steps(Complete)))
    world.driver.turn()
    assert isinstance(world.under_way[0][1], SetUnknown)
    world.api.patch("nodes", HOST, {"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    world.run(world.given_back)
    assert not world.steps(SetUnknown)
    assert world.ready() == "True"


@KINDS
def test_a_node_that_is_made_anew_is_unknown_from_the_start(machines: str) -> None:
    world = after_steps(len(CERTAIN) + 4, machines)
    assert world.ready() == "Unknown"
    world.run(world.given_back)
    assert not world.steps(SetUnknown)


def test_a_node_that_comes_back_just_before_it_is_made_anew_is_completed() -> None:
    world = after_steps(len(CERTAIN) + 3)
    world.driver.turn()
    assert isinstance(world.under_way[0][1], Recreate)
    world.kubelet_registers()
    world.run(world.given_back)
    assert world.restored()
    assert len(world.steps(Complete)) == 1


def test_a_node_that_is_changed_at_the_last_moment_is_looked_at_again_and_the_change_is_not_lost() -> None:
    world = after_steps(len(CERTAIN) + 1)
    world.driver.turn()
    assert isinstance(world.under_way[0][1], DeleteNode)
    world.api.patch("nodes", HOST, {"metadata": {"labels": {"rack": "7"}}})
    world.run(world.given_back)
    assert (world.api.get("nodes", HOST) or {})["metadata"]["labels"] == {**LABELS, "rack": "7"}


def test_a_write_whose_answer_was_lost_is_not_done_twice() -> None:
    world = after_steps(len(CERTAIN) + 1)
    world.driver.turn()
    under_way = world.under_way[0]
    world.carry_out()
    world.take()
    world.under_way.append(under_way)
    world.fail(Written.UNKNOWN)
    world.run(world.given_back)
    assert len(world.steps(DeleteNode)) == 1
    assert world.restored()


def test_only_the_condemnation_that_was_carried_out_is_lifted() -> None:
    world = after_steps(len(CERTAIN) + 2)
    world.annotate_machine(world.machine_key, **{CONDEMNATION_ID: "5"})
    world.run(lambda: len(world.steps(Condemn)) == 2)
    assert not world.steps(Clear)
    assert getattr(world.steps(Condemn)[1], "id", 0) == 6


def test_a_request_that_comes_while_the_node_is_being_made_anew_is_another_matter() -> None:
    world = after_steps(len(CERTAIN) + 2)
    world.lift()
    world.request()
    world.run(lambda: bool(world.steps(NoteRequest)))
    assert not world.steps(Clear)


@pytest.mark.parametrize("written", [Written.UNKNOWN, Written.DONE])
def test_no_node_is_deleted_by_a_backup_that_this_leader_may_have_dropped(written: Written) -> None:
    """The watch of ConfigMaps is late. A gate opens where Node and backup are missing, so both must not be."""
    world = after_steps(len(CERTAIN) + 1)
    assert world.licensed()
    world.order({"paused": Pause("anna", SINCE, "a look first").render()})
    world.driver.turn()
    assert isinstance(world.under_way[0][1], DropBackup)
    world.api.lags = True
    if written is Written.DONE:
        world.carry_out()
    else:
        world.fail(written)
    world.api.lags = False
    before = len(world.steps(StoreBackup))
    world.order({})
    world.run(lambda: bool(world.steps(DeleteNode)))
    assert len(world.steps(StoreBackup)) > before, "it is stored again first"
    assert world.licensed()


@KINDS
def test_another_leader_stores_the_backup_again_before_it_frees_anything(machines: str) -> None:
    world = after_steps(len(BY_DELETION) - 4, machines)
    assert world.api.get("nodes", HOST) is None
    world.a_term("b")
    world.run(lambda: bool(world.steps(FreeWorkloads)))
    kinds = [type(step) for step in world.steps()]
    assert kinds[kinds.index(DeleteNode) :][:3] == [DeleteNode, StoreBackup, FreeWorkloads]
