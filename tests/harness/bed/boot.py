"""Everything that a host starts with, as the test hands it to the process that boots it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Boot:
    """One boot of one host; JSON holds it."""

    name: str
    number: int
    directory: str
    count: int
    boot_id: str
    neighbours: dict[str, str]
    lost: list[str]
    agent: list[str]
    gate: list[str]
    """The command that ends with 0 once the kubelet may start; empty for a host without one."""
    kubelet: list[str]
    """Empty for a stand-in that ticks."""
    run_bytes: int
    """The size of /run."""
    watchdog: dict[str, Any] = field(default_factory=dict)
    """Fields of `Behaviour`, where they differ from its defaults."""
