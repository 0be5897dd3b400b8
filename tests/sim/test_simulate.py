"""`pp-hostd simulate` as a person runs it: what it prints, and with which exit code."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pp_hostd.sim.mutants import MUTANTS
from pp_hostd.sim.named_days import DAYS
from tests.harness.eventually import HANGS_SECONDS

COMMAND = [str(Path(sys.executable).with_name("pp-hostd")), "simulate"]
SMALL = ("--nodes", "3", "--jobs", "2")


def simulate(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=HANGS_SECONDS, check=False)


def told(*arguments: str) -> Any:
    result = simulate(*arguments, "--json")
    assert (result.returncode, result.stderr) == (0, "")
    return json.loads(result.stdout)


def refused(*arguments: str) -> str:
    result = simulate(*arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert "Traceback" not in result.stderr
    return result.stderr


# Campaigns.


def test_a_campaign_ends_with_a_table() -> None:
    result = simulate("--schedules", "4", "--seed", "7", *SMALL)
    assert (result.returncode, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0] == "4 schedules from seed 7 on, in 2 processes"
    rows = {line.split()[0]: line.split(maxsplit=1)[1] for line in lines[1:]}
    assert (rows["schedules"], rows["seeds"], rows["violations"]) == ("4, of 2 to 3 nodes", "7 to 10", "0")
    assert list(rows) == ["schedules", "seeds", "events", "resets", "deletions", "longest", "violations", "speed"]


def test_without_a_seed_it_takes_one_by_chance_and_tells_it() -> None:
    first, second = told("--schedules", "1", *SMALL), told("--schedules", "1", *SMALL)
    assert first["first_seed"] != second["first_seed"]
    assert told("--schedules", "1", "--seed", str(first["first_seed"]), *SMALL) == first


def test_a_campaign_is_resumed_and_adds_up(tmp_path: Path) -> None:
    file = str(tmp_path / "campaign")
    told("--schedules", "3", "--seed", "7", "--resume", file, *SMALL)
    resumed = told("--schedules", "4", "--resume", file, *SMALL)
    assert resumed == told("--schedules", "7", "--seed", "7", *SMALL)
    assert [path.name for path in tmp_path.iterdir()] == ["campaign"]


def test_sums_of_other_runs_are_not_added_up(tmp_path: Path) -> None:
    file, settings = str(tmp_path / "campaign"), tmp_path / "pp-hostd.toml"
    settings.write_text("[watchdog]\ntimeout_seconds = 12\n")
    told("--schedules", "1", "--seed", "7", "--resume", file, *SMALL)
    before = Path(file).read_bytes()
    assert "most nodes is 3 there and 4 here" in refused("--resume", file, "--nodes", "4")
    assert "flows is 'SOMETIMES' there and 'FENCED' here" in refused("--resume", file, "--nodes", "3", "--fenced")
    other = refused("--resume", file, "--settings", str(settings), *SMALL)
    assert "watchdog.timeout_seconds is 10 there and 12 here" in other
    assert "goes on with seed 8" in refused("--resume", file, "--seed", "7", *SMALL)
    assert Path(file).read_bytes() == before
    saved = json.loads(before)
    Path(file).write_text(json.dumps({**saved, "of": {**saved["of"], "code": "old"}}))
    assert "code is 'old' there" in refused("--resume", file, *SMALL)


@pytest.mark.parametrize("content", ["", "{}", '{"v":1}', '{"v":1,"sums":{"first_seed":-1}}', "\x00"])
def test_a_file_that_is_no_campaign_is_refused_and_kept(tmp_path: Path, content: str) -> None:
    file = tmp_path / "campaign"
    file.write_text(content)
    assert refused("--resume", str(file)).startswith(f"pp-hostd: {file}: is no file of a campaign: ")
    assert file.read_text() == content


def test_a_mistake_in_the_settings_is_told_as_check_config_tells_it(tmp_path: Path) -> None:
    settings = tmp_path / "pp-hostd.toml"
    settings.write_text("[peers]\nrounds = 0\n")
    assert refused("--settings", str(settings)).startswith(f"pp-hostd: the configuration can't be used\n\n{settings}\n")


def test_settings_are_those_of_the_file(tmp_path: Path) -> None:
    settings = tmp_path / "pp-hostd.toml"
    settings.write_text("[api]\nread_interval_seconds = 3\n")
    arguments = ("--schedules", "2", "--seed", "7", *SMALL)
    assert told(*arguments, "--settings", str(settings))["events"] != told(*arguments)["events"]


@contextlib.contextmanager
def endless(stdout: int, stderr: int, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A campaign with processes of its own, as a terminal starts it; gone in the end."""
    command = [*COMMAND, "--schedules", "1000000", *SMALL, *arguments]
    with subprocess.Popen(command, stdout=stdout, stderr=stderr, start_new_session=True) as process:
        try:
            yield process
        finally:
            process.kill()  # the others see that


def test_ctrl_c_ends_all_processes_and_tells_what_is_known() -> None:
    with endless(subprocess.PIPE, subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"1000000 schedules from seed ")
        os.killpg(process.pid, signal.SIGINT)
        rest, complaint = process.communicate(timeout=HANGS_SECONDS)  # the last one that could write is gone then
    assert (process.returncode, complaint) == (130, b"")
    assert rest.startswith(b"Interrupted; so far:\nschedules ")


def test_a_terminal_is_shown_how_far_it_is_and_what_was_done_until_ctrl_c_is_kept(tmp_path: Path) -> None:
    file, shown = tmp_path / "campaign", b""
    parent, child = pty.openpty()
    with endless(subprocess.DEVNULL, child, "--seed", "7", "--resume", str(file)) as process:
        os.close(child)
        while b" left" not in shown:
            shown += os.read(parent, 4096)
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(timeout=HANGS_SECONDS) == 130
    os.close(parent)
    assert b" of 1000000 schedules, " in shown
    assert b" a second, 0 violations, about " in shown
    kept = json.loads(file.read_text())["sums"]
    assert kept["next_seed"] > kept["first_seed"] == 7


