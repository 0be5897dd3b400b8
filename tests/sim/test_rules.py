"""Bad days with the real rules, which hold, and with each of them taken out, which is noticed."""

from __future__ import annotations

import random

import pytest

from pp_hostd.model.settings import Settings
from pp_hostd.sim.campaign import Arena
from pp_hostd.sim.hunt import hunt
from pp_hostd.sim.mutants import MUTANTS, Mutant

ARENA = Arena(Settings(), most_nodes=7)
FIXED, FRESH = 150, 50
MOST_SCHEDULES = 250


def violations(seeds: range) -> list[tuple[int, str]]:
    outcomes = ((seed, ARENA.play(seed).violation) for seed in seeds)
    return [(seed, violation) for seed, violation in outcomes if violation]


def test_on_known_bad_days_every_invariant_holds() -> None:
    assert violations(range(FIXED)) == []


def test_on_days_that_nobody_has_seen_every_invariant_holds() -> None:
    first = random.SystemRandom().randrange(10**9)
    assert violations(range(first, first + FRESH)) == [], "pp-hostd simulate --nodes 7 --replay SEED tells the story"


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: str(mutant.name))
def test_a_rule_that_is_taken_out_is_missed(mutant: Mutant) -> None:
    found = hunt(mutant, ARENA, range(MOST_SCHEDULES), most_runs=0)
    assert found.outcome is not None, f"{MOST_SCHEDULES} schedules, and none shows what rule {mutant.rule} is for"
