"""Random days: on some of them people and their tools attack, beside whatever else goes wrong."""

from __future__ import annotations

import random

import pytest

from pp_hostd.agent.shutdown import POWER_OFF_SECONDS
from pp_hostd.kube.resources import NODES
from pp_hostd.model.node import condemned_taint
from pp_hostd.model.settings import Settings
from pp_hostd.sim.api import as_it_is
from pp_hostd.sim.attack_themes import ATTACKS, attacked_cluster
from pp_hostd.sim.attacks import Attacks
from pp_hostd.sim.cluster import PLAIN, Cluster
from pp_hostd.sim.days import Flows, random_schedule
from pp_hostd.sim.invariants import Invariants
from pp_hostd.sim.leader_port import Freed
from pp_hostd.sim.play import hangs
from pp_hostd.sim.run import run
from pp_hostd.sim.schedule import END_AT, HEALED_AT, Day, Schedule, Trouble
from pp_hostd.sim.violation import Violation
from pp_hostd.sim.world import World

SCHEDULES = [random_schedule(seed, most_nodes=7) for seed in range(1000)]


def kinds_of(schedules: list[Schedule]) -> set[str]:
    return {trouble.what for schedule in schedules for trouble in schedule.troubles}


@pytest.mark.parametrize("attack", ATTACKS)
def test_every_attack_can_happen(attack: str) -> None:
    day = Day(random.Random(attack), [f"node-{number}" for number in range(1, 6)], "node-4", 15.0)
    troubles = tuple(ATTACKS[attack](day))
    cluster = attacked_cluster(day, [attack], PLAIN)
    outcome = run(Schedule(1, 5, troubles, 200.0, 1000.0, cluster), Settings())
    assert outcome.violation == ""
    happened = [what for _, who, what in outcome.story if who == "TROUBLE"]
    in_order = sorted(troubles, key=lambda trouble: trouble.at)
    assert [f"{trouble.what}: {', '.join(trouble.who)}" for trouble in in_order] == happened[:-1]


def test_random_days_have_every_attack_that_a_named_day_has() -> None:
    acts = set(Attacks(World(Settings(), 2, 1, lambda *_: None), 0.0).acts)
    assert acts | {"shutdown", "power stays off"} <= kinds_of(SCHEDULES)


def test_random_days_come_to_clusters_that_run_their_own_api_that_have_a_budget_and_whose_pairs_are_not_armed() -> None:
    clusters = [schedule.cluster for schedule in SCHEDULES]
    assert {len(cluster.api_on) for cluster in clusters} == {0, 1, 2, 3}
    assert {cluster.resets_per_hour for cluster in clusters} == {"1", "1000"}
    assert {cluster.arm_pairs for cluster in clusters} == {True, False}


def test_each_day_may_have_node_fences_and_a_health_check_and_else_some_days_have_them() -> None:
    every = [random_schedule(seed, most_nodes=7, flows=Flows.FENCED).cluster for seed in range(100)]
    assert all(cluster.health_checks and cluster.fenced for cluster in every)
    assert {bool(schedule.cluster.fenced) for schedule in SCHEDULES} == {True, False}
    never = [random_schedule(seed, most_nodes=7, flows=Flows.NEVER).cluster for seed in range(100)]
    assert not any(cluster.health_checks or cluster.fenced for cluster in never)


def test_nothing_that_people_do_lasts_longer_than_until_all_is_healed() -> None:
    lasting = kinds_of(SCHEDULES) & set(Attacks(World(Settings(), 2, 1, lambda *_: None), 0.0).acts)
    ends = [each.at + each.seconds for schedule in SCHEDULES for each in schedule.troubles if each.what in lasting]
    assert max(ends) <= HEALED_AT


def test_a_day_on_which_a_power_off_hangs_lasts_until_the_watchdog_has_ended_it() -> None:
    hanging = [schedule for schedule in SCHEDULES if any(map(hangs, schedule.troubles))]
    assert hanging
    assert min(schedule.end_at for schedule in hanging) == END_AT + 2 * POWER_OFF_SECONDS


def test_more_remediations_than_the_budget_allows_are_a_violation() -> None:
    world = World(Settings(), 5, 1, lambda *_: None, Cluster(resets_per_hour="3"))
    Invariants(world)
    for name in ("node-1", "node-2", "node-2", "node-3"):
        world.on_freed(name, Freed.MARKED)
    with pytest.raises(Violation, match="budget: node-4"):
        world.on_freed("node-4", Freed.MARKED)


def test_a_taint_that_nobody_takes_off_is_a_violation_but_not_just_after_a_condemnation() -> None:
    world = World(Settings(), 5, 1, lambda *_: None, PLAIN)
    invariants = Invariants(world)
    world.begin()
    world.time.run(60.0)
    world.stop_leaders()
    before = world.api.found(as_it_is, NODES, "", "node-5")["spec"].get("taints", [])
    world.api.patch(NODES, "", "node-5", {"spec": {"taints": [*before, condemned_taint(1)]}})
    with pytest.raises(Violation, match="nobody requests node-5, and its Node is still tainted"):
        invariants.at_the_end()
    world.people.request("node-5")
    world.people.absolve("node-5")
    invariants.at_the_end()
    world.time.run(80.0)
    with pytest.raises(Violation, match="nobody requests node-5, and its Node is still tainted"):
        invariants.at_the_end()


def test_a_peer_that_remembers_an_id_which_another_leader_replaced_is_no_second_condemnation() -> None:
    """A campaign has found this: in an outage two of six hosts are down, and one of the others remembers an id that no
    read can find lifted any more. So the host has no majority, which is no other condemnation."""
    troubles = (
        Trouble(13.566, "request", ("node-5",)),
        Trouble(14.933, "an answer is lost", ("node-5",), 0.0, 0.339),
        Trouble(15.891, "request", ("node-6",)),
        Trouble(19.048, "shutdown", ("node-1",)),
        Trouble(38.347, "cut off", ("node-2",), 3.948),
        Trouble(43.219, "power fails", ("node-2",)),
        Trouble(72.724, "shutdown", ("node-3",)),
    )
    cluster = Cluster(strategy="resources", tainted=("node-5",), api_on=("node-1", "node-2", "node-3"))
    assert run(Schedule(51693, 6, troubles, cluster=cluster), Settings()).violation == ""
