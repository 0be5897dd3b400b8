"""Waiting for what somebody else does to the cluster, for a bounded time."""

from __future__ import annotations

import time
from typing import Callable, TypeVar

INTERVAL_SECONDS = 0.5
Found = TypeVar("Found")


def awaited(look: Callable[[], Found], wait_seconds: float) -> Found:
    """The first look that finds something; after that time, whatever the last one finds."""
    ends_at = time.clock_gettime(time.CLOCK_BOOTTIME) + wait_seconds
    while True:
        found = look()
        if found or time.clock_gettime(time.CLOCK_BOOTTIME) >= ends_at:
            return found
        time.sleep(INTERVAL_SECONDS)
