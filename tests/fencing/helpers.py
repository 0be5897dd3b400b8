"""The real helper behind a real socket, started for each connection as systemd does it, and small agents to run."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.harness.eventually import HANGS_SECONDS, eventually

MOST_BYTES = 256 << 20
"""Of memory, for a helper as for an agent; systemd bounds both, too."""
PP_LEADER = Path(sys.executable).with_name("pp-leader")


class Helpers:
    """`listening` is how to get them. Agents are those of `directory`, or those of the host if there is none."""

    def __init__(self, path: str, directories: Sequence[Path]) -> None:
        self.path = path
        self._command = ["prlimit", f"--as={MOST_BYTES}", str(PP_LEADER), "fence-helper"]
        for directory in directories:
            self._command += ["--agents-in", str(directory)]
        self._started: list[subprocess.Popen[bytes]] = []

    @classmethod
    @contextlib.contextmanager
    def listening(cls, path: Path, *directories: Path) -> Iterator[Helpers]:
        helpers = cls(str(path), directories)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(helpers.path)
            listener.listen()
            accepting = threading.Thread(target=helpers._accept, args=(listener,))
            accepting.start()
            try:
                yield helpers
            finally:
                listener.shutdown(socket.SHUT_RDWR)  # wakes the thread
                accepting.join()
                for helper in helpers._started:
                    assert helper.wait(HANGS_SECONDS) == 0

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection:
                    self._started.append(self.start(connection))

    def start(self, connection: socket.socket) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self._command, stdin=connection.fileno(), stdout=subprocess.DEVNULL)


class Agents:
    """A directory of agents: shell scripts that can note pids of theirs."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def write(self, script: str, name: str = "fence_test") -> None:
        path = self.directory / name
        path.write_text(f"#!/bin/sh\ncd {self.directory}\n{script}\n")
        path.chmod(0o755)

    def noted(self, name: str = "pid") -> int:
        """Returns the pid that an agent has noted in that file, once it has."""
        path = self.directory / name
        return eventually(lambda: path.exists() and int(path.read_text().strip() or 0), f"the agent has noted {name}")

    def await_gone(self, name: str = "pid") -> None:
        pid = self.noted(name)
        eventually(lambda: not os.path.exists(f"/proc/{pid}"), f"the process noted in {name} is gone")
