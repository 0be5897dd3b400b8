"""The bad days that have a name, and what each must come to, with its rule and without it."""

from __future__ import annotations

import pytest

from pp_hostd.model.settings import Settings
from pp_hostd.sim.named_days import DAYS
from pp_hostd.sim.run import CRASH, Outcome

FEWER_NODES = {"control-plane-outage": 3, "racks-lost": 12, "switch-outage": 5}
"""Where that saves time."""


def played(name: str, *, without_rule: bool = False) -> Outcome:
    return DAYS[name].played(Settings(), 1, FEWER_NODES.get(name), without_rule=without_rule)


@pytest.mark.parametrize("name", DAYS)
def test_every_promise_holds(name: str) -> None:
    assert played(name).violation == ""


@pytest.mark.parametrize("name", DAYS)
def test_without_the_rule_that_a_day_is_about_a_promise_breaks(name: str) -> None:
    assert played(name, without_rule=True).kind not in ("", CRASH)


def test_nobody_is_reset_in_an_hour_without_control_plane() -> None:
    outcome = played("control-plane-outage")
    assert (outcome.resets, outcome.deletions) == (0, 0)
    assert outcome.story[-1][0] > 3600


def test_when_the_switch_is_dead_each_host_resets_itself_once_and_nothing_is_freed() -> None:
    outcome = played("switch-outage")
    assert (outcome.resets, outcome.deletions) == (5, 0)


def test_of_ten_nodes_that_are_requested_one_after_the_other_three_are_reset() -> None:
    outcome = played("rolling-fault")
    assert (outcome.resets, outcome.deletions) == (3, 3)


def test_hosts_of_lost_racks_reset_themselves_and_are_freed() -> None:
    outcome = played("racks-lost")
    assert outcome.resets >= 4
    assert outcome.deletions > 0


def test_hosts_that_are_requested_while_they_boot_are_freed_without_a_reset() -> None:
    outcome = played("rolling-reboot")
    assert (outcome.resets, outcome.deletions) == (0, 4)
