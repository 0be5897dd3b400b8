"""Waiting for a guest: seldom, since each question costs an emulated machine a part of its only processor."""

from __future__ import annotations

from typing import Callable, TypeVar

from tests.harness import eventually as harness

Found = TypeVar("Found")
EVERY_SECONDS = 0.3


def eventually(check: Callable[[], Found], what: str, within_seconds: float = 30) -> Found:
    """As the harness does it."""
    return harness.eventually(check, what, within_seconds, EVERY_SECONDS)
