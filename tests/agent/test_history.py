"""The history of state changes: in order, bounded, and not hurt by damage."""

from __future__ import annotations

from pathlib import Path

from pp_hostd.agent.verdict_report import MAX_LINES, History


def test_changes_come_back_in_order_also_after_a_restart(tmp_path: Path) -> None:
    for number in range(3):
        assert History(str(tmp_path / "run")).add({"number": number}) == ""
    changes = History(str(tmp_path / "run")).changes()
    assert [change["number"] for change in changes] == [0, 1, 2]


def test_only_the_last_ones_are_kept(tmp_path: Path) -> None:
    for number in range(3 * MAX_LINES):
        if number % 70 == 0:  # a restart
            history = History(str(tmp_path))
        history.add({"number": number})
        assert len((tmp_path / "history").read_text().splitlines()) <= MAX_LINES
    numbers = [change["number"] for change in history.changes()]
    assert numbers == list(range(numbers[0], 3 * MAX_LINES))
    assert len(numbers) >= MAX_LINES // 2


def test_damaged_lines_are_left_out(tmp_path: Path) -> None:
    history = History(str(tmp_path))
    history.add({"number": 1})
    with open(tmp_path / "history", "ab") as file:
        file.write(b'\xff\n{"half\n[]\n' + b"[" * 3000 + b"\n")
    history.add({"number": 2})
    assert [change["number"] for change in history.changes()] == [1, 2]


def test_a_line_that_would_not_fit_is_refused_in_a_sentence(tmp_path: Path) -> None:
    history = History(str(tmp_path))
    assert "is not taken" in history.add({"x": "y" * 10_000})
    assert history.changes() == []


def test_trouble_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "history").mkdir()
    assert "can't be written (Is a directory)" in History(str(tmp_path)).add({})
