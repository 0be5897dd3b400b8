"""Event loops for tests of what takes minutes, or no time at all."""

from __future__ import annotations

import asyncio


class JumpingLoop(asyncio.SelectorEventLoop):
    """Its clock can be put forward."""

    jumped_seconds = 0.0

    def time(self) -> float:
        return super().time() + self.jumped_seconds


class StandingLoop(asyncio.SelectorEventLoop):
    """Its clock stands still until it is put forward."""

    now = 1000.0

    def time(self) -> float:
        return self.now
