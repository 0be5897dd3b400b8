"""A helper behind its socket, and the directory in which it looks for agents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fencing.helpers import Agents, Helpers


@pytest.fixture
def agents(tmp_path: Path) -> Agents:
    return Agents(tmp_path)


@pytest.fixture
def helpers(tmp_path: Path, agents: Agents) -> Iterator[Helpers]:
    with Helpers.listening(tmp_path / "sock", agents.directory) as helpers:
        yield helpers
