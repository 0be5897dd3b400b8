"""The budget over time: a fault that rolls through the cluster is stopped, whoever leads; what has begun goes on."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pp_hostd.leader.node_memory import Stage
from pp_hostd.leader.remedies.poison_pill.steps import Condemn
from pp_hostd.leader.remedies.power_cycle.steps import SwitchOff, SwitchOn
from pp_hostd.leader.steps.machines import Clear, Inspect
from pp_hostd.leader.steps.nodes import Cordon, DeleteNode
from pp_hostd.leader.steps.own_objects import SpendBudget
from pp_hostd.model.budget import Beginning, Budget, parse_budget
from pp_hostd.model.condemnation import Confirmation
from pp_hostd.model.keys import AGENT, BUDGET, CONFIRMED_DEAD, GRANT
from pp_hostd.model.settings import Leader, Settings
from pp_hostd.model.step import Written
from tests.leader.power.powered import SETTINGS, Bmc, PoweredWorld
from tests.leader.virtual_cluster import SINCE
from tests.leader.virtual_host import HOST, World

NOW = 1_800_000_000
PEERS = tuple(f"p{number}" for number in range(1, 10))
"""With the host itself, ten nodes."""


def a_cluster(resets_per_hour: str = "20%", peers: tuple[str, ...] = PEERS, **leader: Any) -> World:
    given = {"start_grace_seconds": 0.0, "max_unhealthy": "100%", "max_at_once": 1000, **leader}
    world = World(settings=Settings(leader=Leader(resets_per_hour=resets_per_hour, **given)), peers=peers)
    world.wallclock_ahead_seconds = NOW - int(world.now)
    return world


def request(world: World, *names: str) -> None:
    for name in names:
        if name != HOST:
            world.annotate_node(name, **{AGENT: world.a_promise(machine_uid=f"machine-{name}").render()})
        world.request(f"machines/{name}")


def begun(world: World) -> list[str]:
    return [step.node for step in world.steps(Cordon) if isinstance(step, Cordon)]


def stored(world: World) -> Budget:
    found = world.api.get("config maps", BUDGET)
    budget = Budget() if found is None else parse_budget(found["data"][BUDGET])
    assert isinstance(budget, Budget)
    return budget


def grant(world: World, more: int, when: str = "2027-01-15T08:00:00Z") -> None:
    """If no time is given: now."""
    world.order({GRANT: json.dumps({"v": 1, "who": "ann", "when": when, "more": more})})


@pytest.mark.parametrize(
    ("share", "nodes", "most"),
    [("20%", 10, 3), ("20%", 20, 4), ("50%", 10, 5), ("1%", 10, 3), ("0%", 10, 0), ("2", 10, 2), ("0", 10, 0)],
)
def test_no_more_begin_in_an_hour_than_the_settings_allow(share: str, nodes: int, most: int) -> None:
    peers = tuple(f"p{number}" for number in range(1, nodes))
    world = a_cluster(share, peers)
    for name in peers[: most + 2]:
        request(world, name)
        world.spend(60.0)
    assert begun(world) == list(peers[:most])
    late = world.next_action(peers[most])
    assert f"{most} remediations have begun in the last hour, and leader.resets_per_hour allows {most}" in late
    assert "pp-leader resume --more" in late


def test_each_beginning_is_written_before_anything_else_is_done_about_its_node() -> None:
    world = a_cluster()
    request(world, HOST)
    world.run(lambda: bool(world.steps(Condemn)))
    assert isinstance(world.steps()[0], SpendBudget)
    assert stored(world) == Budget((Beginning(HOST, NOW),))


def test_of_several_that_may_begin_each_is_written_for_itself() -> None:
    world = a_cluster()
    request(world, HOST, "p1", "p2", "p3")
    world.driver.turn()
    assert [type(remedy) for _, remedy, _ in world.under_way] == [SpendBudget]
    world.spend(60.0)
    assert len(begun(world)) == len(stored(world).beginnings) == 3


def test_the_next_begins_when_the_oldest_is_an_hour_old_and_people_are_told_when() -> None:
    world = a_cluster("1")
    request(world, "p1")
    world.spend(100.0)
    request(world, "p2")
    world.driver.turn()
    (next_action,) = (next_action for next_action in world.driver.next_actions if next_action.node == "p2")
    assert (next_action.stage, next_action.due_at, next_action.refused) == (Stage.OVER_BUDGET, world.now + 3500, False)
    world.spend(3499.0)
    assert begun(world) == ["p1"]
    world.spend(1.0)
    assert begun(world) == ["p1", "p2"]
    assert stored(world) == Budget((Beginning("p2", NOW + 3600),))


def test_a_new_leader_knows_the_count() -> None:
    world = a_cluster("2")
    request(world, "p1", "p2")
    world.run(lambda: len(world.steps(DeleteNode)) == 2)
    world.a_term("b")
    request(world, "p3")
    world.spend(600.0)
    assert begun(world) == ["p1", "p2"]
    assert "2 remediations have begun" in world.next_action("p3")


def test_a_leader_that_dies_after_the_write_has_begun() -> None:
    world = a_cluster("2")
    request(world, "p1")
    world.run(lambda: bool(world.steps(SpendBudget)))
    world.pass_until(world.now + 1.0)
    world.a_term("b")
    world.run(lambda: begun(world) == ["p1"])
    request(world, "p2")
    world.spend(60.0)
    assert begun(world) == ["p1"]
    assert len(stored(world).beginnings) == 2


def test_a_write_whose_answer_is_lost_counts_once_the_watch_shows_it() -> None:
    world = a_cluster("1")
    request(world, HOST)
    world.driver.turn()
    step = world.under_way[0][1]
    assert isinstance(step, SpendBudget)
    world.config_map(BUDGET, {BUDGET: step.budget.render()})
    world.fail(Written.UNKNOWN)
    world.run(lambda: begun(world) == [HOST])
    assert not world.steps(SpendBudget)


def test_what_has_begun_is_finished_by_any_leader() -> None:
    world = a_cluster("1")
    request(world, HOST)
    world.run(lambda: begun(world) == [HOST])
    world.settings = Settings(api=world.settings.api, leader=Leader(resets_per_hour="0"))
    world.a_term("b")
    world.run(world.given_back)


def test_a_second_remediation_of_the_same_node_counts_again() -> None:
    world = a_cluster("2")
    for _ in range(2):
        request(world, HOST)
        world.run(world.given_back)
        world.boot += 1
        assert world.comes_back()
    request(world, HOST)
    world.spend(60.0)
    assert begun(world) == [HOST] * 2
    assert "2 remediations have begun" in world.next_action()


def test_a_node_that_was_freed_and_is_not_back_costs_nothing() -> None:
    world = a_cluster("1")
    request(world, HOST)
    world.run(world.given_back)
    request(world, HOST)
    world.annotate_node(HOST, **{CONFIRMED_DEAD: Confirmation("ann", SINCE, None).render()})
    world.run(lambda: len(world.steps(DeleteNode)) == 2)
    assert len(stored(world).beginnings) == 1


# A person


def test_a_person_grants_more() -> None:
    world = a_cluster("1")
    request(world, "p1", "p2", "p3", "p4")
    world.spend(60.0)
    grant(world, 2)
    world.spend(60.0)
    assert begun(world) == ["p1", "p2", "p3"]
    assert "3 remediations have begun in the last hour, and leader.resets_per_hour allows 3" in world.next_action("p4")


@pytest.mark.parametrize("when", ["2027-01-15T07:00:00Z", "2027-01-15T09:05:00Z", "yesterday"])
def test_a_grant_of_another_hour_counts_for_nothing(when: str) -> None:
    world = a_cluster("0")
    grant(world, 2, when)
    request(world, "p1")
    world.spend(60.0)
    assert not begun(world)


def test_a_record_that_can_not_be_read_holds_everything_back_until_a_person_deletes_it() -> None:
    world = a_cluster()
    world.config_map(BUDGET, {BUDGET: "garbage"})
    request(world, HOST)
    world.spend(60.0)
    assert not world.steps()
    assert "ConfigMap pp-hostd/budget: the budget is unreadable" in world.next_action()
    assert world.driver.next_actions[0].refused
    world.config_map(BUDGET, None)
    world.run(world.given_back)


# Clocks


def test_a_clock_that_is_set_back_blocks_nobody_for_longer_than_an_hour() -> None:
    world = a_cluster("1")
    request(world, "p1")
    world.spend(60.0)
    assert world.wallclock_ahead_seconds is not None
    world.wallclock_ahead_seconds -= 86400
    request(world, "p2")
    world.spend(3539.0)
    assert begun(world) == ["p1"]
    world.spend(1.0)
    assert begun(world) == ["p1", "p2"]
    assert stored(world).beginnings[-1] == Beginning("p2", NOW + 3600 - 86400)


def test_nor_does_a_new_leader_whose_clock_is_behind() -> None:
    world = a_cluster("1")
    request(world, "p1")
    world.spend(60.0)
    world.wallclock_ahead_seconds = 0
    world.a_term("b")
    request(world, "p2")
    world.spend(3599.0)
    assert begun(world) == ["p1"]
    world.spend(1.0)
    assert begun(world) == ["p1", "p2"]


# Power


def a_powered_world(resets_per_hour: str) -> PoweredWorld:
    leader = Leader(resets_per_hour=resets_per_hour, max_unhealthy="100%", start_grace_seconds=0.0)
    world = PoweredWorld(Settings(power=SETTINGS.power, leader=leader))
    world.wallclock_ahead_seconds = NOW - int(world.now)
    return world


def test_each_power_cycle_is_counted() -> None:
    world = a_powered_world("2")
    world.a_power_cycle()
    world.a_power_cycle()
    world.request()
    world.spend(60.0)
    assert (world.boot, len(world.steps(SwitchOff))) == (3, 2)
    assert "2 remediations have begun" in world.next_action()


def test_what_is_requested_again_while_the_last_power_cycle_is_tidied_up_is_counted_for_itself() -> None:
    world = a_powered_world("5")
    world.request()
    world.run(lambda: len(world.steps(Clear)) == 2)
    world.request()
    world.run(lambda: len(world.steps(SwitchOff)) == 2)
    assert len(stored(world).beginnings) == 2


def test_another_power_cycle_of_a_host_that_has_not_come_back_costs_nothing() -> None:
    world = a_powered_world("1")
    world.api.patch("machines", world.machine_key, {"metadata": {"ownerReferences": None}})  # so that it is kept
    world.sick = True
    world.request()
    world.run(lambda: bool(world.steps(SwitchOn)))
    world.request()
    world.run(lambda: len(world.steps(SwitchOff)) == 2, seconds=4000)
    assert len(stored(world).beginnings) == 1


def test_a_host_that_can_not_be_switched_off_resets_itself_for_the_same_beginning() -> None:
    world = a_powered_world("1")
    world.with_settings(fallback=True, off_timeout_seconds=30.0)
    world.bmc = Bmc.UNREACHABLE
    world.request()
    world.run(lambda: bool(world.steps(Condemn)))
    assert len(stored(world).beginnings) == 1


def test_what_waits_for_the_budget_reads_and_writes_nothing() -> None:
    world = a_cluster("0")
    request(world, HOST)
    world.spend(600.0)
    assert not world.steps(Inspect, SpendBudget)
    assert "leader.resets_per_hour allows 0" in world.next_action()
