"""The commands of `pp-hostd simulate`; pp_hostd/simulate_command.py has their arguments and help."""

from __future__ import annotations

import os
import random
import shlex
import sys
import time
from argparse import Namespace
from functools import partial
from typing import Any

from pp_hostd import config
from pp_hostd.config import nearest
from pp_hostd.errors import UserError
from pp_hostd.model.settings import Settings
from pp_hostd.service.output import labelled, say, say_json, table
from pp_hostd.sim import campaign as campaigns
from pp_hostd.sim.campaign import LEAST_NODES, Arena, Sums, in_order, resumed, save
from pp_hostd.sim.days import Flows
from pp_hostd.sim.hunt import Hunt, hunt, shrink
from pp_hostd.sim.mutants import MUTANTS
from pp_hostd.sim.named_days import DAYS
from pp_hostd.sim.run import Outcome, Story, run, told
from pp_hostd.simulate_command import NODES, SCHEDULES, SCHEDULES_OF_MUTANT
from pp_hostd.timing import dead_seconds

FRESH_SEEDS = 10**9


def given_settings(arguments: Namespace) -> Settings:
    return Settings() if arguments.settings is None else config.load(arguments.settings).settings


def given_arena(arguments: Namespace) -> Arena:
    flows = Flows.FENCED if arguments.fenced else Flows.SOMETIMES
    return Arena(given_settings(arguments), arguments.nodes or NODES, flows)


def given_seed(arguments: Namespace) -> int:
    return random.SystemRandom().randrange(FRESH_SEEDS) if arguments.seed is None else int(arguments.seed)


def given_jobs(arguments: Namespace) -> int:
    return arguments.jobs or _processors()


def _processors() -> int:
    """Those that this process may use; PyPy only knows how many there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def replay_command(arguments: Namespace, given_seed: int) -> str:
    """Returns the command that shows the whole story again."""
    words = ["pp-hostd simulate --replay", str(given_seed)]
    words += ["--nodes", str(arguments.nodes)] if arguments.nodes else []
    words += ["--fenced"] if arguments.fenced else []
    words += ["--settings", shlex.quote(arguments.settings)] if arguments.settings else []
    return " ".join(words)


SHOW_SECONDS = 0.5


class Every:
    """Due once in so many seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._next_at = seconds, time.monotonic() + seconds

    def due(self) -> bool:
        now = time.monotonic()
        if now < self._next_at:
            return False
        self._next_at = now + self._seconds
        return True


class Progress:
    """Shown to a person at a terminal, and to nobody else."""

    def __init__(self) -> None:
        self._shown = bool(sys.stderr and sys.stderr.isatty())
        self._every = Every(SHOW_SECONDS)
        self._began_at = time.monotonic()

    @property
    def seconds(self) -> float:
        return max(time.monotonic() - self._began_at, 1e-6)

    def show(self, text: str, *, at_once: bool = False) -> None:
        if self._shown and (at_once or self._every.due()):
            self._write(text)

    def clear(self) -> None:
        if self._shown:
            self._write("")

    def _write(self, text: str) -> None:
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


def story_heading(outcome: Outcome) -> str:
    """Its troubles."""
    schedule = outcome.schedule
    troubles = "".join(f"  {trouble}\n" for trouble in schedule.troubles) or "  none\n"
    what = "when (in seconds) what goes wrong, with whom, for how long, how badly (from 0 to 1)"
    return f"seed {schedule.seed}, {schedule.nodes} nodes, {schedule.cluster}; {what}:\n{troubles}"


def story_ending(outcome: Outcome) -> str:
    sums = f"{outcome.events} events, {outcome.resets} resets, {outcome.deletions} deletions"
    return f"{sums}; {outcome.violation or 'every promise held'}"


def story_text(outcome: Outcome) -> str:
    return f"{story_heading(outcome)}\n{told(outcome.story)}\n{story_ending(outcome)}"


def story_json(outcome: Outcome) -> dict[str, Any]:
    return {
        "seed": outcome.schedule.seed,
        "nodes": outcome.schedule.nodes,
        "cluster": vars(outcome.schedule.cluster),
        "troubles": [vars(trouble) for trouble in outcome.schedule.troubles],
        "events": outcome.events,
        "resets": outcome.resets,
        "deletions": outcome.deletions,
        "violation": outcome.violation or None,
        "story": [{"at_seconds": round(at, 6), "who": who, "what": what} for at, who, what in outcome.story],
    }


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
    """The results so far, so that they can be printed whenever the run ends."""

    def __init__(self, arguments: Namespace) -> None:
        self._arguments = arguments
        self._arena = given_arena(arguments)
        self._schedules = arguments.schedules or SCHEDULES
        self._jobs = given_jobs(arguments)
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
            again = replay_command(self._arguments, found.seed)
            text += f"\n\nseed {found.seed}: {found.sentence}\n  {again}"
        if sums.violations > len(sums.found):
            text += f"\n\nand {sums.violations - len(sums.found)} more"
        if self._shortest is not None:
            text += f"\n\nThe shortest schedule that shows the same as the first of them:\n{story_text(self._shortest)}"
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
            "shortest": None if self._shortest is None else story_json(self._shortest),
        }


