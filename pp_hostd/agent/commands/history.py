"""`pp-hostd history`: the changes of state in this boot, which are kept in /run."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from pp_hostd.agent.commands.daemon_link import report
from pp_hostd.agent.commands.output import say, say_json, table
from pp_hostd.agent.history import History
from pp_hostd.agent.state import RUN_DIRECTORY


def history(arguments: Namespace) -> int:
    changes = History(RUN_DIRECTORY).changes()
    if arguments.json:
        say_json(changes)
        return 0
    say(table(["WHEN", "STATE", "PROOF", "WHY"], [_row(change) for change in changes]) if changes else "No change yet.")
    report()  # says so if the daemon is down
    return 0


def _row(change: dict[str, Any]) -> list[str]:
    age = change.get("proof_age_seconds")
    proof = f"{age:.1f} s old" if isinstance(age, (int, float)) else "none"
    return [str(change.get("when")), str(change.get("state")), proof, str(change.get("sentence"))]
