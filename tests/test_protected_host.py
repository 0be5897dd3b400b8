"""The programs as the package pp-hostd installs them: in a directory of their own, without what pp-hostd-admin adds."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pp_hostd
from tests.harness.eventually import HANGS_SECONDS

MISSING = "pp-hostd: the simulator is not installed on this host\n  Install the package pp-hostd-admin.\n"
LIBRARIES = ("h11", "yaml", *(("tomli",) if sys.version_info < (3, 11) else ()))
ONLY_ADMIN = ("sim", "embedded")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """/usr/share/pp-hostd of a protected host, with the libraries inside."""
    home = tmp_path_factory.mktemp("home")
    left_out = shutil.ignore_patterns(*ONLY_ADMIN, "__pycache__")
    shutil.copytree(Path(pp_hostd.__file__).parent, home / "pp_hostd", ignore=left_out)
    for name in LIBRARIES:
        (home / name).symlink_to(Path(__import__(name).__file__ or "").parent)
    return home


def run(home: Path, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Without site-packages, where the development tree is found."""
    bare = os.path.realpath(sys.executable)  # of which the virtual environment is made
    command = [bare, "-I", "-S", "-c", f"import sys; sys.path.append({str(home)!r}); {program}", *arguments]
    environment = {**os.environ, "COLUMNS": "200"}
    return subprocess.run(command, capture_output=True, text=True, timeout=HANGS_SECONDS, cwd=home, env=environment)


def command(home: Path, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run(home, f"from pp_hostd.cli import {name}; sys.exit({name}())", *arguments)


def test_programs_that_the_daemons_start_find_the_modules_and_libraries_there(home: Path) -> None:
    said = run(home, "from pp_hostd.kube.kubeconfig import parse_yaml; print(parse_yaml(b'a: [1, 2]'))")
    assert (said.returncode, said.stdout) == (0, "{'a': [1, 2]}\n"), said.stderr


@pytest.mark.parametrize("arguments", [[], ["--days"], ["--day", "power-off", "--json"], ["--mutants"]])
def test_simulate_names_the_package_that_provides_it(home: Path, arguments: list[str]) -> None:
    said = command(home, "agent", "simulate", *arguments)
    assert (said.returncode, said.stdout, said.stderr) == (2, "", MISSING)


def test_directories_that_a_removed_package_left_behind_are_no_simulator(home: Path) -> None:
    (home / "pp_hostd/sim/commands/__pycache__").mkdir(parents=True)
    try:
        assert command(home, "agent", "simulate", "--days").stderr == MISSING
    finally:
        shutil.rmtree(home / "pp_hostd/sim")


@pytest.mark.parametrize("arguments", [["--help"], ["simulate", "--help"]])
def test_help_says_which_package_simulate_needs(home: Path, arguments: list[str]) -> None:
    said = command(home, "agent", *arguments)
    assert (said.returncode, said.stderr) == (0, "")
    assert "pp-hostd-admin" in said.stdout


@pytest.mark.parametrize("name", ["agent", "leader"])
def test_the_daemons_load(home: Path, name: str) -> None:
    """A daemon whose modules have all been loaded looks for its settings next."""
    said = command(home, name, "run", "--config", str(home / "absent.toml"))
    assert said.returncode == 2
    assert "absent.toml" in said.stderr
    assert "Traceback" not in said.stderr
