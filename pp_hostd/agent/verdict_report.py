"""What people, systemd and Prometheus are told after each judgement: the same verdict for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Callable

from pp_hostd.agent.history import History
from pp_hostd.model.moment import render_moment
from pp_hostd.model.verdict import State, Verdict
from pp_hostd.service.journal import Journal, Message, Priority
from pp_hostd.service.metric import Metric
from pp_hostd.service.metrics_server import Health
from pp_hostd.service.notify import Notify

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
        states = [({"state": state.value}, float(state is verdict.state)) for state in State]
        yield Metric("pp_hostd_state", "1 for the state that the host is in.", "gauge", states)
        age = None if verdict.proof is None else self._clock() - verdict.proof.at
        if age is not None:
            text = "How long ago the last proof began that the machine is not condemned."
            yield Metric("pp_hostd_proof_age_seconds", text, "gauge", [({}, age)])
        yield Metric("pp_hostd_judgements_total", "Finished judgements.", "counter", [({}, self._judgements)])
        yield Metric("pp_hostd_feeds_total", "Judgements that fed the watchdog.", "counter", [({}, self._feeds)])
        dropped = [({"to": "journal"}, self._journal.dropped_in_all), ({"to": "systemd"}, self._notify.dropped)]
        yield Metric("pp_hostd_dropped_total", "Lines and notifications that could not be sent.", "counter", dropped)

    def health(self) -> Health:
        """Whether this program does its work, which is to judge in time; the host's own state is in the metrics."""
        verdict = self.verdict
        late = verdict is None or self._clock() > verdict.at + self.judgement_gap_seconds
        return Health(not late, "no judgement in time" if late or verdict is None else verdict.sentence)
