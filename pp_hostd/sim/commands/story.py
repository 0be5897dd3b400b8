"""One schedule and what came of it: for a person, and as JSON."""

from __future__ import annotations

from typing import Any

from pp_hostd.sim.run import Outcome, told


def heading(outcome: Outcome) -> str:
    """Its troubles."""
    schedule = outcome.schedule
    troubles = "".join(f"  {trouble}\n" for trouble in schedule.troubles) or "  none\n"
    what = "when (in seconds) what goes wrong, with whom, for how long, how badly (from 0 to 1)"
    return f"seed {schedule.seed}, {schedule.nodes} nodes, {schedule.cluster}; {what}:\n{troubles}"


def ending(outcome: Outcome) -> str:
    sums = f"{outcome.events} events, {outcome.resets} resets, {outcome.deletions} deletions"
    return f"{sums}; {outcome.violation or 'every promise held'}"


def text(outcome: Outcome) -> str:
    return f"{heading(outcome)}\n{told(outcome.story)}\n{ending(outcome)}"


def as_json(outcome: Outcome) -> dict[str, Any]:
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
