"""A total deadline around a piece of work: whatever it awaits, it ends in time."""

from __future__ import annotations

import asyncio
import sys
from types import TracebackType
from typing import Any, cast


class TimedOut(Exception):
    """The deadline passed before the work was done."""


class Deadline:
    """`with Deadline(seconds):` cancels what its body awaits when the time is up, and raises TimedOut.

    Unlike asyncio.wait_for it starts no task and behaves alike on every Python from 3.9 on. Before Python 3.11 a
    cancellation from outside that arrives in the very same turn of the loop as the deadline is reported as TimedOut.
    """

    def __init__(self, seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._at = self._loop.time() + max(0.0, seconds)
        self._expired = False

    def remaining_seconds(self) -> float:
        """How much time is left; never negative."""
        return max(0.0, self._at - self._loop.time())

    def __enter__(self) -> Deadline:
        self._task: Any = cast("Any", asyncio.current_task())  # uncancel() and cancelling() came with Python 3.11
        self._cancelled_before = self._task.cancelling() if sys.version_info >= (3, 11) else 0
        self._timer = self._loop.call_at(self._at, self._expire)
        return self

    def _expire(self) -> None:
        self._expired = True
        self._task.cancel()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        if not self._expired:
            return
        if sys.version_info >= (3, 11) and self._task.uncancel() > self._cancelled_before:
            return  # somebody else cancelled this task too, and that must not be lost
        raise TimedOut from error
