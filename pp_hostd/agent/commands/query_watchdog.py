"""`pp-hostd query-watchdog`: what the kernel tells about the watchdog without opening it."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict

from pp_hostd import config
from pp_hostd.agent.act.watchdog_look import query
from pp_hostd.service.output import labelled, say, say_json


def query_watchdog(arguments: Namespace) -> int:
    seen = asdict(query(config.load(arguments.config).settings.watchdog.device))
    if arguments.json:
        say_json(seen)
    else:
        say(labelled([(name.replace("_", " "), _text(value)) for name, value in seen.items()]))
    return 0


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(value) or "nobody"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "unknown" if value is None else str(value)
