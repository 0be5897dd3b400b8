"""Keeps a cluster's processes and directory on a leash: they go when whoever started them goes, however that ends.

A supervisor process in a session of its own reads requests from a pipe. When the pipe ends, which the kernel also sees
to when the test run is killed, it kills the processes, the last started first, and removes the directory. Should the
supervisor itself be killed, the kernel kills its processes.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


class Supervisor:
    """The near end of the pipe, and what a test sees of the processes."""

    def __init__(self) -> None:
        self._asking = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-I", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.pid = self._process.pid
        self.directory = Path(self._answer())

    def run(self, name: str, argv: Sequence[str]) -> None:
        """Start a process, after killing the one of that name, if there is one."""
        self._ask({"name": name, "argv": list(argv)})

    def kill(self, name: str) -> None:
        """Kill the process of that name, until it is run again."""
        self._ask({"name": name, "argv": None})

    def processes(self) -> dict[str, dict[str, int | None]]:
        """By name: the `pid` of each process and its `exit` status, None while it runs."""
        processes: dict[str, dict[str, int | None]] = self._ask(None)
        return processes

    def log_tails(self, lines: int = 15) -> dict[str, str]:
        """By name: the end of what each process has printed."""
        logs = sorted(self.directory.glob("*.log"))
        return {log.stem: "\n".join(log.read_text(errors="replace").splitlines()[-lines:]) for log in logs}

    def close(self) -> None:
        """End everything; returns when the processes are dead and the directory is gone."""
        with self._process:
            pass  # leaving it closes the pipe and waits

    def _ask(self, request: dict[str, Any] | None) -> Any:
        assert self._process.stdin is not None
        with self._asking:
            print(json.dumps(request), file=self._process.stdin, flush=True)
            return self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise ChildProcessError(f"the supervisor ended with status {self._process.wait()}")
        return json.loads(line)


def main() -> None:
    """The far end of the pipe."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    directory = Path(tempfile.mkdtemp(prefix="pp-hostd-cluster-"))
    processes: dict[str, subprocess.Popen[bytes]] = {}
    try:
        with contextlib.suppress(BrokenPipeError):  # whoever asked is gone
            _serve(directory, processes)
    finally:
        # kube-apiserver goes before etcd, which it would wait for. Nothing here is worth a clean shutdown.
        for process in reversed(list(processes.values())):
            _kill(process)
        shutil.rmtree(directory)


def _serve(directory: Path, processes: dict[str, subprocess.Popen[bytes]]) -> None:
    _tell(str(directory))
    for line in sys.stdin:
        request = json.loads(line)
        if request is not None:
            name = request["name"]
            if name in processes:
                _kill(processes.pop(name))
            if request["argv"]:
                processes[name] = _start(request["argv"], directory / f"{name}.log")
        _tell({name: {"pid": process.pid, "exit": process.poll()} for name, process in processes.items()})


def _tell(value: Any) -> None:
    os.write(sys.stdout.fileno(), json.dumps(value).encode() + b"\n")


def _start(argv: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    with open(log, "ab") as output:
        return subprocess.Popen(
            argv,
            cwd=log.parent,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            preexec_fn=lambda: LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL),  # safe: there is one thread
        )


def _kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


if __name__ == "__main__":
    main()
