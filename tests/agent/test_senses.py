"""Orders of people as the agent takes them: each ends, and one for all hosts by two clocks."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

from pp_hostd.agent.rosters import Rosters
from pp_hostd.agent.senses import AgentSenses
from pp_hostd.agent.witness import Witness
from pp_hostd.model.control import Maintenance

NOW = datetime.now(timezone.utc)
ORDER = Maintenance("eve", NOW, "new switch", NOW + timedelta(hours=1))


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


async def test_an_order_for_all_hosts_stands_until_it_is_taken_back() -> None:
    senses = AgentSenses("worker-1", Witness("token"), Rosters(), Clock())
    senses.order_cluster_maintenance(ORDER)
    assert senses.ground().maintenance == ORDER
    senses.order_cluster_maintenance(None)
    assert senses.ground().maintenance is None


async def test_an_order_for_all_hosts_is_refused_once_it_is_over() -> None:
    senses = AgentSenses("worker-1", Witness("token"), Rosters(), Clock())
    senses.order_cluster_maintenance(replace(ORDER, when_wallclock=NOW - timedelta(hours=2), until_wallclock=NOW))
    assert senses.ground().maintenance is None


async def test_a_wall_clock_that_stands_still_does_not_prolong_an_order_for_all_hosts() -> None:
    clock = Clock()
    senses = AgentSenses("worker-1", Witness("token"), Rosters(), clock)
    senses.order_cluster_maintenance(ORDER)
    clock.now += 3599
    senses.order_cluster_maintenance(ORDER)  # read again, as every 30 s
    assert senses.ground().maintenance == ORDER
    clock.now += 1
    assert senses.ground().maintenance is None
