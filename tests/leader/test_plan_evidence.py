"""Evidence that ends the wait early, and evidence that is void (rules 6, 11); the host's promise, and its changes."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from pp_hostd.leader.remedies.poison_pill.memory import PillMemory
from pp_hostd.leader.remedies.poison_pill.steps import AskPeers, Condemn
from pp_hostd.leader.steps.machines import Inspect
from pp_hostd.leader.steps.nodes import DeleteNode
from pp_hostd.model.condemnation import Condemned, Confirmation
from pp_hostd.model.keys import AGENT, CONFIRMED_DEAD, FREED, PAUSED_NODE
from pp_hostd.model.promise import Armed, Committed, GateClosed, GateKind
from tests.leader.remediation import WAIT_SECONDS, waiting
from tests.leader.virtual_host import HOST, World

WHEN = datetime(2026, 3, 1, tzinfo=timezone.utc)


def confirm(world: World, boot: str | None) -> None:
    world.annotate_node(HOST, **{CONFIRMED_DEAD: Confirmation("ann", WHEN, boot).render()})


# The gate


def test_a_closed_gate_in_another_boot_ends_the_wait() -> None:
    world = waiting()
    world.reset()
    world.boots()
    booted_at = world.now
    world.run(world.given_back)
    assert world.at(DeleteNode) == booted_at


def test_a_closed_gate_found_at_the_first_look_needs_no_wait() -> None:
    world = World()
    world.reset()
    world.boots()
    world.request()
    world.run(world.given_back)
    assert world.at(DeleteNode) == world.at(Condemn)
    assert not world.steps(AskPeers)


def test_a_closed_gate_in_the_promised_boot_is_no_evidence() -> None:
    world = waiting()
    world.state(GateClosed(world.promise.boot, GateKind.HOLD))
    assert "something may have been started before" in world.held()


def test_a_gate_that_opens_before_the_deletion_takes_the_evidence_away() -> None:
    world = waiting()
    world.reset()
    world.boots()
    world.run(lambda: any(isinstance(remedy, DeleteNode) for _, remedy, _ in world.under_way))
    world.lift()
    assert world.comes_back()
    world.run(world.given_back)
    assert not world.steps(DeleteNode)


# The committed record


def test_a_committed_host_is_dead_after_its_watchdogs_timeout_and_the_margin() -> None:
    world = waiting()
    world.commit()
    committed_at = world.now
    world.run(world.given_back)
    assert world.at(DeleteNode) == committed_at + 10.0 + 2.0


def test_until_then_nothing_is_done() -> None:
    world = waiting()
    world.commit()
    world.run(lambda: len(world.steps(Inspect)) == 3)
    world.driver.turn()
    world.pass_until(world.now + 11.9)
    world.driver.turn()
    assert not world.under_way
    assert "it has decided to reset; its watchdog resets it at the latest" in world.next_action()


def test_after_that_time_it_is_looked_at_once_more() -> None:
    world = waiting()
    world.commit()
    world.run(world.given_back)
    assert world.at(Inspect) == world.at(DeleteNode)


def test_a_decision_that_was_made_for_another_condemnation_is_no_evidence() -> None:
    world = waiting()
    world.state(Committed(world.promise, 7))
    world.run(world.given_back)
    assert world.at(DeleteNode) == world.at(Condemn) + WAIT_SECONDS


def test_a_committed_record_that_is_gone_again_is_no_evidence() -> None:
    world = waiting()
    world.state(Committed(world.promise, 1))
    world.run(lambda: len(world.steps(Inspect)) == 2)
    world.state(world.promise)
    world.run(world.given_back)
    assert world.at(DeleteNode) == world.at(Condemn) + WAIT_SECONDS


def test_a_record_that_is_committed_once_more_counts_from_then_on() -> None:
    world = waiting()
    for record in (Committed(world.promise, 1), world.promise, Committed(world.promise, 1)):
        world.pass_until(world.now + 5.0)
        world.state(record)
        world.spend(1.0)
    committed_at = world.at(Inspect)
    world.reset()
    world.run(world.given_back)
    assert world.at(DeleteNode) == committed_at + 12.0


# A person's word


def test_a_persons_word_ends_the_wait_and_names_who_gave_it() -> None:
    world = waiting()
    confirm(world, world.promise.boot)
    world.reset()
    said_at = world.now
    world.run(lambda: bool(world.under_way) and isinstance(world.under_way[0][1], DeleteNode))
    assert world.now == said_at
    assert "ann has confirmed that it is dead" in world.next_action()


def test_a_persons_word_about_a_host_that_has_decided_to_reset_is_enough() -> None:
    world = waiting()
    world.latency_seconds = 0.2
    world.commit()
    confirm(world, world.promise.boot)
    world.reset()
    world.run(lambda: bool(world.steps(DeleteNode)), seconds=2.0)


def test_a_persons_word_is_enough_where_nothing_was_promised() -> None:
    world = World()
    world.state(None)
    world.reset()
    world.request()
    confirm(world, None)
    world.run(world.given_back)
    assert world.at(DeleteNode) == world.at(Condemn)


@pytest.mark.parametrize("boot", ["boot-0", None])
def test_a_persons_word_about_another_boot_is_void(boot: str | None) -> None:
    world = waiting()
    confirm(world, boot)
    world.run(world.given_back)
    assert world.at(DeleteNode) == world.at(Condemn) + WAIT_SECONDS


def test_a_persons_word_that_cant_be_read_is_none() -> None:
    world = waiting()
    world.annotate_node(HOST, **{CONFIRMED_DEAD: "it is dead"})
    world.run(world.given_back)
    assert world.at(DeleteNode) == world.at(Condemn) + WAIT_SECONDS


def test_a_word_about_a_host_that_nobody_asks_for_is_taken_off() -> None:
    world = World()
    confirm(world, world.promise.boot)
    world.run(world.given_back)
    assert world.node(HOST).confirmed is None


# Freed, and never back


def freed() -> World:
    world = World()
    world.request()
    world.run(world.given_back)
    world.condemn()
    return world


def test_a_freed_host_whose_kubelet_was_seen_since_is_not_taken_for_dead() -> None:
    world = freed()
    world.kubelet_renews()  # and is cut off after this
    told = world.held()
    assert "its kubelet was seen after it was freed" in told
    assert "pp-leader confirm-dead x" in told


def test_it_is_looked_for_again_and_goes_on_when_the_old_lease_is_gone() -> None:
    world = freed()
    world.kubelet_renews()
    world.run(lambda: bool(world.driver.next_actions and world.driver.next_actions[0].refused))
    del world.leases[HOST]
    seen_at = world.now
    world.run(lambda: len(world.steps(DeleteNode)) == 2)
    assert world.now == seen_at + 5.0


@pytest.mark.parametrize("mark", [None, "soon"])
def test_without_the_leaders_own_mark_a_silent_agent_proves_nothing(mark: str | None) -> None:
    world = freed()
    world.annotate_node(HOST, **{FREED: mark})
    assert "its agent has promised nothing" in world.held()


def test_a_host_that_is_back_and_promises_is_waited_for_again() -> None:
    world = freed()
    world.lift()
    world.run(world.given_back)
    assert world.comes_back()
    world.request()
    world.run(lambda: len(world.steps(DeleteNode)) == 2)
    assert world.at(DeleteNode) == world.at(Condemn) + WAIT_SECONDS


# The promise


def test_a_promise_that_changes_in_the_middle_is_acknowledged_and_waited_for_anew() -> None:
    world = waiting()
    world.promises(self_timeout_seconds=100.0)
    changed_at = world.now
    world.run(world.given_back)
    assert world.at(DeleteNode) == changed_at + 100.0 + 2 * 10.0 + 2.0


def test_a_promise_that_changes_just_before_the_deletion_stops_it() -> None:
    world = waiting()
    world.run(lambda: any(isinstance(remedy, DeleteNode) for _, remedy, _ in world.under_way))
    world.state(world.a_promise(self_timeout_seconds=100.0, boot="boot-7"))
    changed_at = world.now
    world.run(world.given_back)
    assert world.at(DeleteNode) == changed_at + 1.0 + 122.0  # a second's pause after the conflict


def test_a_change_that_the_watch_does_not_show_yet_is_found_by_the_last_look() -> None:
    world = waiting()
    world.api.lags = True
    world.state(world.a_promise(self_timeout_seconds=100.0))
    assert world.held(60.0)
    world.api.lags = False
    world.api.catch_up()
    world.run(world.given_back)


def test_a_withdrawn_promise_stops_everything() -> None:
    world = waiting()
    world.withdraws()
    assert "its agent has withdrawn its promise" in world.held()


def test_a_pause_that_the_watch_does_not_show_yet_is_found_by_the_last_look() -> None:
    world = waiting()
    world.run(lambda: world.now >= world.at(Condemn) + WAIT_SECONDS)
    world.api.lags = True
    world.annotate_node(HOST, **{PAUSED_NODE: ""})
    assert "the machine or its Node has changed" in world.held(60.0)


def test_the_first_look_sees_the_condemnation_that_this_term_wrote() -> None:
    world = waiting()
    inspection = world.driver.term.memories[HOST].inspection
    assert inspection is not None and inspection.machine is not None
    assert inspection.machine.condemnation == world.condemnation()
    assert isinstance(world.condemnation(), Condemned)
    assert isinstance(world.driver.term.memories[HOST].part(PillMemory).promise, Armed)
    assert world.node(HOST).node.agent == world.promise
    assert AGENT in (world.api.get("nodes", HOST) or {})["metadata"]["annotations"]
