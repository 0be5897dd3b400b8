"""Never two that act at once, whatever clocks, delays, stops and people do; and never long without anybody."""

from __future__ import annotations

from functools import partial
from itertools import chain, repeat

from hypothesis import given
from hypothesis import strategies as st

from pp_hostd.model.lease import GIVEN_UP_SECONDS, PERIOD_PART, TERM_PART
from tests.harness.examples import tries
from tests.leader.rivals import Fate, Rival, World, disturb

DURATION_SECONDS = 10.0
HORIZON = 150.0
PPM = 1e-6

seconds = st.just(0.01) | st.floats(0.0, 1.5 * DURATION_SECONDS)
fates = st.lists(st.builds(Fate, seconds, seconds, seconds), max_size=60)
rates = st.lists(st.integers(-1000, 1000).map(lambda ppm: 1 + ppm * PPM), min_size=2, max_size=3)
offsets = st.lists(st.floats(0.0, 1e6), min_size=3, max_size=3)
moments = st.floats(0.0, HORIZON)
disturbances = st.lists(st.tuples(moments, st.sampled_from(["delete", "blank", "annotate"])), max_size=6)
resignations = st.lists(st.tuples(moments, st.integers(0, 1)), max_size=4)


def rivals_in(world: World, rates: list[float], offsets: list[float], durations: list[float]) -> list[Rival]:
    given = enumerate(zip(rates, offsets, durations))
    return [Rival(world, f"rival-{number}", *clock_and_duration) for number, clock_and_duration in given]


@tries(400)
@given(fates, rates, offsets, disturbances, resignations)
def test_two_never_act_at_the_same_true_time(
    fates: list[Fate],
    rates: list[float],
    offsets: list[float],
    disturbances: list[tuple[float, str]],
    resignations: list[tuple[float, int]],
) -> None:
    world = World(fates)
    rivals = rivals_in(world, rates, offsets, [DURATION_SECONDS] * len(rates))
    for moment, what in disturbances:
        world.at(moment, partial(disturb, world, what))
    for moment, number in resignations:
        world.at(moment, rivals[number].resign)
    world.run(HORIZON)
    assert not list(world.overlaps())


@tries(200)
@given(fates, rates, offsets, st.lists(st.floats(5.0, 40.0), min_size=3, max_size=3))
def test_two_with_different_settings_never_act_at_the_same_true_time(
    fates: list[Fate], rates: list[float], offsets: list[float], durations: list[float]
) -> None:
    world = World(fates)
    world.write("", GIVEN_UP_SECONDS)  # so that the one with the longest duration leads first
    rivals_in(world, rates, offsets, sorted(durations, reverse=True))
    world.run(HORIZON)
    assert not list(world.overlaps())


@tries(50)
@given(rates, offsets, st.floats(20.0, 100.0))
def test_with_an_api_that_answers_one_acts_all_the_time_also_after_one_was_stopped_for_good(
    rates: list[float], offsets: list[float], stopped: float
) -> None:
    world = World([])
    rivals_in(world, rates, offsets, [DURATION_SECONDS] * len(rates))
    for_good = Fate(stopped_seconds=HORIZON)
    world.at(stopped, lambda: setattr(world, "fates", chain([for_good], repeat(Fate()))))
    world.run(HORIZON)
    acted = sorted(world.acted, key=lambda each: each.begin)
    gaps = [later.begin - earlier.end for earlier, later in zip(acted, acted[1:])]
    assert acted[0].begin < 1.01 * DURATION_SECONDS and acted[-1].end > HORIZON
    # The last renewal may have been carried out without an answer, and then others see it up to a period later.
    assert max(gaps) < (1 - TERM_PART + 2 * PERIOD_PART) * DURATION_SECONDS + 0.1
