"""The figures of health checks that a leader serves to Prometheus."""

from __future__ import annotations

from pp_hostd.leader.leader_term import health_metrics
from pp_hostd.leader.requests.health_checks.check import HealthSeen
from pp_hostd.service.metric import render
from tests.leader.health.checked import CheckedWorld
from tests.leader.virtual_host import HOST, PEERS


def figures(world: CheckedWorld) -> str:
    return render(health_metrics(world.observed().part(HealthSeen)))


def test_each_check_counts_its_nodes_and_says_whether_it_is_blocked() -> None:
    world = CheckedWorld()
    world.check()
    world.spend(5.0)
    assert 'pp_leader_health_check_nodes{check="workers",state="healthy"} 5' in figures(world)
    assert 'pp_leader_health_check_blocked{check="workers"} 0' in figures(world)
    for name in (HOST, *PEERS[:2]):
        world.reports(name, "Unknown", seconds_ago=100)
    world.spend(5.0)
    assert 'pp_leader_health_check_nodes{check="workers",state="expected"} 5' in figures(world)
    assert 'pp_leader_health_check_nodes{check="workers",state="healthy"} 2' in figures(world)
    assert 'pp_leader_health_check_blocked{check="workers"} 1' in figures(world)
