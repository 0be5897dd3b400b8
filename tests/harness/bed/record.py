"""The events on a host, line by line in a file that outlives its boots: the host's processes write, the test reads."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

Event = dict[str, Any]
"""`at` (CLOCK_BOOTTIME), `boot` (the host's first is 1), `kind`, and what else there is to say."""


class Recorder:
    """Appends events; the file stays open, since /run may be full and the directory on its way out."""

    def __init__(self, path: Path, boot: int) -> None:
        self._boot = boot
        self.descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def __call__(self, kind: str, **details: Any) -> None:
        event = {"at": time.clock_gettime(time.CLOCK_BOOTTIME), "boot": self._boot, "kind": kind, **details}
        os.write(self.descriptor, json.dumps(event).encode() + b"\n")


class Record:
    """The near end: every event so far, each read once."""

    def __init__(self, path: Path) -> None:
        self._path, self._offset = path, 0
        self._events: list[Event] = []

    def events(self, *kinds: str) -> list[Event]:
        """Those of these kinds, or all."""
        self._read_on()
        return [event for event in self._events if not kinds or event["kind"] in kinds]

    def _read_on(self) -> None:
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._offset)
            written = file.read()
        whole = written[: written.rfind(b"\n") + 1]
        self._offset += len(whole)
        self._events += [json.loads(line) for line in whole.splitlines()]
