"""`pp-hostd history`: how earlier boots were reset, and the changes of state in this one."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from typing import Any

from pp_hostd.agent.commands.daemon_link import report
from pp_hostd.agent.history import History
from pp_hostd.agent.sense.boot import history as endings
from pp_hostd.agent.state import RUN_DIRECTORY, VAR_DIRECTORY
from pp_hostd.service.output import say, say_json, table


def history(arguments: Namespace) -> int:
    changes = [*_resets(), *History(RUN_DIRECTORY).changes()]
    if arguments.json:
        say_json(changes)
        return 0
    say(table(["WHEN", "STATE", "PROOF", "WHY"], [_row(change) for change in changes]) if changes else "No change yet.")
    report()  # says so if the daemon is down
    return 0


def _resets() -> Iterator[dict[str, Any]]:
    for ending in endings(VAR_DIRECTORY):
        yield {"when": ending.ended_wallclock, "state": "reset", "sentence": ending.cause, "boot": ending.boot}


def _row(change: dict[str, Any]) -> list[str]:
    age = change.get("proof_age_seconds")
    proof = f"{age:.1f} s old" if isinstance(age, (int, float)) else "none"
    return [str(change.get("when")), str(change.get("state")), proof, str(change.get("sentence"))]
