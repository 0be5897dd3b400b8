"""`pp-hostd simulate --scenario`: the story of a bad day that has a name."""

from __future__ import annotations

from argparse import Namespace

from pp_hostd.config_error import nearest
from pp_hostd.errors import UserError
from pp_hostd.service.output import say, say_json, table
from pp_hostd.sim.commands import given, story
from pp_hostd.sim.run import Story, run, told
from pp_hostd.sim.scenarios import SCENARIOS


def scenario(arguments: Namespace) -> int:
    name, settings = arguments.scenario, given.settings(arguments)
    if not name:
        _list(arguments.json)
        return 0
    if name not in SCENARIOS:
        meant = nearest(name, list(SCENARIOS))
        guess = f"; did you mean {meant}?" if meant else ""
        raise UserError(f"no scenario is called {name!a}{guess}", f"There are: {', '.join(SCENARIOS)}")
    outcome = run(SCENARIOS[name].schedule(given.seed(arguments), arguments.nodes), settings)
    if arguments.json:
        say_json({"scenario": name, "about": SCENARIOS[name].about, **story.as_json(outcome)})
    else:
        say(f"{name}: {SCENARIOS[name].about}\n{story.heading(outcome)}\n{_news(outcome.story)}{story.ending(outcome)}")
    return 1 if outcome.violation else 0


def _list(as_json: bool) -> None:
    if as_json:
        say_json([{"scenario": name, "about": each.about, "nodes": each.nodes} for name, each in SCENARIOS.items()])
    else:
        say(table(["NAME", "NODES", "WHAT HAPPENS"], [[name, str(s.nodes), s.about] for name, s in SCENARIOS.items()]))


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
