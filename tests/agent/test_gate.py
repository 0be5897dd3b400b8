"""The gate's files: what the daemon may say about this boot, whatever holder, daemon or a stranger left there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pp_hostd.agent.act.gate import GateFiles
from pp_hostd.model.boot_commitments import Gate
from tests.agent.values import BOOT

HOLDER = "import sys; from pp_hostd.agent.act.gate import GateFiles; print(GateFiles(sys.argv[1]).hold(sys.argv[2]))"


@pytest.fixture
def gate(tmp_path: Path) -> GateFiles:
    return GateFiles(str(tmp_path))


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds, until its input ends."""
    code = f"{HOLDER}; sys.stdout.flush(); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path), BOOT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "\n"
        yield process


def gone(holder: subprocess.Popen[str]) -> None:
    holder.communicate()


def state(gate: GateFiles, boot: str = BOOT) -> Gate:
    return gate.state(boot)[0]


def test_without_a_holder_there_is_no_gate(gate: GateFiles) -> None:
    assert gate.state(BOOT) == (Gate.ABSENT, ())


def test_who_relies_on_the_taint_says_so_for_this_boot(gate: GateFiles) -> None:
    assert gate.hold_by_taint(BOOT) == ""
    assert gate.state(BOOT) == (Gate.CLOSED, ())
    assert state(gate, boot="another-boot") is Gate.ABSENT


def test_who_was_held_stays_held_when_the_holder_is_gone(gate: GateFiles, holder: subprocess.Popen[str]) -> None:
    assert state(gate) is Gate.CLOSED
    gone(holder)
    assert state(gate) is Gate.CLOSED
    assert not gate.is_open(BOOT)


def test_what_is_open_stays_open_in_this_boot(gate: GateFiles) -> None:
    gate.hold(BOOT)
    assert gate.open(BOOT, "its promise is stored") == ""
    gate.hold(BOOT)
    assert gate.is_open(BOOT)
    assert gate.state(BOOT) == (Gate.OPEN, ())


def test_another_boot_opened_nothing_and_held_nothing(gate: GateFiles, holder: subprocess.Popen[str]) -> None:
    gate.open(BOOT, "its promise is stored")
    gone(holder)
    assert not gate.is_open("another-boot")
    assert state(gate, boot="another-boot") is Gate.ABSENT


@pytest.mark.parametrize(
    "damage",
    [b"", b"open", b'{"v":2}', b'{"v":1}', b"\xff" * 100_000],
    ids=["nothing", "a word", "another version", "no boot", "far too much"],
)
def test_damage_never_opens_a_gate_that_is_held(
    gate: GateFiles, holder: subprocess.Popen[str], tmp_path: Path, damage: bytes
) -> None:
    assert holder.poll() is None
    for name in ("gate-open", "gate-held"):
        (tmp_path / name).write_bytes(damage)
    assert not gate.is_open(BOOT)
    (tmp_path / "gate-open").write_bytes(damage)
    found, troubles = gate.state(BOOT)
    assert found is Gate.CLOSED
    assert [os.path.basename(trouble.split(":")[0]) for trouble in troubles] == ["gate-open", "gate-held"]
    assert gate.state(BOOT) == (Gate.CLOSED, ())


def test_nobody_says_closed_when_it_may_have_been_open(
    gate: GateFiles, holder: subprocess.Popen[str], tmp_path: Path
) -> None:
    gate.open(BOOT, "its promise is stored")
    gone(holder)
    (tmp_path / "gate-open").write_bytes(b"damage")
    assert state(gate) is Gate.ABSENT
    assert state(gate) is Gate.ABSENT
    gate.open(BOOT, "its promise is stored")
    assert state(gate) is Gate.OPEN


def test_trouble_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    gate = GateFiles(str(tmp_path / "file"))
    assert "can't be written" in gate.open(BOOT, "")
    assert "can't be locked" in gate.hold(BOOT)
    assert state(gate) is Gate.ABSENT
