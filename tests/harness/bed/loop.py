"""The loop of process 1: descriptors, timers and children, and nothing that costs memory."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import time
from typing import Callable, NoReturn, Union

Watched = Union[int, socket.socket]


class Loop:
    """Runs callbacks, one at a time."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._timers: list[tuple[float, Callable[[], None]]] = []
        self._children: dict[int, Callable[[int], None]] = {}
        woken, wakes = socket.socketpair()
        for end in (woken, wakes):
            end.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wakes.fileno())
        self._wakes = wakes
        self.watch(woken, lambda: self._reap(woken))

    def watch(self, watched: Watched, on_input: Callable[[], None]) -> None:
        self._selector.register(watched, selectors.EVENT_READ, on_input)

    def unwatch(self, watched: Watched) -> None:
        self._selector.unregister(watched)

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        self._timers.append((time.monotonic() + seconds, action))

    def adopt(self, pid: int, on_end: Callable[[int], None]) -> None:
        """Call this with its exit status (minus the signal that killed it) when the child has ended."""
        self._children[pid] = on_end

    def run(self) -> NoReturn:
        while True:
            next_at = min((at for at, _ in self._timers), default=None)
            wait_seconds = None if next_at is None else max(0.0, next_at - time.monotonic())
            for key, _ in self._selector.select(wait_seconds):
                key.data()
            due = [timer for timer in self._timers if timer[0] <= time.monotonic()]
            for timer in due:
                self._timers.remove(timer)
                timer[1]()

    def _reap(self, woken: socket.socket) -> None:
        woken.recv(4096)
        with contextlib.suppress(ChildProcessError):  # no child left
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    return
                on_end = self._children.pop(pid, None)  # process 1 also reaps orphans
                if on_end:
                    on_end(os.waitstatus_to_exitcode(status))
