"""Orders of people as the agent takes them: each ends, and one for all hosts by two clocks."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

from freezegun import freeze_time

from pp_hostd.agent.rosters import Rosters
from pp_hostd.agent.senses import AgentSenses
from pp_hostd.agent.witness import Witness
from pp_hostd.model.control import Maintenance

NOON = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
ORDER = Maintenance("eve", NOON, "new switch", NOON + timedelta(hours=1))


class Clock:
    """CLOCK_BOOTTIME."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def senses_by(clock: Clock) -> AgentSenses:
    return AgentSenses("worker-1", Witness("token"), Rosters(), clock, lambda: datetime.now(timezone.utc), lambda: None)


@freeze_time(NOON)
def test_an_order_for_all_hosts_stands_until_it_is_taken_back() -> None:
    senses = senses_by(Clock())
    senses.order_cluster_maintenance(ORDER)
    assert senses.host_context().maintenance == ORDER
    senses.order_cluster_maintenance(None)
    assert senses.host_context().maintenance is None


@freeze_time(NOON)
def test_an_order_for_all_hosts_is_refused_once_it_is_over() -> None:
    senses = senses_by(Clock())
    senses.order_cluster_maintenance(replace(ORDER, when_wallclock=NOON - timedelta(hours=2), until_wallclock=NOON))
    assert senses.host_context().maintenance is None


def test_an_order_for_this_host_or_for_all_ends_when_the_wall_clock_says_so() -> None:
    for_this, for_all = (senses_by(Clock()) for _ in range(2))
    for_this.maintenance = ORDER
    for_all.order_cluster_maintenance(ORDER)
    with freeze_time(NOON + timedelta(seconds=3599)) as wall_clock:
        assert for_this.host_context().maintenance == for_all.host_context().maintenance == ORDER
        wall_clock.tick()
        assert (for_this.host_context().maintenance, for_all.host_context().maintenance) == (None, None)


@freeze_time(NOON)
def test_a_wall_clock_that_stands_still_does_not_prolong_an_order_for_all_hosts() -> None:
    clock = Clock()
    senses = senses_by(clock)
    senses.order_cluster_maintenance(ORDER)
    clock.now += 3599
    senses.order_cluster_maintenance(ORDER)  # read again, as every 30 s
    assert senses.host_context().maintenance == ORDER
    clock.now += 1
    assert senses.host_context().maintenance is None
