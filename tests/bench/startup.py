"""The cost of a command before it does anything."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.bench.figure import Figure

RUNS = 7


def help_cpu() -> Iterator[Figure]:
    """CPU of `pp-hostd --help`, the interpreter's own start included."""
    command = [str(Path(sys.executable).with_name("pp-hostd")), "--help"]
    yield Figure(
        "pp-hostd --help, CPU", 1000 * statistics.median(_cpu(command) for _ in range(RUNS)), "ms", at_most=150
    )


def _cpu(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
