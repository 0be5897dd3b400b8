"""Bad days with the real rules, which hold, and with each of them taken out, which is noticed."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest

from pp_hostd.model.settings import Settings
from pp_hostd.sim.campaign import Arena
from pp_hostd.sim.days import Flows
from pp_hostd.sim.hunt import hunt
from pp_hostd.sim.mutant import Mutant
from pp_hostd.sim.mutants import MUTANTS

ARENA = Arena(Settings(), most_nodes=7)
FIXED, FRESH = 150, 50
ONCE_BROKEN = (
    310,
    1001068,
    1002471,
    1003543,
    1004106,
    1005041,
    2006672,
    3012357,
    3012745,
    3016107,
    10022347,
    10053684,
    10171240,
    20190114,
    20269305,
    20269372,
    2026128809,
    2026130001,
    3026115508,
    3026121604,
    4026112339,
    5026115415,
    6026115673,
    6026116799,
    7026134965,
    8026142237,
    9026112219,
    9026118324,
    11026130806,
)
"""Days of up to 15 nodes on which campaigns have found faults, of the daemons' or of the simulator's own."""
ONCE_BROKEN_IN_ANY_FLOW = (604889976, 604890527, 604891498)
"""The same, of campaigns that play power cycles and remediation objects, too."""
MOST_SCHEDULES = 250
FIRST_SEEDS = {
    "half of the nodes are enough for an outage": 17,
    "a host does not count itself": 28,
    "peers do not remember": 20,
    "a promise is written whatever the Node has become": 73,
    "a longer T is used before it is stored": 25,
    "a host asks by the newest roster, not by the one that it has promised": 21,
    "the gate opens before the promise is stored": 1021,
    "a condemnation that was put back counts as if it had never lapsed": 47,
    "nobody has to acknowledge": 23,
    "nobody is asked again after the wait": 25,
    "tokens are ignored": 32,
    "a third of the nodes are enough": 23,
    "what was stated before the condemnation is evidence": 39,
    "there is no look before the deletion": 20,
    'an "off" that was read before a pause frees workloads': 571,
    "the gate does not honour the marker": 37,
    "a leader goes on with the wait of another one, by the clock of that one's host": 35,
}
"""Where the hunt begins, if that saves time. Whenever chance plays otherwise it goes on from there."""


def violations(seeds: Iterable[int], arena: Arena = ARENA) -> list[tuple[int, str]]:
    outcomes = ((seed, arena.play(seed).violation) for seed in seeds)
    return [(seed, violation) for seed, violation in outcomes if violation]


def test_on_known_bad_days_every_invariant_holds() -> None:
    assert violations(range(FIXED)) == []


def test_on_days_that_went_wrong_once_every_invariant_holds() -> None:
    assert violations(ONCE_BROKEN, Arena(Settings(), most_nodes=15, flows=Flows.NEVER)) == []
    assert violations(ONCE_BROKEN_IN_ANY_FLOW, Arena(Settings(), most_nodes=15)) == []


def test_on_days_that_nobody_has_seen_every_invariant_holds() -> None:
    first = random.SystemRandom().randrange(10**9)
    assert violations(range(first, first + FRESH)) == [], "pp-hostd simulate --nodes 7 --replay SEED tells the story"


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: str(mutant.name))
def test_a_rule_that_is_taken_out_is_missed(mutant: Mutant) -> None:
    first = FIRST_SEEDS.get(mutant.name, 0)
    found = hunt(mutant, ARENA, range(first, first + MOST_SCHEDULES), most_runs=0)
    assert found.outcome is not None, f"{MOST_SCHEDULES} schedules, and none shows what rule {mutant.rule} is for"
