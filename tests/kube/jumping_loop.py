"""An event loop for tests of what takes minutes."""

from __future__ import annotations

import asyncio


class JumpingLoop(asyncio.SelectorEventLoop):
    """Its clock can be put forward."""

    jumped_seconds = 0.0

    def time(self) -> float:
        return super().time() + self.jumped_seconds
