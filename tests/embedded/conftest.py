"""A store under virtual time for every test that asks."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import settings

from pp_hostd.embedded.store import Store

EXAMPLES = settings(deadline=None)
"""For properties, which say what happens and not how fast."""

START_WALLCLOCK = 1_700_000_000.0


class VirtualTime:
    """A wall clock that stands still until it is told to go on."""

    def __init__(self) -> None:
        self.now = START_WALLCLOCK

    def __call__(self) -> float:
        return self.now


def new_store(clock: VirtualTime, **limits: int) -> Store:
    """A store whose uids count from 1."""
    numbers = itertools.count(1)
    return Store(clock, lambda: f"00000000-0000-0000-0000-{next(numbers):012}", **limits)


@pytest.fixture
def clock() -> VirtualTime:
    return VirtualTime()


@pytest.fixture
def store(clock: VirtualTime) -> Store:
    return new_store(clock)


def config_map(name: str, data: dict[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    """The smallest object there is."""
    return {"metadata": {"name": name, **metadata}, "data": data or {}}
