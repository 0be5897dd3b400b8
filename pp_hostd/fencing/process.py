"""Runs one program to its end or its deadline, and leaves no process of it behind."""

from __future__ import annotations

import contextlib
import ctypes
import os
import selectors
import signal
import subprocess
import time

from pp_hostd.frozen import frozen

ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}
PR_SET_CHILD_SUBREAPER = 36
CHUNK_BYTES = 65536
REAP_SECONDS = 2.0
"""A killed process that the kernel does not give back in that time is left to systemd."""


@frozen
class Ended:
    """`code` is the exit code, negative for a signal; None if the program was killed at its deadline. `is_whole` tells
    whether all of its output was kept."""

    code: int | None
    output: bytes
    is_whole: bool


class Abandoned(Exception):
    """The client has gone away, and the program was killed."""


def run(program: str, data: bytes, seconds: float, keep_bytes: int, client: int) -> Ended:
    """Run the program with `data` as its input while the socket `client` stays open. OSError if it can't be started.

    The output is read to its end, and its first `keep_bytes` are kept.
    """
    ends_at = time.monotonic() + seconds
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # orphans of the program become ours, so they are found
    child = _start(program, data)
    output = _Output(child, keep_bytes)
    try:
        in_time = _attend(child, output, ends_at, client)
    finally:
        _end_all(child)
    output.take_rest()
    return Ended(child.returncode if in_time else None, bytes(output.kept), output.is_whole)


def _start(program: str, data: bytes) -> subprocess.Popen[bytes]:
    given = os.memfd_create("given")
    try:
        os.write(given, data)
        os.lseek(given, 0, os.SEEK_SET)
        return subprocess.Popen(
            [program],
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=ENVIRONMENT,
            cwd="/",
            start_new_session=True,
        )
    finally:
        os.close(given)


class _Output:
    """The near end of the program's pipe."""

    def __init__(self, child: subprocess.Popen[bytes], keep_bytes: int) -> None:
        assert child.stdout is not None
        self._pipe = child.stdout
        self._keep_bytes = keep_bytes
        os.set_blocking(self._pipe.fileno(), False)
        self.kept = bytearray()
        self.is_whole = True

    def fileno(self) -> int:
        return self._pipe.fileno()

    def take(self) -> bool:
        """Read a piece; False if there is none now, or ever again."""
        try:
            piece = os.read(self._pipe.fileno(), CHUNK_BYTES)
        except BlockingIOError:
            return False
        room = self._keep_bytes - len(self.kept)
        self.kept += piece[:room]
        self.is_whole = self.is_whole and len(piece) <= room
        return bool(piece)

    def take_rest(self) -> None:
        while self.is_whole and self.take():
            pass
        self._pipe.close()


def _attend(child: subprocess.Popen[bytes], output: _Output, ends_at: float, client: int) -> bool:
    """Wait until the program itself ends, whoever else holds its pipe; False if that is not before the deadline."""
    ended = os.pidfd_open(child.pid)
    try:
        with selectors.DefaultSelector() as selector:
            for each in (ended, output, client):
                selector.register(each, selectors.EVENT_READ)
            while time.monotonic() < ends_at:
                ready = [key.fileobj for key, _ in selector.select(ends_at - time.monotonic())]
                if ended in ready:
                    return True
                if client in ready:
                    raise Abandoned
                if output in ready and not output.take():
                    selector.unregister(output)
    finally:
        os.close(ended)
    return False


def _end_all(child: subprocess.Popen[bytes]) -> None:
    """Kill the program's group, and then all that have left the group: those have become children of this process."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(REAP_SECONDS)
    until = time.monotonic() + REAP_SECONDS
    while _kill_orphans(child.pid) and time.monotonic() < until:
        time.sleep(0.01)


def _kill_orphans(but: int) -> bool:
    """Tells whether there were any."""
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
        orphans = [pid for pid in map(int, file.read().split()) if pid != but]
    for pid in orphans:
        with contextlib.suppress(PermissionError):  # one that has become another user's
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, os.WNOHANG)
    return bool(orphans)
