"""Which "off" counts: only a reading that the operator made after our request, and after all that left it in doubt."""

from __future__ import annotations

from typing import Any, Callable

import pytest

from pp_hostd.leader.remedies.power_cycle.steps import SwitchOff, SwitchOn
from pp_hostd.leader.steps.machines import Inspect
from pp_hostd.leader.steps.nodes import DeleteNode, StoreBackup
from pp_hostd.leader.steps.workloads import FreeWorkloads
from pp_hostd.model.keys import DETACHED_HOST, PAUSED_HOST
from tests.leader.power.powered import HOST_NAME, Bmc, PoweredWorld

ERROR = {"operationalStatus": "error", "errorType": "power management error", "errorMessage": "no answer"}
NO_ERROR = {"operationalStatus": "OK", "errorType": None, "errorMessage": None}
Doubt = tuple[dict[str, Any], dict[str, Any]]
DOUBTS: dict[str, Doubt] = {
    "paused": ({"metadata": {"annotations": {PAUSED_HOST: ""}}}, {"metadata": {"annotations": {PAUSED_HOST: None}}}),
    "detached": (
        {"metadata": {"annotations": {DETACHED_HOST: ""}}},
        {"metadata": {"annotations": {DETACHED_HOST: None}}},
    ),
    "error": ({"status": ERROR}, {"status": NO_ERROR}),
    "never read off": ({"spec": {"disablePowerOff": True}}, {"spec": {"disablePowerOff": None}}),
}


def off_and_not_freed() -> PoweredWorld:
    """The operator has told that the host is off, and the leader has not looked at it yet."""
    world = PoweredWorld(enrolled=False)
    world.request()
    world.run(lambda: bool(world.steps(SwitchOff)))
    world.run(lambda: world.host.powered_on is False)
    world.bmc = Bmc.UNATTENDED
    return world


def somebody_switches_it_on(world: PoweredWorld) -> None:
    """By hand, while no operator looks: `status.poweredOn` stays false."""
    world.switch(True)
    world.running = True


def ends_well(world: PoweredWorld) -> None:
    world.bmc = Bmc.WORKS
    world.run(lambda: world.uncondemned() and world.is_well() and not world.driver.next_actions, seconds=2000)
    assert len(world.steps(DeleteNode)) == 1


@pytest.mark.parametrize("doubt", DOUBTS)
def test_a_reading_from_before_a_pause_is_not_believed_when_that_ends(doubt: str) -> None:
    begin, end = DOUBTS[doubt]
    world = off_and_not_freed()
    world.change_host(**begin)
    somebody_switches_it_on(world)
    world.change_host(**end)
    world.spend(60)
    assert not world.steps(DeleteNode)
    ends_well(world)


@pytest.mark.parametrize("doubt", DOUBTS)
def test_during_a_pause_the_request_is_taken_back_and_the_host_switched_off_again_once_it_is_on(doubt: str) -> None:
    begin, end = DOUBTS[doubt]
    world = off_and_not_freed()
    world.change_host(**begin)
    world.run(lambda: bool(world.steps(SwitchOn)))
    assert world.host.request is None
    world.change_host(**end)
    ends_well(world)
    assert len(world.steps(SwitchOff)) == 2


@pytest.mark.parametrize("doubt", ["paused", "detached"])
def test_a_pause_that_ends_before_the_host_turns_off_costs_no_second_power_cycle(doubt: str) -> None:
    begin, end = DOUBTS[doubt]
    world = PoweredWorld(enrolled=False)
    world.bmc = Bmc.UNATTENDED
    world.request()
    world.run(lambda: bool(world.steps(SwitchOff)))
    world.change_host(**begin)
    world.spend(30)
    world.change_host(**end)
    ends_well(world)
    assert world.boot == 2


def a_list(world: PoweredWorld) -> None:
    world.api.relist()


def another_leader(world: PoweredWorld) -> None:
    world.a_term("b")


@pytest.mark.parametrize("after", [a_list, another_leader])
@pytest.mark.parametrize("doubt", DOUBTS)
def test_a_pause_that_nobody_saw_is_not_overlooked(doubt: str, after: Callable[[PoweredWorld], None]) -> None:
    begin, end = DOUBTS[doubt]
    world = off_and_not_freed()
    world.api.lags = True
    world.change_host(**begin)
    somebody_switches_it_on(world)
    world.change_host(**end)
    world.api.lags = False
    after(world)
    world.spend(60)
    assert not world.steps(DeleteNode)
    ends_well(world)


def test_a_list_that_shows_the_same_version_again_leaves_no_doubt() -> None:
    world = off_and_not_freed()
    world.api.relist()
    ends_well(world)
    assert world.boot == 2


def test_a_leader_that_did_not_see_it_turn_off_switches_it_off_once_more() -> None:
    world = off_and_not_freed()
    world.a_term("b")
    ends_well(world)
    assert world.boot == 3


@pytest.mark.parametrize("doubt", DOUBTS)
def test_a_leader_that_ends_between_seeing_a_pause_and_taking_its_request_back_is_followed_by_one_that_does(
    doubt: str,
) -> None:
    begin, end = DOUBTS[doubt]
    world = off_and_not_freed()
    world.change_host(**begin)
    world.run(lambda: any(isinstance(step, SwitchOn) for _, step, _ in world.under_way))
    somebody_switches_it_on(world)
    world.change_host(**end)
    world.a_term("b")
    world.spend(60)
    assert not world.steps(DeleteNode)
    ends_well(world)


@pytest.mark.parametrize(("count", "kind"), [(1, StoreBackup), (1, DeleteNode)])
def test_the_next_leader_believes_what_stands_in_the_backup(count: int, kind: type[StoreBackup]) -> None:
    world = off_and_not_freed()
    world.run(lambda: len(world.steps(kind)) == count)
    world.a_term("b")
    ends_well(world)
    assert world.boot == 2
    assert world.steps(FreeWorkloads)


@pytest.mark.parametrize("doubt", DOUBTS)
def test_the_next_leader_does_not_believe_the_backup_of_a_host_that_has_changed_since(doubt: str) -> None:
    begin, end = DOUBTS[doubt]
    world = off_and_not_freed()
    world.run(lambda: bool(world.steps(StoreBackup)))
    world.change_host(**begin)
    somebody_switches_it_on(world)
    world.change_host(**end)
    world.a_term("b")
    world.spend(60)
    assert not world.steps(DeleteNode)
    ends_well(world)


def test_a_pause_between_the_look_and_the_deletion_is_seen_by_the_watch() -> None:
    world = off_and_not_freed()
    world.run(lambda: bool(world.steps(Inspect)))
    world.change_host(**DOUBTS["paused"][0])
    somebody_switches_it_on(world)
    world.spend(60)
    assert not world.steps(DeleteNode)
    assert PAUSED_HOST in str(world.api.get("hosts", HOST_NAME))
