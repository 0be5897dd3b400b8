"""Waiting for what somebody else does to the cluster, for a bounded time, and not in silence."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Callable, TypeVar

from pp_hostd.service.output import complain

INTERVAL_SECONDS = 0.5
PATIENCE_SECONDS = 1.0
"""So long nobody wonders why nothing happens."""
Found = TypeVar("Found")


class Overdue(Exception):
    """The time is over. No kind of OSError, which libraries would take for one of their own."""


@contextmanager
def at_most(wait_seconds: float, what: str) -> Iterator[None]:
    """Raise Overdue in what is done here once that time is over, whatever it hangs in. If `what` is empty, no
    line says so meanwhile."""

    def ring(*_: object) -> None:
        if isinstance(sys.exc_info()[1], KeyboardInterrupt):
            return  # a person has ended it already
        if time.clock_gettime(time.CLOCK_BOOTTIME) >= ends_at:
            raise Overdue
        tell_waiting(what, wait_seconds)
        signal.setitimer(signal.ITIMER_REAL, wait_seconds - PATIENCE_SECONDS, INTERVAL_SECONDS)

    ends_at = time.clock_gettime(time.CLOCK_BOOTTIME) + wait_seconds
    before = signal.signal(signal.SIGALRM, ring)
    timer = signal.setitimer(signal.ITIMER_REAL, min(PATIENCE_SECONDS, wait_seconds))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, *timer)


def awaited(look: Callable[[], Found], wait_seconds: float, what: str) -> Found:
    """The first look that finds something; after that time, whatever the last one finds."""
    began_at = time.clock_gettime(time.CLOCK_BOOTTIME)
    told = False
    while True:
        found, waited_seconds = look(), time.clock_gettime(time.CLOCK_BOOTTIME) - began_at
        if found or waited_seconds >= wait_seconds:
            return found
        if waited_seconds >= PATIENCE_SECONDS and not told:
            tell_waiting(what, wait_seconds)
            told = True
        time.sleep(INTERVAL_SECONDS)


def tell_waiting(what: str, wait_seconds: float) -> None:
    """Tells a person at a terminal about the wait; a log needs no line about a wait that is not over."""
    if what and sys.stderr and sys.stderr.isatty():
        complain(f"Waiting for {what}, at most {wait_seconds:g} s ...")
