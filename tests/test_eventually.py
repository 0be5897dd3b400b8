"""Deadlines of tests: a machine that stands still gets more time, and not for ever."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.harness.eventually import MOST_FOLD, counted, eventually, stalled_seconds


@pytest.mark.parametrize(
    ("elapsed", "stalled", "expected"),
    [(20, 0, 20), (20, 5, 15), (20, 19, 20 / MOST_FOLD), (20, 60, 20 / MOST_FOLD)],
    ids=["idle", "busy for a quarter", "hardly moves", "several wait at once"],
)
def test_time_without_a_processor_does_not_count_up_to_a_limit(elapsed: float, stalled: float, expected: float) -> None:
    assert counted(elapsed, stalled) == expected


def test_waiting_for_others_and_for_other_machines_is_added(tmp_path: Path) -> None:
    second = os.sysconf("SC_CLK_TCK") * (os.cpu_count() or 1)
    (tmp_path / "stat").write_text(f"cpu  1 2 3 4 5 6 7 {4 * second} 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n")
    assert stalled_seconds(tmp_path) == 4
    (tmp_path / "pressure").mkdir()
    (tmp_path / "pressure" / "cpu").write_text("some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\nfull total=7\n")
    assert stalled_seconds(tmp_path) == 5.5


def test_what_never_holds_ends_and_says_what_was_awaited() -> None:
    with pytest.raises(TimeoutError, match=r"waited 0\.01 s in vain until pigs fly"):
        eventually(lambda: False, "pigs fly", 0.01)
