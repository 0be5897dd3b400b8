"""The hunt for a schedule that shows what happens without a rule."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from pp_hostd.frozen import frozen
from pp_hostd.model.settings import Settings
from pp_hostd.sim.campaign import Arena
from pp_hostd.sim.mutant import Mutant, taken_out
from pp_hostd.sim.run import CRASH, Outcome, run
from pp_hostd.sim.schedule import Schedule
from pp_hostd.sim.shrink import MOST_RUNS, shrink


@frozen
class Hunt:
    """`seed` and the shortest schedule's outcome are there if it was caught; `schedules` is how many it took."""

    mutant: Mutant
    schedules: int
    seed: int | None = None
    outcome: Outcome | None = None


def hunt(mutant: Mutant, arena: Arena, seeds: range, most_runs: int = MOST_RUNS) -> Hunt:
    """One seed after the other until it is caught, and then so many runs for a shorter schedule."""
    play = partial(_play_without, mutant, arena.settings)
    for number, seed in enumerate(seeds, 1):
        outcome = play(arena.schedule(seed, mutant.theme))
        if outcome.violation:
            return Hunt(mutant, number, seed, shrink(outcome, play, most_runs))
    return Hunt(mutant, len(seeds))


def _play_without(mutant: Mutant, settings: Settings, schedule: Schedule) -> Outcome:
    """What breaks with the rule too, or in a way that no rule is about, does not count."""
    with taken_out(mutant):
        outcome = run(schedule, settings)
    if outcome.violation and (outcome.kind == CRASH or run(schedule, settings).violation):
        return replace(outcome, violation="", kind="")
    return outcome
