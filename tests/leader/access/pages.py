"""Pages of docs/ as tests read them: their indented blocks, their tables, and kubectl for the commands there."""

from __future__ import annotations

import itertools
import re
import subprocess
import textwrap
from pathlib import Path

from tests.harness.build import binaries
from tests.harness.eventually import HANGS_SECONDS
from tests.leader.access.attempts import World


def blocks(page: str) -> list[str]:
    """The indented blocks of the page."""
    grouped = itertools.groupby(page.splitlines(), key=lambda line: line.startswith("    "))
    return [textwrap.dedent("\n".join(block)) for indented, block in grouped if indented]


def rows(page: str, after: str) -> list[list[str]]:
    """The rows of the first table at or after this text, its head among them."""
    rest = page[page.index(after) :]
    lines = rest[rest.index("|") :].split("\n\n")[0].splitlines()
    return [[cell.strip().strip("`") for cell in re.split(r"\|", line)[1:-1]] for line in lines if "---" not in line]


def kubectl(world: World, *arguments: str, given: str = "", directory: Path | None = None) -> str:
    command = [str(binaries() / "kubectl"), "--kubeconfig", str(world.cluster.kubeconfig()), *arguments]
    done = subprocess.run(
        command, input=given, capture_output=True, text=True, timeout=HANGS_SECONDS, check=False, cwd=directory
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout
