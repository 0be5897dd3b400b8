"""Waiting for what another process will do: poll until it holds, with a deadline."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import Callable, TypeVar

Found = TypeVar("Found")
HANGS_SECONDS = 300.0
"""A program or a server that takes so long hangs: on a machine that moves, it takes seconds."""
MOST_FOLD = 4
"""A machine that stands still makes a deadline longer, at most so many times."""


def eventually(check: Callable[[], Found], what: str, within_seconds: float = 30, every_seconds: float = 0.02) -> Found:
    """The first true answer of `check`; a TimeoutError naming `what` was awaited, if none comes in time. Time in which
    processes wait for a processor does not count."""
    began_at, stalled_before = time.monotonic(), stalled_seconds()
    while True:
        found = check()
        if found:
            return found
        elapsed = time.monotonic() - began_at
        if elapsed > within_seconds and counted(elapsed, stalled_seconds() - stalled_before) > within_seconds:
            waited = f"waited {within_seconds:g} s in vain until {what} ({elapsed:.1f} s with what the machine lost)"
            raise TimeoutError(f"{waited}; the last answer was {found!r}")
        time.sleep(every_seconds)


def counted(elapsed: float, stalled: float) -> float:
    """How much of this time counts against a deadline."""
    return max(elapsed - stalled, elapsed / MOST_FOLD)


def stalled_seconds(proc: Path = Path("/proc")) -> float:
    """So long, since it booted, some process of this machine waited for a processor: for another process, or for
    another machine."""
    seconds = 0.0
    with contextlib.suppress(OSError):  # a kernel without pressure figures
        some = (proc / "pressure/cpu").read_text().splitlines()[0]
        seconds += int(some.rpartition("total=")[2]) / 1e6
    stolen = int((proc / "stat").read_text().splitlines()[0].split()[8])
    return seconds + stolen / os.sysconf("SC_CLK_TCK") / (os.cpu_count() or 1)
