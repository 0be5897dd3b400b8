"""Waiting for what another process will do: poll until it holds, with a deadline."""

from __future__ import annotations

import time
from typing import Callable, TypeVar

Found = TypeVar("Found")


def eventually(check: Callable[[], Found], what: str, within_seconds: float = 30, every_seconds: float = 0.02) -> Found:
    """The first true answer of `check`; a TimeoutError naming `what` was awaited, if none comes in time."""
    deadline = time.monotonic() + within_seconds
    while True:
        found = check()
        if found:
            return found
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {within_seconds:g} s in vain until {what}; the last answer was {found!r}")
        time.sleep(every_seconds)
