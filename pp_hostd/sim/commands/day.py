"""`pp-hostd simulate --day`: the story of a bad day that has a name; `--days` lists them."""

from __future__ import annotations

from argparse import Namespace

from pp_hostd.config_error import nearest
from pp_hostd.errors import UserError
from pp_hostd.service.output import say, say_json, table
from pp_hostd.sim.commands import given, story
from pp_hostd.sim.named_days import DAYS
from pp_hostd.sim.run import Story, told

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
    outcome = found.played(given.settings(arguments), seed, arguments.nodes, without_rule=without_rule)
    taken_out = found.without.name if without_rule else None
    if arguments.json:
        say_json({"day": name, "about": found.about, "without": taken_out, **story.as_json(outcome)})
    else:
        rule = f"Rule {found.without.rule} is taken out: {taken_out}\n" if without_rule else ""
        heading = f"{name}: {found.about}\n{rule}{story.heading(outcome)}"
        say(f"{heading}\n{_news(outcome.story)}{story.ending(outcome)}")
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
