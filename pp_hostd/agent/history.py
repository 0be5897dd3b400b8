"""The last changes of the agent's state, one JSON line each in /run: bounded, and kept over restarts of the daemon."""

from __future__ import annotations

import json
import os
from typing import Any

from pp_hostd.agent.record_file import write
from pp_hostd.files import FileError, read_whole
from pp_hostd.model.record import render

MAX_LINES = 200
MAX_LINE_CHARACTERS = 4000
KEPT_LINES = 150
"""So many remain when the most is reached, so that not every further line rewrites the file."""


class History:
    def __init__(self, run_directory: str) -> None:
        self._path = os.path.join(run_directory, "history")
        self._count = len(self._lines())

    def add(self, change: dict[str, Any]) -> str:
        """Append a line. The sentence says why that failed."""
        line = render(change)
        if len(line) > MAX_LINE_CHARACTERS:
            return f"{self._path}: a line of {len(line)} characters is not taken"
        if self._count >= MAX_LINES:
            return self._rewrite([*self._lines()[-KEPT_LINES:], line])
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb", buffering=0) as file:
                file.write(line.encode() + b"\n")
        except FileNotFoundError:
            return self._rewrite([line])
        except OSError as error:
            return f"{self._path}: can't be written ({error.strerror})"
        self._count += 1
        return ""

    def changes(self) -> list[dict[str, Any]]:
        """The changes, oldest first; lines that can't be read are left out."""
        found = (_decoded(line) for line in self._lines())
        return [change for change in found if isinstance(change, dict)]

    def _rewrite(self, lines: list[str]) -> str:
        self._count = len(lines)
        return write(self._path, "".join(f"{line}\n" for line in lines), durable=False)

    def _lines(self) -> list[str]:
        try:
            data = read_whole(self._path, (MAX_LINES + 1) * (MAX_LINE_CHARACTERS + 1))
        except FileError:
            return []
        return data.decode("utf-8", "replace").splitlines()[-MAX_LINES:]


def _decoded(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
