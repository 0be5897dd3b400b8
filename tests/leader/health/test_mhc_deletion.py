"""How unhealthy Machines are requested or deleted without a template, and which limits of the leader hold that back."""

from __future__ import annotations

from typing import Any

import pytest

from pp_hostd.leader.requests.machine_health_checks.conditions import Spelling
from pp_hostd.leader.requests.machine_health_checks.steps import RemoveMachine, RequestByAnnotation
from pp_hostd.leader.steps.nodes import DeleteNode, MarkFreeing
from pp_hostd.leader.steps.port import LeaderStep
from pp_hostd.model.condemnation import Draw, NotRequested, Requested
from pp_hostd.model.keys import CONDEMNATION_ID, EXTERNAL_REMEDIATION, PAUSED_NODE
from pp_hostd.model.settings import Leader
from tests.leader.health.mhc_objects import OPENSHIFT, PLACE, V1BETA1, V1BETA2
from tests.leader.health.mhc_world import MachinesWorld, kept, new_world
from tests.leader.virtual_host import HOST, PEERS

STRATEGY = {"machine.openshift.io/remediation-strategy": "external-baremetal"}
MASTER = {"machine.openshift.io/cluster-api-machine-role": "master"}


# OpenShift without a template: annotation, or deletion.


def openshift(leader: Leader | None = None, **metadata: Any) -> MachinesWorld:
    world = new_world(OPENSHIFT, leader=leader)
    world.check_machines(metadata=metadata)
    world.spend(5.0)
    return world


def test_the_external_strategy_requests_by_annotation_and_the_leader_carries_it_out() -> None:
    world = openshift(annotations=STRATEGY)
    world.silent()
    world.run(lambda: isinstance(world.condemnation(), Requested))
    world.driver.turn()
    assert world.reasons() == ["DetectedUnhealthy", "ExternalAnnotationAdded"]
    world.run(world.given_back)
    world.comes_back()
    world.reports(HOST)
    world.spend(600.0)
    assert len(world.steps(RequestByAnnotation)) == len(world.steps(DeleteNode)) == 1
    assert not world.steps(RemoveMachine)
    assert isinstance(world.condemnation(), NotRequested)


def test_what_is_annotated_is_not_annotated_again() -> None:
    world = openshift(annotations=STRATEGY)
    kept(world)
    world.annotate_machine(f"{PLACE}/{HOST}", **{EXTERNAL_REMEDIATION: ""})
    world.silent()
    world.spend(120.0)
    assert not world.steps(RequestByAnnotation, RemoveMachine)


def test_a_failed_annotation_is_told() -> None:
    world = openshift(annotations=STRATEGY)
    world.refused.add(("patch", "Machine"))
    world.silent()
    world.spend(5.0)
    assert "ExternalAnnotationFailed" in world.reasons()


@pytest.mark.parametrize("annotations", [{}, STRATEGY])
def test_a_failed_machine_is_deleted_even_under_the_external_strategy(annotations: dict[str, str]) -> None:
    world = openshift(annotations=annotations)
    world.patch_machine(HOST, {"status": {"phase": "Failed"}})
    world.spend(30.0)
    assert world.api.get("machines", f"{PLACE}/{HOST}") is None
    assert world.reasons() == ["DetectedUnhealthy", "MachineDeleted"]
    assert not world.steps(RequestByAnnotation)


def test_an_unhealthy_machine_with_an_owner_is_deleted() -> None:
    world = openshift()
    world.silent()
    world.spend(30.0)
    assert world.api.get("machines", f"{PLACE}/{HOST}") is None


def test_a_failed_deletion_is_told() -> None:
    world = openshift()
    world.refused.add(("delete", "Machine"))
    world.silent()
    world.spend(5.0)
    assert "MachineDeletionFailed" in world.reasons()


def test_a_machine_without_an_owner_is_not_deleted_and_that_is_told_once() -> None:
    world = openshift()
    world.patch_machine(HOST, {"metadata": {"ownerReferences": None}})
    world.silent()
    world.spend(300.0)
    assert world.reasons() == ["SkippedNoController"]
    assert not world.steps(RemoveMachine)


