"""Keeping a listener up: tried until it listens, and closed once it is no longer wanted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Callable

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
