"""`pp-hostd simulate`: many schedules, their sums, and of the first violation the shortest story."""

from __future__ import annotations

from argparse import Namespace
from functools import partial
from typing import Any

from pp_hostd.errors import UserError
from pp_hostd.service.output import labelled, say, say_json
from pp_hostd.sim import campaign as campaigns
from pp_hostd.sim.campaign import LEAST_NODES, Arena, Sums
from pp_hostd.sim.commands import given, story
from pp_hostd.sim.commands.progress import Every, Progress
from pp_hostd.sim.resume import resumed, save
from pp_hostd.sim.run import Outcome, run
from pp_hostd.sim.shrink import shrink
from pp_hostd.simulate_command import SCHEDULES
from pp_hostd.timing import dead_seconds

SAVE_SECONDS = 10.0


def campaign(arguments: Namespace) -> int:
    report, ended = _Report(arguments), None
    try:
        report.run()
    except (KeyboardInterrupt, UserError) as early:
        ended = early
    report.tell(interrupted=ended is not None)
    if ended is not None:
        raise ended
    return 1 if report.sums.violations else 0


class _Report:
    """What is known so far, so that it can be told whenever the run ends."""

    def __init__(self, arguments: Namespace) -> None:
        self._arguments = arguments
        self._arena = given.arena(arguments)
        self._schedules = arguments.schedules or SCHEDULES
        self._jobs = given.jobs(arguments)
        self.sums = self._before = _begin(arguments, self._arena)
        self._shortest: Outcome | None = None
        self._progress = Progress()

    def run(self) -> None:
        if not self._arguments.json:
            say(f"{self._schedules} schedules from seed {self.sums.next_seed} on, in {_processes(self._jobs)}")
        try:
            self._play()
        finally:
            self._save()
        if self.sums.found:
            seed = self.sums.found[0].seed
            self._progress.show(f"looking for the shortest schedule that shows what seed {seed} does", at_once=True)
            self._shortest = shrink(self._arena.play(seed), partial(run, settings=self._arena.settings))

    def _play(self) -> None:
        saving = Every(SAVE_SECONDS)
        for sums in campaigns.campaign(self._arena, self._before, self._schedules, self._jobs):
            self.sums = sums
            self._progress.show(self._how_far())
            if saving.due():
                self._save()

    def tell(self, interrupted: bool) -> None:
        self._progress.clear()
        if self._arguments.json:
            say_json(self._as_json(interrupted))
        else:
            say(self._text(interrupted))

    def _save(self) -> None:
        if self._arguments.resume is not None and self.sums.schedules:
            save(self._arguments.resume, self._arena, self.sums)

    @property
    def _bound(self) -> float:
        return dead_seconds(self._arena.settings)

    @property
    def _rate(self) -> float:
        return (self.sums.schedules - self._before.schedules) / self._progress.seconds

    def _how_far(self) -> str:
        done = self.sums.schedules - self._before.schedules
        left_seconds = (self._schedules - done) / self._rate
        return (
            f"{done} of {self._schedules} schedules, {self._rate:.1f} a second, {self.sums.violations} violations, "
            f"about {left_seconds:.0f} s left"
        )

    def _text(self, interrupted: bool) -> str:
        sums = self.sums
        rows = [
            ("schedules", f"{sums.schedules}, of {LEAST_NODES} to {self._arena.most_nodes} nodes"),
            ("seeds", f"{sums.first_seed} to {sums.next_seed - 1}" if sums.schedules else "none"),
            ("events", str(sums.events)),
            ("resets", str(sums.resets)),
            ("deletions", str(sums.deletions)),
            ("longest isolation", f"{sums.longest_isolation_seconds:.1f} s to the reset; promised: {self._bound:g} s"),
            ("violations", str(sums.violations)),
            ("speed", f"{self._rate:.1f} schedules a second, in {_processes(self._jobs)}"),
        ]
        text = ("Interrupted; so far:\n" if interrupted else "") + labelled(rows)
        for found in sums.found:
            again = given.replay_command(self._arguments, found.seed)
            text += f"\n\nseed {found.seed}: {found.sentence}\n  {again}"
        if sums.violations > len(sums.found):
            text += f"\n\nand {sums.violations - len(sums.found)} more"
        if self._shortest is not None:
            text += f"\n\nThe shortest schedule that shows the same as the first of them:\n{story.text(self._shortest)}"
        return text

    def _as_json(self, interrupted: bool) -> dict[str, Any]:
        sums = self.sums
        return {
            "interrupted": interrupted,
            "schedules": sums.schedules,
            "first_seed": sums.first_seed,
            "next_seed": sums.next_seed,
            "least_nodes": LEAST_NODES,
            "most_nodes": self._arena.most_nodes,
            "events": sums.events,
            "resets": sums.resets,
            "deletions": sums.deletions,
            "longest_isolation_seconds": round(sums.longest_isolation_seconds, 3),
            "promised_seconds": self._bound,
            "violations": sums.violations,
            "found": [vars(found) for found in sums.found],
            "shortest": None if self._shortest is None else story.as_json(self._shortest),
        }


def _begin(arguments: Namespace, arena: Arena) -> Sums:
    before = None if arguments.resume is None else resumed(arguments.resume, arena)
    if before is not None and arguments.seed is not None:
        message = f"{arguments.resume}: this campaign goes on with seed {before.next_seed}"
        raise UserError(message, "Leave --seed out, or name another file.")
    first = given.seed(arguments)
    return before or Sums(first, first)


def _processes(jobs: int) -> str:
    return "1 process" if jobs == 1 else f"{jobs} processes"
