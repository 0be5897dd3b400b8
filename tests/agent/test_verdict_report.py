"""Whether the program does its work, as a probe is told: that is to judge in time, however the host fares."""

from __future__ import annotations

from pathlib import Path

from pp_hostd.agent.verdict_report import History, VerdictReport
from pp_hostd.model.verdict import State, Verdict
from pp_hostd.service.journal import Journal
from pp_hostd.service.notify import Notify

GAP_SECONDS = 4.0
VERDICT = Verdict(
    at=100.0,
    state=State.WAITING,
    sentence="not armed: no roster",
    proof=None,
    feed_until_at=None,
    feed=False,
    read=False,
    ask=(),
    reset=None,
    wake_at=101.0,
)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_program_is_healthy_while_it_judges_in_time(tmp_path: Path) -> None:
    clock, journal = Clock(), Journal(str(tmp_path / "journal"))
    verdict_report = VerdictReport(journal, Notify(clock), History(str(tmp_path)), lambda _: None, clock, GAP_SECONDS)
    assert verdict_report.health() == (False, "no judgement in time")
    verdict_report.show(VERDICT)
    assert verdict_report.health() == (True, "not armed: no roster")
    clock.now += GAP_SECONDS
    assert verdict_report.health().ok
    clock.now += 0.1
    assert verdict_report.health() == (False, "no judgement in time")
    journal.close()
