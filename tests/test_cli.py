"""The commands as a person runs them: what they print, where, and with which exit code."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pp_hostd import __version__
from pp_hostd.config import SETTINGS
from tests.harness.eventually import HANGS_SECONDS

BIN = Path(sys.executable).parent
F_SETPIPE_SZ = 1031  # which fcntl names from Python 3.10 on
COMMANDS = ["pp-hostd", "pp-leader"]


ENVIRONMENT = {"PATH": os.environ["PATH"], "LC_ALL": "C", "COLUMNS": "100"}


def run(command: str, *arguments: str, stdout: int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BIN / command, *arguments],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=HANGS_SECONDS,
        env=ENVIRONMENT,
        check=False,
    )


@pytest.fixture
def good(tmp_path: Path) -> str:
    path = tmp_path / "pp-hostd.toml"
    path.write_text("[api]\nread_interval_seconds = 3.7\nretry_seconds = 1.1\n[leader]\nsafe_time_seconds = 60\n")
    return str(path)


@pytest.fixture
def bad(tmp_path: Path) -> str:
    path = tmp_path / "pp-hostd.toml"
    path.write_text("[api]\nretry = 1\n\n[peers]\nrounds = 0\n")
    return str(path)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_lists_the_commands(command: str) -> None:
    result = run(command, "--help")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith(f"usage: {command} ")
    assert "check-config" in result.stdout


OF_THE_AGENT = [
    ["run"],
    ["status"],
    ["explain"],
    ["history"],
    ["ask"],
    ["query-watchdog"],
    ["gate"],
    ["gate", "status"],
    ["gate", "open"],
    ["gate", "hold"],
    ["maintenance"],
    ["maintenance", "on"],
    ["maintenance", "off"],
    ["maintenance", "status"],
    ["doctor"],
    ["test-reset"],
    ["simulate"],
]


@pytest.mark.parametrize("arguments", OF_THE_AGENT, ids=" ".join)
def test_each_command_of_the_agent_says_what_it_does(arguments: list[str]) -> None:
    assert_helpful("pp-hostd", arguments)


OF_THE_LEADER = [
    ["run"],
    ["fence-helper"],
    ["install"],
    ["uninstall"],
    ["enroll"],
    ["unenroll"],
    ["rotate-key"],
    ["status"],
    ["explain"],
    ["history"],
    ["timeline"],
    ["condemn"],
    ["absolve"],
    ["confirm-dead"],
    ["restore"],
    ["pause"],
    ["resume"],
]


@pytest.mark.parametrize("arguments", OF_THE_LEADER, ids=" ".join)
def test_each_command_of_the_leader_says_what_it_does(arguments: list[str]) -> None:
    assert_helpful("pp-leader", arguments)


def assert_helpful(program: str, arguments: list[str]) -> None:
    result = run(program, *arguments, "--help")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith(f"usage: {program} {' '.join(arguments)} ")
    assert len(result.stdout.split("\n\n")[1]) > 20


@pytest.mark.parametrize(("program", "foreign"), [("pp-hostd", "condemn"), ("pp-leader", "gate")])
def test_neither_program_has_the_other_ones_commands(program: str, foreign: str) -> None:
    assert run(program, foreign, "--help").returncode == 2


def test_run_refuses_a_bad_configuration_like_check_config(bad: str) -> None:
    result = run("pp-hostd", "run", "--config", bad)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("pp-hostd: the configuration can't be used\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_version_is_told_with_the_name(command: str) -> None:
    assert run(command, "--version").stdout == f"{command} {__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    "arguments", [[], ["frob"], ["--frob"], ["check-config", "--frob"], ["check-config", "--config"]]
)
def test_a_mistyped_command_is_answered_with_help(command: str, arguments: list[str]) -> None:
    result = run(command, *arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(f"usage: {command} ")
    assert "  -h, --help " in result.stderr
    assert result.stderr.splitlines()[-1].startswith(command)


def test_help_of_check_config_lists_every_setting_with_its_default_and_range() -> None:
    lines = run("pp-hostd", "check-config", "--help").stdout.splitlines()
    for setting in SETTINGS.values():
        assert any(line.startswith(f"  {setting.name} = ") and str(setting.allowed) in line for line in lines)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_good_configuration_is_answered_with_its_files_and_its_timeline(command: str, good: str) -> None:
    result = run(command, "check-config", "--config", good)
    assert (result.returncode, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[:2] == ["No error in", f"  {good}"]
    assert "      42  dead at the latest, even if a stall let it feed once more" in lines
    assert any(line.startswith("      60  the leader may act") for line in lines)
    assert "no proof gets older than 19.9 s, and a host gives up at 22 s" in lines[-1]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_bad_configuration_is_answered_with_every_error_on_stderr(command: str, bad: str) -> None:
    result = run(command, "check-config", "--config", bad)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(f"{command}: the configuration can't be used\n\n{bad}\n  line 2    api.retry = 1\n")
    assert "  line 5    peers.rounds = 0\n" in result.stderr
    assert "\n2 errors in 1 file.\n" in result.stderr


def test_without_config_the_file_in_etc_is_meant() -> None:
    result = run("pp-hostd", "check-config")
    assert "/etc/pp-hostd/pp-hostd.toml" in result.stdout + result.stderr


def test_json_tells_the_timeline_of_a_good_configuration(good: str) -> None:
    result = run("pp-hostd", "check-config", "--json", "--config", good)
    answer = json.loads(result.stdout)
    assert (result.returncode, result.stderr) == (0, "")
    assert (answer["ok"], answer["files"]) == (True, [good])
    assert [row["seconds"] for row in answer["timeline"]] == [0, 3.7, 5.7, 11.9, 19.9, 22, 32, 42, 60]
    assert answer["timeline"][-1]["event"].startswith("the leader may act")
    assert answer["outage"].startswith("nobody is reset")


def test_json_tells_the_errors_of_a_bad_one_on_stdout_too(bad: str) -> None:
    result = run("pp-hostd", "check-config", "--json", "--config", bad)
    assert (result.returncode, result.stderr) == (2, "")
    assert json.loads(result.stdout) == {
        "ok": False,
        "errors": [
            {
                "file": bad,
                "line": 2,
                "key": "api.retry",
                "found": "1",
                "allowed": "",
                "nearest": "api.retry_seconds",
                "message": "is not a known setting; did you mean api.retry_seconds?",
            },
            {
                "file": bad,
                "line": 5,
                "key": "peers.rounds",
                "found": "0",
                "allowed": "a whole number from 1 to 20 (rounds)",
                "nearest": "",
                "message": "must be a whole number from 1 to 20 (rounds)",
            },
        ],
    }


@pytest.mark.parametrize("options", [[], ["--json"]])
@pytest.mark.parametrize("text", ["", "x = 1"])
def test_a_file_whose_name_is_no_text_can_be_told_on_any_terminal(
    tmp_path: Path, options: list[str], text: str
) -> None:
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "pp-hostd.toml").write_text("")
    Path(os.fsdecode(bytes(tmp_path) + b"/conf.d/\xff\xc3\xa4.toml")).write_text(text)
    result = run("pp-hostd", "check-config", "--config", str(tmp_path / "pp-hostd.toml"), *options)
    assert result.returncode == (2 if text else 0)
    assert "Traceback" not in result.stderr


def test_a_reader_that_goes_away_is_no_reason_to_complain(good: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        result = run("pp-hostd", "check-config", "--config", good, stdout=writer)
    finally:
        os.close(writer)
    assert (result.returncode, result.stderr) == (141, "")


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["check-config", "--help"]])
def test_a_full_disk_is_told_in_one_line(arguments: list[str]) -> None:
    with open("/dev/full", "w") as full:
        result = run("pp-hostd", *arguments, stdout=full.fileno())
    assert result.returncode == 1
    assert result.stderr == "pp-hostd: the output can't be written: No space left on device\n"


def test_a_closed_output_is_no_failure(good: str) -> None:
    script = f"exec {BIN}/pp-hostd check-config --config {good} >&-"
    result = subprocess.run(["sh", "-c", script], stderr=subprocess.PIPE, timeout=HANGS_SECONDS, check=False)
    assert (result.returncode, result.stderr) == (0, b"")


def test_an_interrupted_command_ends_at_once_and_quietly(good: str) -> None:
    """More output than the pipe holds keeps the command waiting, which the first byte tells; then comes Ctrl-C."""
    drop_ins = Path(good).parent / "conf.d"
    drop_ins.mkdir()
    for number in range(150):
        (drop_ins / f"{number:0100}.toml").touch()
    reader, writer = os.pipe()
    fcntl.fcntl(writer, F_SETPIPE_SZ, 4096)
    with subprocess.Popen(
        [BIN / "pp-hostd", "check-config", "--config", good], stdout=writer, stderr=subprocess.PIPE
    ) as process:
        os.close(writer)
        assert os.read(reader, 1)
        process.send_signal(signal.SIGINT)
        _, complaint = process.communicate(timeout=HANGS_SECONDS)
    os.close(reader)
    assert (process.returncode, complaint) == (130, b"")


def test_help_imports_nothing_heavy() -> None:
    code = "import sys; from pp_hostd.cli import agent; sys.argv[1:] = ['--help']; agent(); print(*sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=HANGS_SECONDS, check=True
    )
    loaded = set(result.stdout.splitlines()[-1].split())
    assert "argparse" in loaded
    assert not loaded & {
        "asyncio",
        "ssl",
        "socket",
        "dataclasses",
        "json",
        "tomllib",
        "tomli",
        "yaml",
        "h11",
        "difflib",
    }
