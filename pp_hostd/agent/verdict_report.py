"""The verdict after each judgement, for people, systemd, Prometheus and the history in /run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any, Callable

from pp_hostd.agent.record_file import write
from pp_hostd.files import FileError, read_whole
from pp_hostd.model.moment import render_moment
from pp_hostd.model.record import render
from pp_hostd.model.verdict import State, Verdict
from pp_hostd.service.journal import Journal, Message, Priority
from pp_hostd.service.metric import Metric, gauge
from pp_hostd.service.metrics_server import Health
from pp_hostd.service.notify import Notify

MAX_LINES = 200
MAX_LINE_CHARACTERS = 4000
KEPT_LINES = 150
"""So many remain when the most is reached, so that not every further line rewrites the file."""


class History:
    def __init__(self, run_directory: str) -> None:
        self._path = os.path.join(run_directory, "history")
        self._count = len(self._lines())

    def add(self, change: dict[str, Any]) -> str:
        """Append a line. The sentence says why that failed."""
        line = render(change)
        if len(line) > MAX_LINE_CHARACTERS:
            return f"{self._path}: a line of {len(line)} characters is not taken"
        if self._count >= MAX_LINES:
            return self._rewrite([*self._lines()[-KEPT_LINES:], line])
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb", buffering=0) as file:
                file.write(line.encode() + b"\n")
        except FileNotFoundError:
            return self._rewrite([line])
        except OSError as error:
            return f"{self._path}: can't be written ({error.strerror})"
        self._count += 1
        return ""

    def changes(self) -> list[dict[str, Any]]:
        """The changes, oldest first; lines that can't be read are left out."""
        found = (_decoded(line) for line in self._lines())
        return [change for change in found if isinstance(change, dict)]

    def _rewrite(self, lines: list[str]) -> str:
        self._count = len(lines)
        return write(self._path, "".join(f"{line}\n" for line in lines), durable=False)

    def _lines(self) -> list[str]:
        try:
            data = read_whole(self._path, (MAX_LINES + 1) * (MAX_LINE_CHARACTERS + 1))
        except FileError:
            return []
        return data.decode("utf-8", "replace").splitlines()[-MAX_LINES:]


def _decoded(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


PRIORITIES = {
    State.SUSPECT: Priority.WARNING,
    State.OUTAGE: Priority.WARNING,
    State.CONDEMNED: Priority.WARNING,
    State.RESETTING: Priority.CRITICAL,
}

REPORT_SECONDS = 30.0
"""How old the report may be that the commands show when they find no daemon."""


class VerdictReport:
    """One journal line and one line of history per change of state; systemd hears of every judgement."""

    def __init__(
        self,
        journal: Journal,
        notify: Notify,
        history: History,
        report: Callable[[Verdict], None],
        clock: Callable[[], float],
        judgement_gap_seconds: float,
    ) -> None:
        self.verdict: Verdict | None = None
        self._journal, self._notify, self._history = journal, notify, history
        self._report, self._clock = report, clock
        self._reported_at = 0.0
        self.judgement_gap_seconds = judgement_gap_seconds
        self._judgements = self._feeds = 0

    def show(self, verdict: Verdict) -> None:
        before, self.verdict = self.verdict, verdict
        self._judgements += 1
        self._feeds += verdict.feed
        self._notify.judged(verdict.sentence)
        if before is None or before.state is not verdict.state:
            self._tell(verdict)
        if before is None or before.sentence != verdict.sentence or verdict.at >= self._reported_at + REPORT_SECONDS:
            self._reported_at = verdict.at
            self._report(verdict)

    def _tell(self, verdict: Verdict) -> None:
        age, until = verdict.proof_age_seconds, verdict.feed_until_at
        facts = {
            "state": verdict.state.value,
            "proof": "none" if verdict.proof is None else verdict.proof.source.value,
            "proof_age_seconds": None if age is None else round(age, 3),
            "feeds_for_seconds": None if until is None else round(until - verdict.at, 3),
        }
        known = {name: fact for name, fact in facts.items() if fact is not None}
        aged = "" if age is None or until is None else f" (proof {age:.1f} s old, feeds for {until - verdict.at:.1f} s)"
        priority = PRIORITIES.get(verdict.state, Priority.NOTICE)
        self._journal.say(Message.STATE_CHANGED, f"{verdict.sentence}{aged}", priority, **known)
        wallclock = render_moment(datetime.now(timezone.utc).replace(microsecond=0))
        self._history.add({"when": wallclock, "at": round(verdict.at, 3), "sentence": verdict.sentence, **known})

    def metrics(self) -> Iterator[Metric]:
        verdict = self.verdict
        if verdict is None:
            return
        states = [({"state": state.value}, int(state is verdict.state)) for state in State]
        yield Metric("pp_hostd_state", "1 for the state that the host is in.", "gauge", states)
        age = None if verdict.proof is None else round(self._clock() - verdict.proof.at, 3)
        text = "How long ago the last proof began that the machine is not condemned."
        yield gauge("pp_hostd_proof_age_seconds", text, age)
        yield Metric("pp_hostd_judgements_total", "Finished judgements.", "counter", [({}, self._judgements)])
        yield Metric("pp_hostd_feeds_total", "Judgements that fed the watchdog.", "counter", [({}, self._feeds)])
        dropped = [({"to": "journal"}, self._journal.dropped_in_all), ({"to": "systemd"}, self._notify.dropped)]
        yield Metric("pp_hostd_dropped_total", "Lines and notifications that could not be sent.", "counter", dropped)

    def health(self) -> Health:
        """Whether this program does its work, which is to judge in time; the host's own state is in the metrics."""
        verdict = self.verdict
        late = verdict is None or self._clock() > verdict.at + self.judgement_gap_seconds
        return Health(not late, "no judgement in time" if late or verdict is None else verdict.sentence)
