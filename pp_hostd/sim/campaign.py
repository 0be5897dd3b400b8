"""Many schedules, of one seed after the other, run by as many processes as are wanted, and added up."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial, reduce

from pp_hostd.frozen import frozen
from pp_hostd.model.settings import Settings
from pp_hostd.sim.days import random_schedule
from pp_hostd.sim.jobs import in_order
from pp_hostd.sim.run import Outcome, run
from pp_hostd.sim.schedule import Schedule

LEAST_NODES = 2
BATCH = 5
"""So many schedules go to a process at once."""
MOST_FOUND = 10
"""So many violations are kept by their seeds, from which they can be played again; the others are counted."""


@frozen
class Arena:
    """Where schedules are played: with which settings, with how many nodes at most, and whether with `every_flow`."""

    settings: Settings
    most_nodes: int
    every_flow: bool = True

    def schedule(self, seed: int, theme: str = "") -> Schedule:
        return random_schedule(seed, self.most_nodes, LEAST_NODES, theme, every_flow=self.every_flow)

    def play(self, seed: int) -> Outcome:
        return run(self.schedule(seed), self.settings)


@frozen
class Found:
    """A schedule that broke an invariant."""

    seed: int
    sentence: str


@frozen
class Sums:
    """Of every schedule so far, from the first seed to the one before the next."""

    first_seed: int
    next_seed: int
    events: int = 0
    resets: int = 0
    deletions: int = 0
    violations: int = 0
    longest_isolation_seconds: float = 0.0
    found: tuple[Found, ...] = ()

    @property
    def schedules(self) -> int:
        return self.next_seed - self.first_seed

    @classmethod
    def of(cls, outcome: Outcome) -> Sums:
        """Of this one alone."""
        seed = outcome.schedule.seed
        found = (Found(seed, outcome.violation),) if outcome.violation else ()
        longest = outcome.longest_isolation_seconds
        return cls(seed, seed + 1, outcome.events, outcome.resets, outcome.deletions, len(found), longest, found)

    def followed_by(self, others: Sums) -> Sums:
        """With those of the seeds that come next."""
        return Sums(
            self.first_seed,
            others.next_seed,
            self.events + others.events,
            self.resets + others.resets,
            self.deletions + others.deletions,
            self.violations + others.violations,
            max(self.longest_isolation_seconds, others.longest_isolation_seconds),
            (*self.found, *others.found)[:MOST_FOUND],
        )


def campaign(arena: Arena, begin: Sums, schedules: int, jobs: int) -> Iterator[Sums]:
    """The sums up to here, again and again, until so many schedules have been added to those of the beginning."""
    end = begin.next_seed + schedules
    batches = (range(first, min(first + BATCH, end)) for first in range(begin.next_seed, end, BATCH))
    sums = begin
    for batch in in_order(partial(_played, arena), batches, jobs):
        sums = sums.followed_by(batch)
        yield sums


def _played(arena: Arena, seeds: range) -> Sums:
    return reduce(Sums.followed_by, (Sums.of(arena.play(seed)) for seed in seeds))
