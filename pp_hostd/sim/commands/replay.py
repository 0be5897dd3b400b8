"""`pp-hostd simulate --replay`: the story of one schedule, event by event."""

from __future__ import annotations

from argparse import Namespace

from pp_hostd.service.output import say, say_json
from pp_hostd.sim.commands import given, story


def replay(arguments: Namespace) -> int:
    outcome = given.arena(arguments).play(arguments.replay)
    if arguments.json:
        say_json(story.as_json(outcome))
    else:
        say(story.text(outcome))
    return 1 if outcome.violation else 0
