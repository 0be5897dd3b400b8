"""`pp-hostd simulate --mutants`: each safety rule is taken out, and the shortest story that shows it is told."""

from __future__ import annotations

from argparse import Namespace
from functools import partial
from typing import Any

from pp_hostd.service.output import say, say_json
from pp_hostd.sim.campaign import Arena
from pp_hostd.sim.commands import given, story
from pp_hostd.sim.commands.progress import Progress
from pp_hostd.sim.hunt import Hunt, hunt
from pp_hostd.sim.jobs import in_order
from pp_hostd.sim.mutants import MUTANTS
from pp_hostd.simulate_command import SCHEDULES_OF_MUTANT


def mutants(arguments: Namespace) -> int:
    arena, first = given.arena(arguments), given.seed(arguments)
    seeds = range(first, first + (arguments.schedules or SCHEDULES_OF_MUTANT))
    progress, hunts = Progress(), list[Hunt]()
    if not arguments.json:
        say(f"{len(MUTANTS)} mutants, each on schedules from seed {first} on")
    try:
        for each in in_order(partial(_hunt, arena, seeds), range(len(MUTANTS)), given.jobs(arguments)):
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
    return f"{name}\n{found}; the shortest that shows it:\n{story.text(hunted.outcome)}"


def _as_json(hunted: Hunt) -> dict[str, Any]:
    outcome = hunted.outcome
    return {
        "rule": hunted.mutant.rule,
        "name": hunted.mutant.name,
        "caught": outcome is not None,
        "seed": hunted.seed,
        "schedules": hunted.schedules,
        "story": None if outcome is None else story.as_json(outcome),
    }
