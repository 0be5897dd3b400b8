"""Ending tasks that would go on for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

AGAIN_SECONDS = 1.0


async def end(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel them until all have ended: before Python 3.11 a deadline may take a cancellation for its own."""
    ending = tuple(tasks)
    pending = set(ending)
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=AGAIN_SECONDS)
    await asyncio.gather(*ending, return_exceptions=True)  # or asyncio would complain that nobody asked