# A violation: the same command, in a process that has lost a rule.


WITHOUT_THE_GATE = """
import sys
from pp_hostd.cli import agent
from pp_hostd.sim.mutant import taken_out
from pp_hostd.sim.mutants import MUTANTS
(mutant,) = [each for each in MUTANTS if each.name == "the kubelet does not wait for the gate"]
with taken_out(mutant):
    sys.exit(agent())
"""


def simulate_without_the_gate(*arguments: str) -> str:
    command = [sys.executable, "-c", WITHOUT_THE_GATE, "simulate", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=HANGS_SECONDS, check=False)
    assert (result.returncode, result.stderr) == (1, "")
    return result.stdout


def test_a_violation_is_told_with_its_seed_and_its_shortest_story() -> None:
    answer = json.loads(simulate_without_the_gate("--schedules", "15", "--seed", "3", "--json", *SMALL))
    assert answer["violations"] >= len(answer["found"]) >= 1
    shortest = answer["shortest"]
    assert shortest["seed"] == answer["found"][0]["seed"]
    assert shortest["violation"].startswith("two copies: ")
    assert "request" in [trouble["what"] for trouble in shortest["troubles"]]
    assert shortest["story"][-1]["who"] == "VIOLATION"
    seed = str(shortest["seed"])
    text = simulate_without_the_gate("--schedules", "1", "--seed", seed, *SMALL)
    assert f"\nseed {seed}: two copies: " in text
    assert f"\n  pp-hostd simulate --replay {seed} --nodes 3\n" in text
    story = simulate_without_the_gate("--replay", seed, "--nodes", "3")
    assert story.splitlines()[-1].endswith(answer["found"][0]["sentence"])


# One schedule.


def test_a_seed_has_one_story() -> None:
    first, second = simulate("--replay", "12", "--nodes", "5"), simulate("--replay", "12", "--nodes", "5")
    assert first.returncode == 0
    assert first.stdout == second.stdout
    assert "  node-1: boots\n" in first.stdout
    assert first.stdout.splitlines()[-1].endswith("; every promise held")


def test_a_seed_has_another_story_where_each_day_has_node_fences() -> None:
    story = simulate("--replay", "12", "--nodes", "5", "--fenced")
    assert story.returncode == 0
    assert "health checks; fenced by: " in story.stdout.splitlines()[0]


def test_a_story_as_json_has_its_troubles_and_its_events() -> None:
    answer = told("--replay", "12", "--nodes", "5")
    assert (answer["seed"], answer["violation"]) == (12, None)
    troubles = [event["what"] for event in answer["story"] if event["who"] == "TROUBLE"]
    assert len(troubles) == len(answer["troubles"]) + 1  # and then all is healed
    assert answer["story"][0] == {"at_seconds": 0.0, "who": "node-1", "what": "boots"}


# Days that have a name.


def test_an_unknown_day_is_answered_with_the_known_ones() -> None:
    complaint = refused("--day", "switch-outrage")
    assert "did you mean switch-outage?" in complaint
    assert f"There are: {', '.join(DAYS)}" in complaint


def test_the_days_are_listed_each_with_a_sentence() -> None:
    listed = told("--days")
    assert {each["day"]: each["about"] for each in listed} == {name: day.about for name, day in DAYS.items()}
    rows = simulate("--days").stdout.splitlines()
    assert [row.split()[0] for row in rows[1:] if not row.startswith(" ")] == list(DAYS)


def test_a_day_is_told_and_is_the_same_each_time() -> None:
    first, second = simulate("--day", "flapping-host"), simulate("--day", "flapping-host")
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout.startswith("flapping-host: one host's link goes down and up")
    assert "TROUBLE: cut off: node-5\n" in first.stdout
    assert first.stdout.splitlines()[-1].endswith("; every promise held")
    assert first.stdout == second.stdout


def test_a_day_without_its_rule_ends_in_the_promise_that_it_breaks() -> None:
    result = simulate("--day", "flapping-host", "--without-its-rule")
    assert (result.returncode, result.stderr) == (1, "")
    assert "Rule 11 is taken out: the committed record needs no wait\n" in result.stdout
    assert "VIOLATION: two copies: node-5" in result.stdout
    answer = json.loads(simulate("--day", "flapping-host", "--without-its-rule", "--json").stdout)
    assert answer["without"] == DAYS["flapping-host"].without.name
    assert answer["violation"].startswith("two copies: ")


# Mutants.


def test_each_mutant_is_hunted_and_one_that_escapes_is_a_failure() -> None:
    result = simulate("--mutants", "--schedules", "1", "--seed", "3", "--json", *SMALL)
    hunts = json.loads(result.stdout)
    assert [hunted["name"] for hunted in hunts] == [mutant.name for mutant in MUTANTS]
    assert result.returncode == 1
    for hunted in hunts:
        assert hunted["caught"] == (hunted["seed"] is not None) == (hunted["story"] is not None)
        assert hunted["schedules"] == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("--nodes", "1"),
        ("--schedules", "0"),
        ("--seed", "-1"),
        ("--jobs", "x"),
        ("--replay", "1", "--mutants"),
        ("--replay", "1", "--seed", "2"),
        ("--days", "--fenced"),
        ("--day", "split", "--schedules", "2"),
        ("--days", "--seed", "2"),
        ("--without-its-rule",),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: tuple[str, ...]) -> None:
    assert arguments[0].lstrip("-") in refused(*arguments)
