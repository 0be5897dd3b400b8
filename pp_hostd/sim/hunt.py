"""The hunt for a schedule that shows what happens without a rule, and for the shortest one that does."""

from __future__ import annotations

from functools import partial
from typing import Callable

from pp_hostd.frozen import frozen, replace
from pp_hostd.model.settings import Settings
from pp_hostd.sim.campaign import Arena
from pp_hostd.sim.mutant import Mutant, taken_out
from pp_hostd.sim.run import CRASH, Outcome, run
from pp_hostd.sim.schedule import Schedule, Trouble

MOST_RUNS = 100
LEAST_NODES = 2
HALVINGS = 6
"""The search shortens a trouble to no time at all, or else halves its time at most so often."""

Run = Callable[[Schedule], Outcome]


def shrink(found: Outcome, run: Run, most_runs: int = MOST_RUNS) -> Outcome:
    """`found` is a violation; the outcome of the smallest schedule with one of that kind that so many runs show."""
    search, before = _Search(found, run, most_runs), None
    while search.schedule != before:
        before = search.schedule
        search.take_out()
        search.leave_hosts_out()
        for position in range(len(search.schedule.troubles)):
            search.soften(position)
    return search.best


class _Search:
    def __init__(self, found: Outcome, run: Run, most_runs: int) -> None:
        self.best = found
        self._run, self._runs_left = run, most_runs
        self._in_vain: set[Schedule] = set()

    @property
    def schedule(self) -> Schedule:
        return self.best.schedule

    def take_out(self) -> None:
        """Half of the troubles at once, then fewer, then each."""
        size = (len(self.schedule.troubles) + 1) // 2
        while size:
            begin = 0
            while begin < len(self.schedule.troubles):
                troubles = self.schedule.troubles
                if not self._does(replace(self.schedule, troubles=troubles[:begin] + troubles[begin + size :])):
                    begin += size
            size //= 2

    def leave_hosts_out(self) -> None:
        """Those with the highest numbers, if nothing happens to them."""
        named = {int(name.rpartition("-")[2]) for trouble in self.schedule.troubles for name in trouble.who}
        least = max(LEAST_NODES, *named, 0)
        for nodes in sorted({least, (least + self.schedule.nodes) // 2, self.schedule.nodes - 1}):
            if least <= nodes < self.schedule.nodes and self._does(replace(self.schedule, nodes=nodes)):
                return

    def soften(self, position: int) -> None:
        """It happens to fewer, and does not last as long. The first of those it happens to is the one it is about."""
        for name in self.schedule.troubles[position].who[1:]:
            trouble = self.schedule.troubles[position]
            self._with(position, replace(trouble, who=tuple(each for each in trouble.who if each != name)))
        for part in (0.0, *[0.5] * HALVINGS):
            trouble = self.schedule.troubles[position]
            does = trouble.seconds and self._with(position, replace(trouble, seconds=trouble.seconds * part))
            if part and not does:
                return

    def _with(self, position: int, milder: Trouble) -> bool:
        troubles = self.schedule.troubles
        return self._does(replace(self.schedule, troubles=(*troubles[:position], milder, *troubles[position + 1 :])))

    def _does(self, candidate: Schedule) -> bool:
        """Whether it shows the same, and is taken for it."""
        if not self._runs_left or candidate in self._in_vain:
            return False
        self._runs_left -= 1
        outcome = self._run(candidate)
        if outcome.kind != self.best.kind:
            self._in_vain.add(candidate)
            return False
        self.best = outcome
        return True


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
    """Runs the schedule without the rule. A crash does not count, nor a violation that happens with the rule too."""
    with taken_out(mutant):
        outcome = run(schedule, settings)
    if outcome.violation and (outcome.kind == CRASH or run(schedule, settings).violation):
        return replace(outcome, violation="", kind="")
    return outcome