def test_a_machine_that_this_leader_remediates_is_never_deleted() -> None:
    world = openshift()
    kept(world)
    world.request()
    world.silent()
    world.spend(300.0)
    assert not world.steps(RemoveMachine)
    assert world.counts() == (5, 4, 4)
    world.annotate_node(HOST, **{PAUSED_NODE: None})
    world.run(lambda: world.api.get("nodes", HOST) is None)
    world.spend(0.0)
    assert not world.steps(RemoveMachine), "the leader deleted its Node, and recreates it"
    world.run(world.given_back)
    world.spend(590.0)
    assert not world.steps(RemoveMachine)
    world.spend(30.0)
    assert world.steps(RemoveMachine), "its host has not come back within nodeStartupTimeout"


@pytest.mark.parametrize("strategy", ["resources", "out-of-service"])
@pytest.mark.parametrize(("metadata", "acts"), [({"annotations": STRATEGY}, RequestByAnnotation), ({}, RemoveMachine)])
def test_a_new_leader_lets_the_host_of_a_kept_node_boot(
    strategy: str, metadata: dict[str, Any], acts: type[LeaderStep]
) -> None:
    """Nothing on such a Node tells that it was remediated, and its kubelet says nothing until its host has booted."""
    world = openshift(Leader(max_unhealthy="100%", strategy=strategy), **metadata)
    world.request()
    world.silent()
    world.run(lambda: bool(world.steps(MarkFreeing)))
    world.run(world.uncondemned)
    world.spend(300.0)
    assert not world.steps(acts)
    world.a_term("b")
    world.spend(590.0)
    assert not world.steps(acts), "a new leader counts from its own beginning"
    world.spend(30.0)
    assert len(world.steps(acts)) == 1


@pytest.mark.parametrize(("ago_seconds", "ready"), [(3 * 3600, False), (600, True)])
def test_a_new_leader_spares_nobody_else(ago_seconds: int, ready: bool) -> None:
    """Neither whose remediation is long ago, nor whose Node was Ready when the term began."""
    world = openshift(annotations=STRATEGY)
    drawn = Draw(world.wallclock_seconds() - ago_seconds, 0).id_after(0)
    world.annotate_machine(f"{PLACE}/{HOST}", **{CONDEMNATION_ID: str(drawn)})
    if not ready:
        world.silent(seconds_ago=290.0)
    world.a_term("b")
    world.spend(5.0)
    world.silent(seconds_ago=290.0)
    world.run(lambda: bool(world.steps(RequestByAnnotation)), seconds=60.0)


def control_plane(world: MachinesWorld, *names: str) -> None:
    for name in names:
        world.machine_body(name, pool="a", **MASTER)


def test_one_of_three_control_plane_machines_is_deleted() -> None:
    world = openshift()
    control_plane(world, HOST, "a", "b")
    world.silent(HOST)
    world.spend(30.0)
    assert len(world.steps(RemoveMachine)) == 1


@pytest.mark.parametrize("members", [(HOST, "a", "b"), (HOST, "a", "b", "c", "d")])
def test_never_a_second_control_plane_machine_at_a_time(members: tuple[str, ...]) -> None:
    world = openshift()
    control_plane(world, *members)
    world.silent(HOST, "a")
    world.spend(120.0)
    assert not world.steps(RemoveMachine)
    assert any("control-plane" in each.sentence for each in world.driver.next_actions if each.refused)


@pytest.mark.parametrize("members", [(HOST,), (HOST, "a")])
def test_never_against_the_quorum(members: tuple[str, ...]) -> None:
    world = openshift()
    control_plane(world, *members)
    world.silent(HOST)
    world.spend(120.0)
    assert not world.steps(RemoveMachine)
    assert any("no quorum" in each.sentence for each in world.driver.next_actions if each.refused)


# The leader's own limits.


@pytest.mark.parametrize("spelling", [OPENSHIFT, V1BETA1, V1BETA2])
@pytest.mark.parametrize(("most", "acts"), [("1", False), ("2", True)])
def test_too_many_unhealthy_machines_are_a_storm_to_the_leader(spelling: Spelling, most: str, acts: bool) -> None:
    world = new_world(spelling, leader=Leader(max_unhealthy=most))
    world.check_machines()
    world.silent(HOST, "a")
    world.spend(60.0)
    remediated = bool(world.steps(RemoveMachine)) if spelling is OPENSHIFT else bool(world.said_of("OwnerRemediated"))
    assert remediated is acts


