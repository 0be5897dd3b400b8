"""Watchdogs for tests that run isolated: served by tests.harness.fuse_watchdog, with what they recorded."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.harness.eventually import eventually


@dataclass(frozen=True)
class Watchdogs:
    directory: Path
    record: Path

    def path(self, name: str = "watchdog") -> str:
        return str(self.directory / name)

    def events(self, name: str = "watchdog") -> list[dict[str, Any]]:
        """Returns the recorded events of one device, in order."""
        return [event for event in map(json.loads, lines(self.record)) if event["device"] == name]

    def names(self, name: str = "watchdog") -> list[str]:
        return [event["event"] for event in self.events(name)]

    def await_event(self, event: str, name: str = "watchdog") -> None:
        eventually(lambda: event in self.names(name), f"{name} has recorded {event}", within_seconds=10)


def lines(record: Path) -> list[str]:
    return record.read_text().splitlines() if record.exists() else []


@contextlib.contextmanager
def watchdogs(directory: Path, devices: dict[str, Any] | None = None, when_fired: str = "") -> Iterator[Watchdogs]:
    """`devices`: by name, how each differs from the good watchdog (tests.harness.watchdog_device.Behaviour)."""
    served = Watchdogs(directory / "watchdogs", directory / "record")
    served.directory.mkdir()
    behaviours = json.dumps(devices or {"watchdog": {}})
    program = [sys.executable, "-m", "tests.harness.fuse_watchdog"]
    arguments = [str(served.directory), str(served.record), behaviours, when_fired]
    with subprocess.Popen([*program, *arguments], stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == b"ready\n"
            yield served
        finally:
            server.kill()
