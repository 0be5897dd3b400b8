"""The bad days that have a name, and what each must come to."""

from __future__ import annotations

import pytest

from pp_hostd.model.settings import Settings
from pp_hostd.sim.run import Outcome, run
from pp_hostd.sim.scenarios import SCENARIOS


def played(name: str, nodes: int | None = None) -> Outcome:
    return run(SCENARIOS[name].schedule(1, nodes), Settings())


@pytest.mark.parametrize("name", sorted(set(SCENARIOS) - {"control-plane-outage", "racks-lost"}))
def test_every_promise_holds(name: str) -> None:
    assert played(name).violation == ""


def test_nobody_is_reset_in_an_hour_without_control_plane() -> None:
    outcome = played("control-plane-outage", nodes=3)
    assert (outcome.violation, outcome.resets, outcome.deletions) == ("", 0, 0)
    assert outcome.story[-1][0] > 3600


def test_when_the_switch_is_dead_each_host_resets_itself_once_and_nothing_is_freed() -> None:
    outcome = played("switch-outage", nodes=5)
    assert (outcome.violation, outcome.resets, outcome.deletions) == ("", 5, 0)


def test_hosts_of_lost_racks_reset_themselves_and_are_freed() -> None:
    outcome = played("racks-lost", nodes=12)
    assert outcome.violation == ""
    assert outcome.resets >= 4
    assert outcome.deletions > 0


def test_nobody_is_reset_by_a_rolling_reboot() -> None:
    assert played("rolling-reboot").resets == 0
