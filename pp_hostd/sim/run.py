"""One schedule, from the first moment to the last, and what came of it."""

from __future__ import annotations

import traceback

from pp_hostd.frozen import frozen
from pp_hostd.model.settings import Settings
from pp_hostd.sim.invariants import Invariants
from pp_hostd.sim.play import Play
from pp_hostd.sim.schedule import Schedule
from pp_hostd.sim.violation import Violation
from pp_hostd.sim.world import World

Story = list[tuple[float, str, str]]
CRASH = "crash"
"""The kind of a violation that nobody has thought of."""


@frozen
class Outcome:
    """`violation` is nothing if all held."""

    schedule: Schedule
    violation: str
    kind: str
    events: int
    resets: int
    deletions: int
    longest_isolation_seconds: float
    story: Story


def run(schedule: Schedule, settings: Settings) -> Outcome:
    story: Story = []
    world = World(
        settings,
        schedule.nodes,
        schedule.seed,
        lambda who, what: story.append((world.time.now, who, what)),
        schedule.cluster,
    )
    invariants = Invariants(world, schedule.spared)
    Play(world, schedule)
    world.begin()
    violation = kind = ""
    found = _first_violation(world, schedule, invariants)
    if found is not None:
        violation, kind = str(found), found.kind
        story.append((world.time.now, "VIOLATION", violation))
    return Outcome(
        schedule,
        violation,
        kind,
        world.time.happened,
        invariants.resets,
        world.deletions,
        world.longest_isolation_seconds,
        story,
    )


def _first_violation(world: World, schedule: Schedule, invariants: Invariants) -> Violation | None:
    try:
        world.time.run(schedule.end_at)
        invariants.at_the_end()
    except Violation as found:
        return found
    except Exception as defect:  # of a daemon or of the simulator; either is worth its seed
        place = traceback.extract_tb(defect.__traceback__)[-1]
        sentence = f"{type(defect).__name__} in {place.name}, line {place.lineno} of {place.filename}: {defect}"
        return Violation(CRASH, " ".join(sentence.split())[:500])
    return None


def told(story: Story) -> str:
    return "".join(f"{at:8.2f} s  {who}: {what}\n" for at, who, what in story)
