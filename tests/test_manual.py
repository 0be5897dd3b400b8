"""The man pages and the completion, made from the commands' parsers and the table of settings."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pp_hostd.cli import PLUGIN, PROGRAMS
from pp_hostd.config import SETTINGS
from pp_hostd.manual import commands, completion, main, page_of_program, page_of_settings
from pp_hostd.reference import toml_value
from tests.harness.eventually import HANGS_SECONDS


def read_as_roff_does(page: str) -> str:
    return page.replace("\\-", "-").replace("\\(aq", "'").replace("\\(dq", '"').replace("\\e", "\\")


@pytest.mark.parametrize("prog", PROGRAMS)
def test_the_page_of_a_program_tells_every_command_and_option(prog: str) -> None:
    page = read_as_roff_does(page_of_program(prog))
    for path, parser in list(commands(prog))[1:]:
        options = {option for action in parser._actions for option in action.option_strings}
        for option in options - {"-h", "--help"}:
            assert re.search(rf"^\.B (\S+, )?{option}\b", page, re.MULTILINE), (path, option)
        assert path in page


def test_the_page_of_the_settings_tells_each_with_default_range_and_consequence() -> None:
    page = read_as_roff_does(page_of_settings())
    for setting in SETTINGS.values():
        assert f'.BI {setting.name} " = {toml_value(setting.default)}"' in page
        assert setting.consequence in page
        assert f"{setting.allowed}." in page


def test_no_line_of_a_page_begins_with_what_roff_would_obey_by_mistake() -> None:
    for page in (*map(page_of_program, PROGRAMS), page_of_settings()):
        requests = {line.split()[0] for line in page.splitlines() if line[:1] in (".", "'")}
        assert requests <= {".TH", ".SH", ".SS", ".PP", ".TP", ".B", ".BI", ".BR", ".I", ".IR"}


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["unen"], ["unenroll"]),
        (["status", "--wa"], ["--watch"]),
        (["condemn", "worker-1", "--wa"], ["--wait"]),
        (["fence", "tes"], ["test"]),
        (["unheard", "-o", "zz"], []),
        (["ru"], []),
    ],
)
def test_kubectl_completes_what_follows_the_plugin(typed: list[str], offered: list[str]) -> None:
    """As its completion runs the program: the last argument is what was begun, the last line tells the shell that
    files may follow."""
    program = Path(sys.executable).with_name("kubectl_complete-pp")
    done = subprocess.run([program, *typed], stdout=subprocess.PIPE, text=True, check=True, timeout=HANGS_SECONDS)
    assert done.stdout.splitlines() == [*offered, ":0"]


def test_the_plugin_speaks_as_a_person_types_it_and_runs_no_daemon() -> None:
    program = Path(sys.executable).with_name("kubectl-pp")
    said = subprocess.run([program, "status", "--help"], stdout=subprocess.PIPE, text=True, check=True)
    assert said.stdout.startswith("usage: kubectl pp status [-h]")
    names = {path.split()[2] for path, _ in list(commands(PLUGIN))[1:]}
    of_leader = {path.split()[1] for path, _ in list(commands("pp-leader"))[1:]}
    assert names == of_leader - {"run", "fence-helper", "check-config"}


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["pp-hostd", "ga"], ["gate"]),
        (["pp-hostd", "gate", "op"], ["open"]),
        (["pp-hostd", "gate", "open", "--i"], ["--i-know"]),
        (["pp-hostd", "check-config", "--config", "/etc/x", "--js"], ["--json"]),
        (["pp-leader", "unen"], ["unenroll"]),
        (["pp-leader", "rotate-key", "ne"], ["next"]),
        (["pp-leader", "status", "--wa"], ["--watch"]),
    ],
)
def test_the_shell_completes_what_was_begun(typed: list[str], offered: list[str], tmp_path: Path) -> None:
    script = tmp_path / "completion"
    script.write_text(completion(typed[0]))
    name = typed[0].replace("-", "_")
    words = " ".join(f"'{word}'" for word in typed)
    asked = (
        f'. {script}; COMP_WORDS=({words}); COMP_CWORD={len(typed) - 1}; _{name}; printf "%s\\n" "${{COMPREPLY[@]}}"'
    )
    done = subprocess.run(["bash", "-euc", asked], stdout=subprocess.PIPE, text=True, timeout=HANGS_SECONDS, check=True)
    assert done.stdout.split() == offered


def test_all_of_it_is_written_into_one_directory(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pp_hostd.manual", str(tmp_path / "manual")]
    subprocess.run(command, check=True, timeout=HANGS_SECONDS, env={**os.environ, "COLUMNS": "20"})
    names = {"pp-hostd.8", "pp-leader.8", "kubectl-pp.8", "pp-hostd.toml.5", "pp-hostd.bash", "pp-leader.bash"}
    assert {path.name for path in (tmp_path / "manual").iterdir()} == names
    main(str(tmp_path / "again"))
    for name in names:  # however wide the terminal is
        assert (tmp_path / "manual" / name).read_text() == (tmp_path / "again" / name).read_text()
