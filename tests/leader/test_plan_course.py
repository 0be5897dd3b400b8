"""The whole course of a remediation: its steps in order, and how long it takes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pp_hostd.leader.remedies.poison_pill.steps import Condemn
from pp_hostd.leader.steps.machines import Clear
from pp_hostd.leader.steps.nodes import DeleteNode, MarkFreeing
from pp_hostd.leader.steps.workloads import Freeing, FreeWorkloads
from pp_hostd.model.condemnation import NotRequested
from pp_hostd.model.keys import OUT_OF_SERVICE
from pp_hostd.model.settings import Leader, Settings
from pp_hostd.model.step import Written
from tests.leader.remediation import BY_DELETION, BY_MARKER, GRACE_SECONDS, KINDS, WAIT_SECONDS, after_steps, requested
from tests.leader.virtual_host import HOST, World


@KINDS
def test_the_steps_come_in_the_order_of_the_rules(machines: str) -> None:
    world = requested(machines)
    world.run(world.given_back)
    expected = [kind for kind in BY_DELETION if machines != "node" or kind is not Clear]
    assert [type(step) for step in world.steps()] == expected
    assert world.restored()
    assert world.condemnation() == NotRequested(1)


@KINDS
def test_the_node_is_deleted_when_the_bound_has_passed_since_half_of_the_nodes_knew_and_not_before(
    machines: str,
) -> None:
    world = requested(machines)
    requested_at = world.now
    world.run(world.given_back)
    assert world.at(Condemn) == requested_at + GRACE_SECONDS
    assert world.at(DeleteNode) == requested_at + GRACE_SECONDS + WAIT_SECONDS


@KINDS
def test_steps_that_take_their_time_change_nothing_in_their_order(machines: str) -> None:
    world = requested(machines)
    world.latency_seconds = 0.7
    world.run(world.given_back)
    assert [type(step) for step in world.steps()] == [
        kind for kind in BY_DELETION if machines != "node" or kind is not Clear
    ]
    assert world.at(DeleteNode) - world.at(Condemn) == pytest.approx(WAIT_SECONDS + 6 * 0.7)


def test_nothing_is_done_while_the_wait_lasts() -> None:
    world = after_steps(7)
    world.driver.turn()
    for seconds in (0.1, WAIT_SECONDS / 2, WAIT_SECONDS - 0.1):
        world.pass_until(world.at(Condemn) + seconds)
        assert world.driver.turn() <= world.at(Condemn) + WAIT_SECONDS
        assert not world.under_way
        assert "at least half of 5 nodes know; it is dead 44 s after they did" in world.next_action()


def test_a_longer_safe_time_is_waited_for() -> None:
    world = World(settings=Settings(leader=Leader(safe_time_seconds=90.0)))
    world.request()
    world.run(world.given_back)
    assert world.at(DeleteNode) - world.at(Condemn) == 90.0


@pytest.mark.parametrize(("strategy", "freeing"), [("resources", Freeing.SPARING), ("out-of-service", Freeing.AWAIT)])
@KINDS
def test_where_the_node_is_kept_a_marker_comes_before_anything_is_freed(
    machines: str, strategy: str, freeing: Freeing
) -> None:
    world = requested(machines, strategy)
    world.run(world.given_back)
    looks = 3 if strategy == "out-of-service" else 1  # for somebody else takes one pod after the other
    expected = [kind for kind in BY_MARKER for _ in range(looks if kind is FreeWorkloads else 1)]
    assert [type(step) for step in world.steps()] == expected
    assert {step.freeing for step in world.steps(FreeWorkloads) if isinstance(step, FreeWorkloads)} == {freeing}
    assert world.node(HOST).node.uid == "node-x"
    assert not world.node(HOST).node.unschedulable
    assert world.pods[HOST] == 0


def test_out_of_service_stands_until_others_have_freed_everything() -> None:
    world = requested(strategy="out-of-service")
    world.run(lambda: bool(world.steps(MarkFreeing)))
    assert world.node(HOST).out_of_service
    world.run(world.given_back)
    assert world.done[-1][0] == world.at(MarkFreeing) + 2.0  # two pods, looked after once a second
    assert not any(taint["key"] == OUT_OF_SERVICE for taint in (world.api.get("nodes", HOST) or {})["spec"]["taints"])


def test_while_some_are_left_it_goes_on_freeing_once_a_second_and_says_so() -> None:
    world = requested(strategy="out-of-service")
    world.pods[HOST] = 5
    world.run(lambda: len(world.steps(FreeWorkloads)) == 3)
    world.driver.turn()
    assert "(3 are left)" in world.next_action()
    world.run(world.given_back)
    assert len(world.steps(FreeWorkloads)) == 6


def test_a_step_that_failed_is_tried_again_after_a_pause_and_the_reason_is_told() -> None:
    world = requested()
    world.run(lambda: bool(world.under_way))
    world.fail(Written.NOT_DONE, "the API is overloaded")
    failed_at = world.now
    world.driver.turn()
    assert "the API is overloaded" in world.next_action()
    assert not world.under_way
    world.run(lambda: bool(world.under_way))
    assert world.now == failed_at + 1.0


def test_a_plan_is_due_after_a_while_even_if_nothing_else_is() -> None:
    world = after_steps(7)
    assert world.driver.turn() == world.now + 10.0  # the wait ends much later


def test_a_node_that_was_freed_and_has_not_come_back_needs_no_wait() -> None:
    world = requested()
    world.run(world.given_back)
    world.condemn()
    condemned_at = world.now
    world.run(lambda: len(world.steps(DeleteNode)) == 2)
    assert world.now == condemned_at
    assert "the host has not come back" in world.next_action()


def test_the_settings_of_a_term_are_what_it_waits_by() -> None:
    world = after_steps(7)
    slower = replace(world.settings, leader=replace(world.settings.leader, margin_seconds=60.0))
    world.driver.settings = slower
    world.run(world.given_back)
    assert world.at(DeleteNode) == world.at(Condemn) + 22.0 + 20.0 + 60.0
