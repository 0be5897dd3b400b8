"""kubectl for the commands that pages of docs/ tell people to run."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.harness.build import binaries
from tests.harness.eventually import HANGS_SECONDS
from tests.leader.access.attempts import World


def kubectl(world: World, *arguments: str, given: str = "", directory: Path | None = None) -> str:
    command = [str(binaries() / "kubectl"), "--kubeconfig", str(world.cluster.kubeconfig()), *arguments]
    done = subprocess.run(
        command, input=given, capture_output=True, text=True, timeout=HANGS_SECONDS, check=False, cwd=directory
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout
