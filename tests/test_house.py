"""The import contracts of pyproject.toml bite, also for layers that are not built yet."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package in which every contract holds, with the layers to come."""
    house = tmp_path_factory.mktemp("house")
    shutil.copytree(ROOT / "pp_hostd", house / "pp_hostd")
    shutil.copy(ROOT / "pyproject.toml", house)
    for room in ("agent", "leader", "leader/plan"):
        (house / "pp_hostd" / room).mkdir(exist_ok=True)
        (house / "pp_hostd" / room / "__init__.py").touch()
    assert contracts(house) == 0
    return house


@pytest.mark.parametrize(
    ("room", "line"),
    [
        ("model/intruder.py", "from pp_hostd import errors"),
        ("model/intruder.py", "import time"),
        ("agent/judge.py", "import asyncio"),
        ("agent/judge.py", "import logging"),
        ("agent/judge.py", "from pp_hostd.kube import outcome"),
        ("leader/plan/poison_pill.py", "import threading"),
        ("agent/daemon.py", "import pp_hostd.leader"),
        ("agent/daemon.py", "from pp_hostd.embedded import merge_patch"),
        ("cli.py", "from pp_hostd.sim import commands"),
        ("kube/intruder.py", "from pp_hostd import cli"),
        ("attic.py", ""),
    ],
)
def test_an_import_against_the_design_breaks_a_contract(room: str, line: str, house: Path) -> None:
    intruder = house / "pp_hostd" / room
    before = intruder.read_text() if intruder.exists() else None
    intruder.write_text(f"{before or ''}\n{line}\n")
    try:
        assert contracts(house) == 1
    finally:
        if before is None:
            intruder.unlink()
        else:
            intruder.write_text(before)
    assert contracts(house) == 0


def contracts(directory: Path) -> int:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    return subprocess.run(command, cwd=directory, env={"PYTHONPATH": str(directory)}, capture_output=True).returncode
