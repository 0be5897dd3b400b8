"""How many examples Hypothesis tries: as many as a test wants, and few in a quick run."""

from __future__ import annotations

from typing import Any

from hypothesis import settings

QUICK = 10


def tries(count: int, **more: Any) -> settings:
    """Settings for a property: so many examples, however long each of them takes."""
    quick = settings().max_examples <= QUICK
    return settings(deadline=None, max_examples=min(count, QUICK) if quick else count, **more)
