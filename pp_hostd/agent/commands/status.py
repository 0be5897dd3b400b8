"""`pp-hostd status` and `pp-hostd explain`: the daemon's report, as a table or in sentences."""

from __future__ import annotations

import contextlib
import sys
import time
from argparse import Namespace

from pp_hostd.agent.commands.daemon_link import Down, report, tell_down
from pp_hostd.agent.commands.status_text import status_text
from pp_hostd.agent.explain import explain as explained
from pp_hostd.service.output import filled, say, say_json

WATCH_SECONDS = 1.0
CLEAR = "\x1b[H\x1b[2J"


def status(arguments: Namespace) -> int:
    if not arguments.watch:
        _show(arguments.json, indent=2)
        return 0
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            if sys.stdout and sys.stdout.isatty():
                say(CLEAR)
            try:
                _show(arguments.json, indent=None)
            except Down as down:  # it may come back
                tell_down(down, arguments.json, indent=None)
            time.sleep(WATCH_SECONDS)
    return 0


def _show(as_json: bool, indent: int | None) -> None:
    current = report()
    if as_json:
        say_json({"running": True, **current}, indent)
    else:
        say(status_text(current))


def explain(_: Namespace) -> int:
    for sentence in explained(report()):
        say(filled(sentence, indent=2))
    return 0
