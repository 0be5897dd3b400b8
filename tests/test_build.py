"""Building the control plane: once for each content, whole or not at all. A small script plays Go."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.build import CONTROL_PLANE
from tests.harness.eventually import HANGS_SECONDS

REPOSITORY = Path(__file__).parents[1]
BUILD = (sys.executable, "-m", "tests.harness.build", "controlplane")
FAKE_GO = """#!/bin/sh
here=$(dirname "$0")
[ "$1" = version ] && { echo "go version go1.99.0 test/test"; exit; }
echo built >> "$here/builds"
[ -e "$here/gate" ] && read opened < "$here/gate"
[ -e "$here/broken" ] && { echo "main.go:7: undefined: everything"; exit 1; }
while [ "$1" != -o ]; do shift; done
echo program > "$2"
"""


class Workshop:
    """A cache of its own, and a `go` first in PATH that counts its builds, waits at a gate, or fails."""

    def __init__(self, directory: Path) -> None:
        self.cache = directory / "cache"
        self.go = directory / "bin" / "go"
        self.gate = self.go.with_name("gate")
        self.go.parent.mkdir()
        self.go.write_text(FAKE_GO)
        self.go.chmod(0o755)
        path = f"{self.go.parent}:{os.environ['PATH']}"
        self.environment = {**os.environ, "PATH": path, "PP_HOSTD_CACHE": str(self.cache), "PYTHONUNBUFFERED": "1"}

    def start(self, argv: tuple[str, ...] = BUILD) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen(argv, cwd=REPOSITORY, env=self.environment, stdout=pipe, stderr=pipe, text=True)

    def run(self, argv: tuple[str, ...] = BUILD) -> tuple[int, str, str]:
        with self.start(argv) as process:
            output, errors = process.communicate(timeout=HANGS_SECONDS)
        return process.returncode, output, errors

    def builds(self) -> int:
        return len(self.go.with_name("builds").read_text().splitlines())


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


def test_the_first_run_builds_and_tells_where(workshop: Workshop) -> None:
    status, output, errors = workshop.run()
    assert (status, errors) == (0, "")
    place = Path(output.partition("built, in ")[2].strip())
    assert place.parent == workshop.cache
    assert {(place / program).read_text() for program in CONTROL_PLANE.programs} == {"program\n"}


def test_the_second_run_builds_nothing(workshop: Workshop) -> None:
    assert workshop.run() == workshop.run()
    assert workshop.builds() == 1


def test_two_runs_at_once_build_once(workshop: Workshop) -> None:
    os.mkfifo(workshop.gate)
    with workshop.start() as first:
        with open(workshop.gate, "w") as gate, workshop.start() as second:  # opens when the first is at the gate
            assert second.stdout is not None
            assert "another run is building it" in second.stdout.readline()
            gate.write("open\n")
            gate.close()
            assert second.wait(timeout=HANGS_SECONDS) == 0
        assert first.wait(timeout=HANGS_SECONDS) == 0
    assert workshop.builds() == 1


def test_a_failed_build_shows_how_it_ended_and_the_next_run_tries_again(workshop: Workshop) -> None:
    broken = workshop.go.with_name("broken")
    broken.touch()
    status, _, errors = workshop.run()
    assert status == 1
    assert errors.endswith("main.go:7: undefined: everything\n")
    assert "Traceback" not in errors
    broken.unlink()
    assert workshop.run()[0] == 0


def test_a_build_killed_halfway_is_not_taken_for_built(workshop: Workshop) -> None:
    os.mkfifo(workshop.gate)
    with workshop.start() as killed:
        with open(workshop.gate, "w"):
            killed.kill()
            killed.wait()
        workshop.gate.unlink()
    assert workshop.run()[0] == 0
    assert workshop.builds() == 2


def test_without_a_build_the_harness_says_how_to_get_one(workshop: Workshop) -> None:
    status, _, errors = workshop.run((sys.executable, "-c", "from tests.harness.build import binaries; binaries()"))
    assert status == 1
    assert "the control plane is not built" in errors
    assert "run `make controlplane`" in errors
