"""Keeping a listener up until it is no longer wanted, and ending tasks that would go on for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import Any, Callable

from pp_hostd.errors import UserError

AGAIN_SECONDS = 5.0


async def serve(
    what: str,
    listen: Callable[[], Awaitable[object]],
    close: Callable[[], Awaitable[None]],
    complain: Callable[[str], None],
) -> None:
    """Until cancelled. A port that is taken must not keep a host from feeding its watchdog, so it is tried again."""
    while True:
        try:
            await listen()
            break
        except (OSError, UserError) as error:
            complain(f"{what}: {error}; it is tried again")
        await asyncio.sleep(AGAIN_SECONDS)
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        await close()


CANCEL_AGAIN_SECONDS = 1.0


async def end(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel them until all have ended: before Python 3.11 a deadline may take a cancellation for its own."""
    ending = tuple(tasks)
    pending = set(ending)
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=CANCEL_AGAIN_SECONDS)
    await asyncio.gather(*ending, return_exceptions=True)  # or asyncio would complain that nobody asked
