"""How far a long run is: a line on a terminal, overwritten again and again."""

from __future__ import annotations

import sys
import time

SHOW_SECONDS = 0.5


class Every:
    """Due once in so many seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._next_at = seconds, time.monotonic() + seconds

    def due(self) -> bool:
        now = time.monotonic()
        if now < self._next_at:
            return False
        self._next_at = now + self._seconds
        return True


class Progress:
    """Shown to a person at a terminal, and to nobody else."""

    def __init__(self) -> None:
        self._shown = bool(sys.stderr and sys.stderr.isatty())
        self._every = Every(SHOW_SECONDS)
        self._began_at = time.monotonic()

    @property
    def seconds(self) -> float:
        return max(time.monotonic() - self._began_at, 1e-6)

    def show(self, text: str, *, at_once: bool = False) -> None:
        if self._shown and (at_once or self._every.due()):
            self._write(text)

    def clear(self) -> None:
        if self._shown:
            self._write("")

    def _write(self, text: str) -> None:
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()
