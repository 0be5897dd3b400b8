"""A power cycle as it should go, for hosts with an agent and without one."""

from __future__ import annotations

import pytest

from pp_hostd.leader.remedies.poison_pill.steps import Condemn
from pp_hostd.leader.remedies.power_cycle.steps import SwitchOff, SwitchOn
from pp_hostd.leader.steps.machines import Clear, Inspect
from pp_hostd.leader.steps.nodes import Complete, DeleteNode, DropBackup, Recreate, StoreBackup
from pp_hostd.leader.steps.own_objects import SpendBudget
from pp_hostd.leader.steps.port import LeaderStep
from pp_hostd.leader.steps.workloads import FreeWorkloads
from pp_hostd.model.condemnation import NotRequested
from pp_hostd.model.keys import FLOW
from tests.leader.power.powered import HOST, HOST_NAME, SETTINGS, PoweredWorld
from tests.leader.virtual_host import World

OFF: list[type[LeaderStep]] = [SpendBudget, SwitchOff, Inspect, StoreBackup, DeleteNode, FreeWorkloads, Clear]
ENROLLED = [*OFF, Recreate, SwitchOn, Clear, DropBackup]
STRANGER = [*OFF, SwitchOn, Complete, Clear, DropBackup]


@pytest.mark.parametrize("enrolled", [True, False])
def test_a_machine_that_is_asked_for_is_power_cycled_and_its_node_comes_back_with_all_it_had(enrolled: bool) -> None:
    world = PoweredWorld(enrolled=enrolled)
    world.a_power_cycle()
    assert [type(step) for step in world.steps()] == (ENROLLED if enrolled else STRANGER)
    assert world.restored()
    assert world.boot == 2


def test_the_request_asks_for_a_hard_power_off_and_says_for_whom() -> None:
    world = PoweredWorld()
    world.request()
    world.run(lambda: bool(world.steps(SwitchOff)))
    (step,) = world.steps(SwitchOff)
    assert isinstance(step, SwitchOff)
    value = step.request.render()
    assert '"mode":"hard"' in value and '"force":false' in value
    assert (step.request.machine, step.request.node, step.request.id) == (world.machine_key, HOST, 1)


def test_ids_grow_from_one_remediation_to_the_next() -> None:
    world = PoweredWorld()
    world.a_power_cycle()
    world.a_power_cycle()
    first, second = (step.request.id for step in world.steps(SwitchOff) if isinstance(step, SwitchOff))
    assert first < second
    lifted = world.condemnation()
    assert isinstance(lifted, NotRequested) and lifted.last_id > second
    assert world.restored()


def test_a_machine_without_a_node_is_power_cycled_too() -> None:
    world = PoweredWorld(enrolled=False)
    world.delete_node(HOST)
    world.api.patch("machines", world.machine_key, {"status": {"nodeRef": None}})
    world.request()
    world.run(lambda: world.uncondemned() and world.powered and not world.driver.next_actions)
    assert [type(step) for step in world.steps()] == [SpendBudget, SwitchOff, Clear, SwitchOn]
    assert world.boot == 2


# Which flow has a machine.


def test_where_the_flow_is_off_the_host_has_to_reset_itself() -> None:
    world = PoweredWorld()
    world.with_settings(cycle=False)
    world.request()
    world.run(lambda: bool(world.steps(DeleteNode)))
    assert world.steps(Condemn) and not world.steps(SwitchOff)


def test_a_machine_without_a_host_has_to_reset_itself() -> None:
    world = World(settings=SETTINGS)
    world.request()
    world.run(lambda: bool(world.steps(DeleteNode)))
    assert world.steps(Condemn) and not world.steps(SwitchOff)


def test_the_machines_annotation_overrides() -> None:
    world = PoweredWorld()
    world.annotate_machine(world.machine_key, **{FLOW: "poison-pill"})
    world.request()
    world.run(lambda: bool(world.steps(DeleteNode)))
    assert world.steps(Condemn) and not world.steps(SwitchOff)


@pytest.mark.parametrize("asked", ["power-cycle", "something"])
def test_an_annotation_that_asks_for_what_is_not_there_is_refused(asked: str) -> None:
    world = PoweredWorld()
    world.with_settings(cycle=False)
    world.annotate_machine(world.machine_key, **{FLOW: asked})
    world.request()
    told = world.held()
    assert "power.cycle" in told or "something" in told
    assert world.steps() == []


@pytest.mark.parametrize(
    ("provider", "annotation"),
    [
        ("baremetalhost:///metal/x", None),
        ("baremetalhost:///metal/x/host-x", "metal/other"),
        ("metal3://metal/x/machine-x", None),
        ("metal3://host-x", None),
        (None, "metal/x"),
        ("", "metal/x"),
    ],
)
def test_the_host_is_found_by_the_providers_id_first_and_then_by_the_annotation(
    provider: str | None, annotation: str | None
) -> None:
    world = PoweredWorld()
    world.stands_on(provider, annotation)
    world.a_power_cycle()
    assert [step.host for step in world.steps(SwitchOff) if isinstance(step, SwitchOff)] == [HOST_NAME]
