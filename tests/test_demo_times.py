"""The demo chooses times that this machine can keep, and begins again if it stood still for longer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pp_hostd import timing
from pp_hostd.config import load
from tests.demo.__main__ import tell
from tests.demo.narrator import Form, Narrator
from tests.demo.times import MOST_FOLD, MOST_RUNS, Times, Verdict, chosen_times, verdict_on
from tests.harness.stalls import Watch, Withheld


@pytest.mark.parametrize(
    ("strain_seconds", "least_fold", "fold"),
    [(0.0, 1.0, 1.0), (0.75, 1.0, 1.0), (0.76, 1.0, 1.1), (3.0, 1.0, 4.0), (3.0, 2.0, 4.0), (0.9, 2.0, 2.0)],
    ids=["idle", "just bearable", "a little more", "a long stall", "a long stall again", "a short stall again"],
)
def test_times_grow_with_the_longest_stall_and_with_each_run(
    strain_seconds: float, least_fold: float, fold: float
) -> None:
    times = chosen_times(strain_seconds, least_fold)
    assert times.fold == fold
    assert times.bearable_seconds >= strain_seconds


@pytest.mark.parametrize("least_fold", [1.0, 2 * MOST_FOLD])
def test_times_stay_within_what_settings_allow(least_fold: float) -> None:
    assert chosen_times(1000.0, least_fold).fold == MOST_FOLD


@pytest.mark.parametrize("fold", [1.0, 1.1, 3.7, MOST_FOLD])
def test_the_times_of_each_fold_are_valid_and_bear_what_they_say(fold: float, tmp_path: Path) -> None:
    times, file = Times(fold), tmp_path / "pp-hostd.toml"
    file.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in times.settings.items()))
    settings = load(str(file)).settings
    assert timing.broken(settings) == []
    assert timing.dead_seconds(settings) == times.dead_seconds
    assert settings.agent.self_timeout_seconds == times.self_timeout_seconds
    unfed_seconds = timing.judgement_gap_seconds(settings) + 2 * times.bearable_seconds
    assert unfed_seconds <= settings.watchdog.timeout_seconds + 1e-6


@pytest.mark.parametrize(
    ("happened", "strain_seconds", "fold", "run", "expected"),
    [
        (True, 0.1, 1.0, 1, Verdict.HAPPENED),
        (True, 9.0, 1.0, MOST_RUNS, Verdict.HAPPENED),
        (False, 0.1, 1.0, 1, Verdict.FAULT),
        (False, 0.75, 1.0, 1, Verdict.FAULT),
        (False, 0.76, 1.0, 1, Verdict.REPEAT),
        (False, 1.4, 2.0, 2, Verdict.FAULT),
        (False, 9.0, 2.0, MOST_RUNS - 1, Verdict.REPEAT),
        (False, 9.0, 2.0, MOST_RUNS, Verdict.TOO_BUSY),
        (False, 0.1, 2.0, MOST_RUNS, Verdict.FAULT),
    ],
)
def test_only_a_stall_that_the_times_cannot_bear_excuses_a_run(
    happened: bool, strain_seconds: float, fold: float, run: int, expected: Verdict
) -> None:
    assert verdict_on(happened, strain_seconds, Times(fold), run) is expected


class Measured(Watch):
    """Measures these stalls, one after the other."""

    def __init__(self, *stalls: float) -> None:
        self._stalls = list(stalls)

    def withheld(self) -> Withheld:
        return Withheld(self._stalls[0], 1.0)

    def restart(self) -> None:
        del self._stalls[0]


def runs_of(watch: Watch, *errors: str | None) -> tuple[Verdict, list[float]]:
    """The verdict on runs that end with these errors, and the fold of each run's times."""
    left, folds = list(errors), []

    def error_of_run(_: Narrator, times: Times) -> str | None:
        folds.append(times.fold)
        return left.pop(0)

    return tell(Narrator(Form.JSON), watch, error_of_run), folds


def test_a_disturbed_run_is_repeated_with_longer_times_until_all_happens(capsys: pytest.CaptureFixture[str]) -> None:
    measured = Measured(0.1, 3.0, 3.5, 6.0)
    assert runs_of(measured, "a host is down", "a host is down", None) == (Verdict.HAPPENED, [1.0, 4.0, 8.0])
    first, repeat, second, *_, end = map(json.loads, capsys.readouterr().out.splitlines())
    assert first["measured"]["machine"].startswith("stood still for 0.1 s at most")
    assert first["line"].endswith("is dead within 15 s.")
    assert (first["run"], first["measured"]["stall_seconds"], first["times"]["api.retry_seconds"]) == (1, 0.1, 0.5)
    assert repeat["repeats_after"] == 1
    assert "a host is down" in repeat["line"]
    assert (second["run"], second["times"]["api.retry_seconds"]) == (2, 2.0)
    assert end["happened"] is True


def test_a_failure_without_a_stall_is_a_fault_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert runs_of(Measured(3.0, 2.0), "a host is down") == (Verdict.FAULT, [4.0])
    end = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert end["happened"] is False
    assert "a host is down" in end["line"]
    assert "is not the cause: these times bear a stall of 3.0 s, and it stood still for 2.0 s at most" in end["line"]


def test_a_machine_that_always_stands_still_is_too_busy_in_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    verdict, folds = runs_of(Measured(*[50.0] * (MOST_RUNS + 1)), *["a host is down"] * MOST_RUNS)
    assert (verdict, folds) == (Verdict.TOO_BUSY, [MOST_FOLD] * MOST_RUNS)
    end = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert end["happened"] is False
    assert f"too busy for the demo, which began {MOST_RUNS} times" in end["line"]
