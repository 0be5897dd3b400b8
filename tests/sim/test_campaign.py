"""Campaigns add up, whoever does the work."""

from __future__ import annotations

from functools import reduce

from pp_hostd.model.settings import Settings
from pp_hostd.sim.campaign import BATCH, MOST_FOUND, Arena, Found, Sums, campaign
from pp_hostd.sim.run import Outcome
from pp_hostd.sim.schedule import Schedule

ARENA = Arena(Settings(), most_nodes=3)


def test_the_sums_are_the_same_however_many_processes_share_the_work() -> None:
    schedules = 2 * BATCH + 3
    *_, alone = campaign(ARENA, Sums(50, 50), schedules, jobs=1)
    *_, shared = campaign(ARENA, Sums(50, 50), schedules, jobs=3)
    assert alone == shared
    assert (alone.schedules, alone.first_seed, alone.next_seed) == (schedules, 50, 50 + schedules)
    assert alone.events > 1000


def test_a_campaign_goes_on_where_another_one_ended() -> None:
    *_, half = campaign(ARENA, Sums(50, 50), 3, jobs=1)
    *_, whole = campaign(ARENA, half, 4, jobs=1)
    *_, at_once = campaign(ARENA, Sums(50, 50), 7, jobs=1)
    assert whole == at_once


def test_every_violation_is_counted_and_the_first_are_kept_by_their_seeds() -> None:
    outcomes = [Outcome(Schedule(seed, 2, ()), f"of {seed}" * (seed % 2), "", 10, 1, 2, 0.5, []) for seed in range(100)]
    sums = reduce(Sums.followed_by, map(Sums.of, outcomes))
    assert (sums.schedules, sums.events, sums.resets, sums.deletions, sums.violations) == (100, 1000, 100, 200, 50)
    assert sums.found == tuple(Found(seed, f"of {seed}") for seed in range(1, 2 * MOST_FOUND, 2))