def _begin(arguments: Namespace, arena: Arena) -> Sums:
    before = None if arguments.resume is None else resumed(arguments.resume, arena)
    if before is not None and arguments.seed is not None:
        message = f"{arguments.resume}: this campaign goes on with seed {before.next_seed}"
        raise UserError(message, "Leave --seed out, or name another file.")
    first = given_seed(arguments)
    return before or Sums(first, first)


def _processes(jobs: int) -> str:
    return "1 process" if jobs == 1 else f"{jobs} processes"


def mutants(arguments: Namespace) -> int:
    arena, first = given_arena(arguments), given_seed(arguments)
    seeds = range(first, first + (arguments.schedules or SCHEDULES_OF_MUTANT))
    progress, hunts = Progress(), list[Hunt]()
    if not arguments.json:
        say(f"{len(MUTANTS)} mutants, each on schedules from seed {first} on")
    try:
        for each in in_order(partial(_hunt, arena, seeds), range(len(MUTANTS)), given_jobs(arguments)):
            hunts.append(each)
            progress.clear()
            if not arguments.json:
                say(_text(each))
            progress.show(f"{len(hunts)} of {len(MUTANTS)} mutants, {progress.seconds:.0f} s", at_once=True)
    finally:
        progress.clear()
        if arguments.json:
            say_json([_as_json(each) for each in hunts])
    escaped = [each.mutant.name for each in hunts if each.outcome is None]
    if not arguments.json:
        say(
            f"\n{len(hunts) - len(escaped)} of {len(hunts)} caught"
            + "".join(f"\n  not caught: {name}" for name in escaped)
        )
    return 1 if escaped else 0


def _hunt(arena: Arena, seeds: range, number: int) -> Hunt:
    return hunt(MUTANTS[number], arena, seeds)


def _text(hunted: Hunt) -> str:
    name = f"\nRule {hunted.mutant.rule}: {hunted.mutant.name}"
    if hunted.outcome is None:
        return f"{name}\nNOT CAUGHT in {hunted.schedules} schedules"
    found = f"caught by schedule {hunted.schedules}, seed {hunted.seed}"
    return f"{name}\n{found}; the shortest that shows it:\n{story_text(hunted.outcome)}"


def _as_json(hunted: Hunt) -> dict[str, Any]:
    outcome = hunted.outcome
    return {
        "rule": hunted.mutant.rule,
        "name": hunted.mutant.name,
        "caught": outcome is not None,
        "seed": hunted.seed,
        "schedules": hunted.schedules,
        "story": None if outcome is None else story_json(outcome),
    }


SEED = 1
"""A named day is the same each time, unless another seed is given."""


def days(arguments: Namespace) -> int:
    if arguments.json:
        say_json(
            [
                {"day": name, "about": day.about, "nodes": day.nodes, "without_its_rule": day.without.name}
                for name, day in DAYS.items()
            ]
        )
    else:
        say(table(["NAME", "NODES", "WHAT HAPPENS"], [[name, str(day.nodes), day.about] for name, day in DAYS.items()]))
    return 0


def day(arguments: Namespace) -> int:
    name, without_rule = arguments.day, arguments.without_its_rule
    if name not in DAYS:
        meant = nearest(name, list(DAYS))
        guess = f"; did you mean {meant}?" if meant else ""
        raise UserError(f"no day is called {name!a}{guess}", f"There are: {', '.join(DAYS)}")
    found, seed = DAYS[name], SEED if arguments.seed is None else arguments.seed
    outcome = found.played(given_settings(arguments), seed, arguments.nodes, without_rule=without_rule)
    taken_out = found.without.name if without_rule else None
    if arguments.json:
        say_json({"day": name, "about": found.about, "without": taken_out, **story_json(outcome)})
    else:
        rule = f"Rule {found.without.rule} is taken out: {taken_out}\n" if without_rule else ""
        heading = f"{name}: {found.about}\n{rule}{story_heading(outcome)}"
        say(f"{heading}\n{_news(outcome.story)}{story_ending(outcome)}")
    return 1 if outcome.violation else 0


def _news(whole: Story) -> str:
    """In an hour's outage everybody says the same again and again: once after each trouble is enough."""
    said: set[tuple[str, str]] = set()
    news: Story = []
    for at, who, what in whole:
        if who == "TROUBLE":
            said.clear()
        if (who, what) not in said:
            news.append((at, who, what))
            said.add((who, what))
    left_out = len(whole) - len(news)
    return f"{told(news)}\n" + (
        f"{left_out} lines that say the same again are left out; --json has all\n" if left_out else ""
    )


def replay(arguments: Namespace) -> int:
    outcome = given_arena(arguments).play(arguments.replay)
    if arguments.json:
        say_json(story_json(outcome))
    else:
        say(story_text(outcome))
    return 1 if outcome.violation else 0
