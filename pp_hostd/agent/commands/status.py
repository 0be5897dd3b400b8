"""`pp-hostd status`, `explain`, `history` and `query-watchdog`: the state of this host, as text or JSON."""

from __future__ import annotations

import contextlib
import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from pp_hostd import config
from pp_hostd.agent.act.watchdog_device import query
from pp_hostd.agent.commands import EXIT_DOWN
from pp_hostd.agent.commands.daemon_link import Down, report, tell_down
from pp_hostd.agent.explain import explain as explained
from pp_hostd.agent.report import Report
from pp_hostd.agent.sense.boot import history as endings
from pp_hostd.agent.state import RUN_DIRECTORY, VAR_DIRECTORY
from pp_hostd.agent.verdict_report import History
from pp_hostd.service.output import filled, labelled, say, say_json, table


def status_text(report: Report) -> str:
    """Everything in the report that a person asks for first, at most 80 columns wide."""
    text = labelled([(label, value) for label, value in _rows(report) if value])
    return f"{text}\n\n{_answers(report['answers'])}" if report["answers"] else text


def _rows(report: Report) -> list[tuple[str, str]]:
    roster, machine, gate = report["roster"], report["machine"], report["gate"]
    return [
        ("node", f"{report['node']} (boot {report['boot']})"),
        ("state", f"{report['state']}{' (dry run)' if report['mode'] == 'dry-run' else ''}"),
        ("", report["sentence"]),
        ("proof", _proof(report["proof"])),
        ("fed for" if report["armed"] else "would feed", _seconds(report["feed_until_seconds"])),
        ("watchdog", _watchdog(report["armed"])),
        ("gate", f"{gate['state']} ({gate['kind']})"),
        ("promise", _promise(report["promise"])),
        ("machine", "not read yet" if machine is None else f"{machine['subject']} (uid {machine['uid']})"),
        ("roster", "none" if roster is None else f"version {roster['version']}, {roster['nodes']} nodes"),
        ("reads", _reads(report["reads"])),
        ("inquiry", _inquiry(report["inquiry"])),
        ("certificate", f"ends at {report['certificate_ends']}" if report.get("certificate_ends") else ""),
        ("suspects", ", ".join(report.get("suspects", ()))),
        ("next", _next(report["next"])),
        ("maintenance", maintenance_text(report["maintenance"])),
        ("waits for", report["waiting_for"]),
        *(("trouble", trouble) for trouble in report["troubles"]),
        ("last boot", report["last_boot"]),
    ]


def maintenance_text(order: dict[str, Any] | None) -> str:
    """Returns who ordered the maintenance, why and until when; empty without an order."""
    return "" if order is None else f"by {order['who']} until {order['until']}: {order['why']}"


def _proof(proof: dict[str, Any] | None) -> str:
    if proof is None:
        return "none yet"
    detail = f" ({proof['detail']})" if proof["detail"] else ""
    return f"{proof['source']}{detail}, begun {proof['age_seconds']:.1f} s ago"


def _watchdog(armed: dict[str, Any] | None) -> str:
    if armed is None:
        return "not armed"
    return "; ".join((f"armed, {armed['kind']}, {armed['timeout_seconds']:g} s", *armed["troubles"]))


def _promise(promise: dict[str, Any]) -> str:
    stored, unknown = promise["stored"], promise["outcome_unknown"]
    texts = ["none on the Node" if stored is None else _record(stored)]
    texts += [f"perhaps also {_record(each)} (the outcome of the write is unknown)" for each in unknown]
    return "; ".join(texts)


def _record(record: dict[str, Any]) -> str:
    if "T" not in record:
        return str(record["state"])
    dead = f"{record['state']}: dead within {record['T'] + 2 * record['W']:g} s of its last proof"
    return f"{dead} (T {record['T']:g} s, W {record['W']:g} s), roster {record['roster']}"


def _reads(reads: dict[str, Any]) -> str:
    last = "none has ended yet"
    if reads["last_age_seconds"] is not None:
        outcome = f"failed: {reads['last_failure']}" if reads["last_failure"] else "good"
        last = f"the last began {reads['last_age_seconds']:.1f} s ago, {outcome}"
    return f"{reads['failed_in_a_row']} failed in a row; {last}"


def _inquiry(inquiry: dict[str, Any] | None) -> str:
    if inquiry is None:
        return ""
    return f"round {inquiry['round']} of {inquiry['rounds']}, for {inquiry['age_seconds']:.1f} s: {inquiry['summary']}"


def _next(due: dict[str, Any] | None) -> str:
    return "" if due is None else f"in {_seconds(due['seconds'])}: {due['what']}"


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{max(0.0, seconds):.1f} s"


def _answers(answers: list[dict[str, Any]]) -> str:
    rows = [[each["peer"], _said(each), f"{each['age_seconds']:.0f} s", each["why"]] for each in answers]
    return table(["LAST ANSWERS", "SAID", "AGE", "WHY"], rows)


def _said(answer: dict[str, Any]) -> str:
    return str(answer["said"]) if answer["id"] is None else f"{answer['said']} (id {answer['id']})"


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


def explain(arguments: Namespace) -> int:
    found = report()
    sentences = explained(found)
    if arguments.json:
        say_json({"node": found["node"], "sentences": sentences})
        return 0
    for sentence in sentences:
        say(filled(sentence, indent=2))
    return 0


def history(arguments: Namespace) -> int:
    changes = [*_resets(), *History(RUN_DIRECTORY).changes()]
    if arguments.json:
        say_json(changes)
        return 0 if _is_up() else EXIT_DOWN
    say(table(["WHEN", "STATE", "PROOF", "WHY"], [_row(change) for change in changes]) if changes else "No change yet.")
    report()  # says so if the daemon is down
    return 0


def _is_up() -> bool:
    try:
        report()
    except Down:
        return False
    return True


def _resets() -> Iterator[dict[str, Any]]:
    for ending in endings(VAR_DIRECTORY):
        yield {"when": ending.ended_wallclock, "state": "reset", "sentence": ending.cause, "boot": ending.boot}


def _row(change: dict[str, Any]) -> list[str]:
    age = change.get("proof_age_seconds")
    proof = f"{age:.1f} s old" if isinstance(age, (int, float)) else "none"
    return [str(change.get("when")), str(change.get("state")), proof, str(change.get("sentence"))]


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
