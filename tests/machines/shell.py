"""The way into a guest: scripts and files for inside/shell.py, over a socket of QEMU's."""

from __future__ import annotations

import base64
import itertools
import json
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GRACE_SECONDS = 20
"""For the way there and back: an emulated machine that is busy is slow."""
WRITE_SECONDS = 120
PING_SECONDS = 6
"""A guest that boots may lose a question, so it is asked again."""


class Unanswered(TimeoutError):
    """The guest hangs, is down, or has no processor to spare."""


@dataclass(frozen=True)
class Ran:
    """A script's end; `exit` is None if it was cut off."""

    exit: int | None
    said: str


class Shell:
    """One request at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._numbers = itertools.count(1)
        self._socket: socket.socket | None = None
        self._pending = b""

    def run(self, script: str, seconds: float = 20) -> Ran:
        answer = self._ask({"script": script, "seconds": seconds}, seconds + GRACE_SECONDS)
        return Ran(answer["exit"], answer["said"])

    def write(self, path: str, data: bytes, mode: int = 0o600) -> None:
        """A file, with the directories that it needs."""
        request = {"path": path, "mode": mode, "data": base64.b64encode(data).decode()}
        answer = self._ask(request, WRITE_SECONDS)
        assert answer["exit"] == 0, f"{path}: {answer['said']}"

    def await_ready(self, seconds: float) -> None:
        """Until the guest answers: it may be booting."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                self._ask({"script": "true", "seconds": PING_SECONDS}, PING_SECONDS)
                return
            except Unanswered:
                if time.monotonic() > deadline:
                    raise Unanswered(f"no answer from the guest for {seconds:g} s") from None

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _ask(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        number = next(self._numbers)
        deadline = time.monotonic() + seconds
        self._connect()
        self._send(json.dumps({"id": number, **request}).encode() + b"\n", deadline)
        while True:
            answer = self._answer(deadline)
            if answer.get("id") == number:  # others belong to questions that nobody waits for any more
                return answer

    def _connect(self) -> None:
        if self._socket is None:
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.connect(str(self._path))
            self._pending = b""

    def _send(self, data: bytes, deadline: float) -> None:
        assert self._socket is not None
        self._socket.settimeout(max(0.1, deadline - time.monotonic()))
        try:
            self._socket.sendall(data)
        except OSError as error:
            self.close()  # half a line may be on its way
            raise Unanswered(f"the guest takes nothing: {error}") from None

    def _answer(self, deadline: float) -> dict[str, Any]:
        assert self._socket is not None
        while b"\n" not in self._pending:
            self._socket.settimeout(max(0.1, deadline - time.monotonic()))
            try:
                data = self._socket.recv(65536)
            except OSError:
                data = b""
            if not data:
                self.close()
                raise Unanswered("the guest does not answer")
            self._pending += data
        line, _, self._pending = self._pending.partition(b"\n")
        try:
            answer: dict[str, Any] = json.loads(line)
        except ValueError:  # the end of what a guest said that was reset
            return {}
        return answer
