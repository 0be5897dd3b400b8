"""Where only a taint keeps workloads from starting (rule 6): the kubelet must have been silent, or be back."""

from __future__ import annotations

import pytest

from pp_hostd.leader.remedies.poison_pill.steps import Condemn
from pp_hostd.leader.steps.machines import Clear, Inspect
from pp_hostd.leader.steps.nodes import DeleteNode
from pp_hostd.model.promise import GateClosed, GateKind
from tests.leader.remediation import WAIT_SECONDS, waiting
from tests.leader.virtual_host import HOST, World


@pytest.mark.parametrize("gate", [GateKind.TAINT, GateKind.NONE])
def test_a_kubelet_that_nothing_holds_must_have_been_silent_for_two_renewal_periods(gate: GateKind) -> None:
    world = waiting(gate)
    world.run(lambda: world.now >= world.at(Condemn) + WAIT_SECONDS and bool(world.under_way))
    world.kubelet_renews()
    renewed_at = world.now
    world.run(world.given_back)
    assert renewed_at + 20.0 <= world.at(DeleteNode) <= renewed_at + 25.0


def test_a_kubelet_that_has_been_silent_for_the_whole_wait_costs_no_time() -> None:
    world = waiting(GateKind.TAINT)
    world.run(world.given_back)
    assert world.at(DeleteNode) == world.at(Condemn) + WAIT_SECONDS


def test_a_committed_host_without_a_hold_must_be_silent_too() -> None:
    world = waiting(GateKind.TAINT)
    world.kubelet_renews()
    world.commit()
    world.run(world.given_back)
    assert world.at(DeleteNode) >= world.at(Condemn) + 5.0 + 20.0


def test_a_kubelet_that_is_back_under_the_taint_has_rejected_its_pods_and_only_the_condemnation_is_lifted() -> None:
    world = waiting(GateKind.TAINT)
    world.reset()
    world.boots()
    live, alive_at = world.live, world.now

    def renewing() -> None:
        world.kubelet_renews()
        live()

    world.live = renewing  # type: ignore[method-assign]
    world.run(world.given_back)
    assert not world.steps(DeleteNode)
    assert len(world.steps(Clear)) == 1
    assert world.now < alive_at + 20.0


def test_a_taint_that_came_after_the_boot_kept_nothing_from_starting() -> None:
    world = World(gate=GateKind.TAINT)
    world.state(GateClosed("boot-2", GateKind.TAINT))  # its kubelet has started its pods long ago
    world.request()
    assert "something may have been started before" in world.held()


def test_a_gate_that_is_only_the_taint_wants_a_silent_kubelet_too() -> None:
    world = waiting(GateKind.TAINT)
    world.reset()
    world.boots()
    booted_at = world.now
    world.run(world.given_back)
    assert booted_at + 15.0 <= world.at(DeleteNode) <= booted_at + 25.0


def test_silence_is_what_a_look_has_found_and_not_the_time_that_nobody_looked() -> None:
    world = waiting(GateKind.TAINT)
    world.reset()
    world.boots()
    world.run(lambda: len(world.steps(Inspect)) == 2)
    world.driver.turn()
    world.kubelet_renews()
    world.pass_until(world.now + 30.0)
    world.run(lambda: bool(world.under_way))
    assert isinstance(world.under_way[0][1], Inspect)


@pytest.mark.parametrize("gate", GateKind)
def test_a_boot_that_the_kubelet_reported_and_the_agent_never_promised_is_not_waited_for(gate: GateKind) -> None:
    world = World(gate=gate)
    world.api.patch("nodes", HOST, {"status": {"nodeInfo": {"bootID": "boot-2"}}})
    world.request()
    assert "its kubelet has reported another boot than the one promised" in world.held()


@pytest.mark.parametrize("gate", GateKind)
@pytest.mark.parametrize("boot", ["boot-1", "boot-0"])
def test_a_boot_that_was_promised_or_reported_before_the_promise_is_waited_for(gate: GateKind, boot: str) -> None:
    world = World(gate=gate)
    world.state(world.a_promise(reported_boot="boot-0"))
    world.api.patch("nodes", HOST, {"status": {"nodeInfo": {"bootID": boot}}})
    world.request()
    world.run(world.given_back)


@pytest.mark.parametrize("gate", [GateKind.HOLD, GateKind.TAINT])
@pytest.mark.parametrize("boot", ["boot-2", "boot-3"])
def test_a_closed_gate_is_no_evidence_once_the_kubelet_has_reported_that_boot_or_a_later_one(
    gate: GateKind, boot: str
) -> None:
    world = waiting(gate)
    world.reset()
    world.state(GateClosed("boot-2", gate, reported_boot="boot-1"))
    world.api.patch("nodes", HOST, {"status": {"nodeInfo": {"bootID": boot}}})
    assert "something may have been started before" in world.held()


def test_a_closed_gate_of_a_boot_that_the_kubelet_had_reported_already_is_no_evidence() -> None:
    world = waiting(GateKind.HOLD)
    world.reset()
    world.api.patch("nodes", HOST, {"status": {"nodeInfo": {"bootID": "boot-2"}}})
    world.state(GateClosed("boot-2", GateKind.HOLD, reported_boot="boot-2"))
    assert "something may have been started before" in world.held()


def test_a_closed_gate_is_evidence_while_the_kubelet_has_reported_nothing_since() -> None:
    world = waiting(GateKind.HOLD)
    world.reset()
    world.api.patch("nodes", HOST, {"status": {"nodeInfo": {"bootID": "boot-1"}}})
    world.state(GateClosed("boot-2", GateKind.HOLD, reported_boot="boot-1"))
    world.run(world.given_back)


def test_a_boot_that_began_before_the_taint_is_no_evidence_when_its_agent_comes_late() -> None:
    world = World(gate=GateKind.TAINT)
    world.api.patch("nodes", HOST, {"status": {"nodeInfo": {"bootID": "boot-2"}}})  # and has started its pods
    world.request()
    world.held()
    world.state(GateClosed("boot-2", GateKind.TAINT))
    assert "something may have been started before" in world.held()
