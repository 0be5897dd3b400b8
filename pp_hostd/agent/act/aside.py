"""Writing to a disk, by a child: one that hangs holds up the child, and no judgement (rule 2)."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Callable, NoReturn

PATIENCE_SECONDS = 5.0
POLL_SECONDS = 0.02
MAX_SENTENCE_BYTES = 4096
"""As much as a pipe takes at once, so the child need not be read before it ends."""
_given_up: list[int] = []
"""Children that were killed and could not die yet; the next call buries those that have since."""


async def aside(write: Callable[[], str]) -> str:
    """Have it written; the sentence says why that failed."""
    _given_up[:] = [child for child in _given_up if _waited(child) is None]
    reader, writer = os.pipe()
    try:
        child = os.fork()
        if child == 0:
            _write(write, writer)
    finally:
        os.close(writer)
    try:
        status = await _status(child)
        if status is None:
            return f"the disk did not take it within {PATIENCE_SECONDS:g} s"
        return os.read(reader, MAX_SENTENCE_BYTES).decode() if status == 0 else f"the writer ended with status {status}"
    finally:
        os.close(reader)


def _write(write: Callable[[], str], writer: int) -> NoReturn:
    status = 1
    try:
        os.dup2(writer, 3)
        os.closerange(4, os.sysconf("SC_OPEN_MAX"))  # or, hung, it would keep the watchdog open
        os.write(3, write().encode()[:MAX_SENTENCE_BYTES])
        status = 0
    finally:
        os._exit(status)


async def _status(child: int) -> int | None:
    """How it ended; None if it had to be given up. It may be in no state to die, so nobody waits for that either."""
    for _ in range(int(PATIENCE_SECONDS / POLL_SECONDS)):
        status = _waited(child)
        if status is not None:
            return status
        await asyncio.sleep(POLL_SECONDS)
    os.kill(child, signal.SIGKILL)
    _given_up.append(child)
    return None


def _waited(child: int) -> int | None:
    ended, status = os.waitpid(child, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None