@pytest.mark.parametrize(("most", "acts"), [("1", False), ("2", True)])
def test_nodes_that_do_not_respond_are_a_storm_before_their_machines_are_unhealthy(most: str, acts: bool) -> None:
    world = openshift(Leader(max_unhealthy=most))
    world.silent("a", seconds_ago=0.0)
    world.silent(HOST)
    world.spend(30.0)
    assert bool(world.steps(RemoveMachine)) is acts


def test_no_more_machines_are_deleted_at_once_than_the_leader_works_on() -> None:
    world = openshift(Leader(max_unhealthy="100%", max_at_once=2))
    for name in (HOST, *PEERS):
        world.patch_machine(name, {"metadata": {"finalizers": ["a/b"]}})
    world.silent(HOST, "a", "b", "c")
    world.driver.turn()
    assert len([step for _, step, _ in world.under_way if isinstance(step, RemoveMachine)]) == 2
    world.driver.turn()
    assert len([step for _, step, _ in world.under_way if isinstance(step, RemoveMachine)]) == 2


@pytest.mark.parametrize("spelling", [OPENSHIFT, V1BETA2])
def test_a_paused_leader_deletes_nothing_and_tells_no_owner(spelling: Spelling) -> None:
    world = new_world(spelling)
    world.check_machines()
    world.order({"paused": '{"v":1,"who":"ada","when":"2026-03-01T00:00:00Z","why":"upgrade"}'})
    world.silent()
    world.spend(120.0)
    assert not world.steps(RemoveMachine)
    assert spelling is OPENSHIFT or not world.said_of("OwnerRemediated")
    world.order({})
    world.spend(30.0)
    assert world.steps(RemoveMachine) or world.said_of("OwnerRemediated")


@pytest.mark.parametrize("spelling", [OPENSHIFT, V1BETA2])
def test_a_leader_that_has_just_begun_deletes_nothing(spelling: Spelling) -> None:
    world = MachinesWorld(spelling)
    world.check_machines()
    world.silent()
    world.spend(9.0)
    assert not world.steps(RemoveMachine)
    assert spelling is OPENSHIFT or not world.said_of("OwnerRemediated")
    world.spend(5.0)
    assert world.steps(RemoveMachine) or world.said_of("OwnerRemediated")


@pytest.mark.parametrize(("first", "second"), [("a", "x"), ("x", "a")])
def test_a_machine_that_is_not_deleted_takes_nobodys_place(first: str, second: str) -> None:
    """The first has no controller that owns it."""
    world = openshift(Leader(max_unhealthy="100%", max_at_once=1))
    world.patch_machine(first, {"metadata": {"ownerReferences": None}})
    world.silent("a", "x")
    world.run(lambda: bool(world.steps(RemoveMachine)))
    removed = {step.machine.key for step in world.steps(RemoveMachine) if isinstance(step, RemoveMachine)}
    assert removed == {f"{PLACE}/{second}"}


def test_a_control_plane_machine_that_is_needed_takes_nobodys_place() -> None:
    world = openshift(Leader(max_unhealthy="100%", max_at_once=1))
    world.machine_body("a", pool="a", **MASTER)
    world.silent("a", "x")
    world.run(lambda: bool(world.steps(RemoveMachine)))
    removed = {step.machine.key for step in world.steps(RemoveMachine) if isinstance(step, RemoveMachine)}
    assert removed == {f"{PLACE}/x"}


def test_a_host_that_may_take_as_long_as_it_likes_to_come_back_is_requested_once() -> None:
    """Its Node is kept, and nodeStartupTimeout is 0."""
    leader = Leader(max_unhealthy="100%", strategy="resources", resets_per_hour="100%")
    world = new_world(OPENSHIFT, leader=leader)
    world.check_machines(metadata={"annotations": STRATEGY}, startup=0)
    world.spend(5.0)
    world.silent()
    world.spend(1200.0)
    assert len(world.steps(RequestByAnnotation)) == 1
