"""The agent's unit as systemd would run it: restarted always, with its notify socket, journal and fd store."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
from typing import Any, Callable

from tests.harness.bed.journal import parse_journal
from tests.harness.bed.loop import Loop
from tests.harness.bed.namespaces import or_exit
from tests.harness.bed.output import Output
from tests.harness.bed.record import Recorder

NOTIFY, JOURNAL = "/run/systemd/notify", "/run/systemd/journal/socket"
RESTART_SECONDS = 0.1
WATCHDOG_SECONDS = 10
FIRST_HANDED_OVER = 3
MAX_DATAGRAM = 1 << 18
ENVIRONMENT = {"PATH": "/run/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
"""The environment of every unit."""


class AgentUnit:
    """One service, its sockets, and the descriptors that it has stored."""

    def __init__(self, loop: Loop, record: Recorder, command: list[str]) -> None:
        self._loop, self._record, self._command = loop, record, command
        self._pid = 0
        self._wanted = False
        self._stored: list[tuple[str, int]] = []
        os.makedirs(os.path.dirname(JOURNAL))
        notify, journal = _datagram_socket(NOTIFY), _datagram_socket(JOURNAL)
        self._output = Output(record, "agent")
        self._inputs: dict[str, tuple[socket.socket | int, Callable[[], None]]] = {
            "notify": (notify, lambda: self._on_notify(notify)),
            "journal": (journal, lambda: self._on_journal(journal)),
            "stderr": (self._output.reader, self._output.read),
        }
        for each in self._inputs:
            self.unblock(each)

    def commands(self) -> dict[str, Callable[..., Any]]:
        return {
            "start_agent": self.start,
            "stop_agent": self.stop,
            "signal_agent": self.signal,
            "agent_pid": lambda: self._pid,
            "block": self.block,
            "unblock": self.unblock,
        }

    def block(self, name: str) -> None:
        """Read no more from it, so that it fills."""
        self._loop.unwatch(self._inputs[name][0])

    def unblock(self, name: str) -> None:
        self._loop.watch(*self._inputs[name])

    def signal(self, number: int) -> None:
        if not self._pid:
            raise ProcessLookupError("the agent is not running")
        os.kill(self._pid, number)

    def stop(self) -> None:
        """As `systemctl stop`: it is asked to end, and not started again."""
        self._wanted = False
        if self._pid:
            self.signal(signal.SIGTERM)

    def start(self) -> None:
        self._wanted = True
        self._pid = os.fork()
        if self._pid == 0:
            or_exit(self._execute)
        self._record("agent-started", pid=self._pid, stored=[name for name, _ in self._stored])
        self._loop.adopt(self._pid, self._on_end)

    def _restart(self) -> None:
        if self._wanted and not self._pid:
            self.start()

    def _execute(self) -> None:
        self._output.take_over()
        stream = os.fstat(2)
        mine = {
            "NOTIFY_SOCKET": NOTIFY,
            "WATCHDOG_USEC": str(WATCHDOG_SECONDS * 1_000_000),  # it is told, and nobody counts
            "WATCHDOG_PID": str(os.getpid()),
            "JOURNAL_STREAM": f"{stream.st_dev}:{stream.st_ino}",
        }
        os.execve(self._command[0], self._command, {**ENVIRONMENT, **mine, **self._hand_over()})

    def _hand_over(self) -> dict[str, str]:
        """Move the stored descriptors to where the agent looks for them: from 3 on, in order."""
        if not self._stored:
            return {}
        count = len(self._stored)
        # Out of the way first, so that none is overwritten before it is moved.
        beyond = [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, FIRST_HANDED_OVER + count) for _, each in self._stored]
        for target, descriptor in enumerate(beyond, FIRST_HANDED_OVER):
            os.dup2(descriptor, target)
        names = ":".join(name for name, _ in self._stored)
        return {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": str(count), "LISTEN_FDNAMES": names}

    def _on_end(self, status: int) -> None:
        self._pid = 0
        self._record("agent-ended", status=status)
        if self._wanted:
            self._loop.later(RESTART_SECONDS, self._restart)
        else:
            self._forget(lambda _: True)

    def _on_notify(self, notify: socket.socket) -> None:
        message, descriptors, _, _ = socket.recv_fds(notify, MAX_DATAGRAM, 16)
        fields = dict(line.split("=", 1) for line in message.decode().splitlines() if "=" in line)
        self._record("notify", message=fields, descriptors=len(descriptors))
        name = fields.get("FDNAME", "stored")
        if fields.get("FDSTOREREMOVE") == "1":
            self._forget(lambda stored: stored == name)
        if fields.get("FDSTORE") == "1":
            self._stored += [(name, descriptor) for descriptor in descriptors]
        else:
            for descriptor in descriptors:
                os.close(descriptor)

    def _forget(self, chosen: Callable[[str], bool]) -> None:
        for name, descriptor in self._stored:
            if chosen(name):
                os.close(descriptor)
        self._stored = [each for each in self._stored if not chosen(each[0])]

    def _on_journal(self, journal: socket.socket) -> None:
        fields = parse_journal(journal.recv(MAX_DATAGRAM))
        self._record("journal", source="socket", line=fields.get("MESSAGE", ""), fields=fields)


def _datagram_socket(path: str) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    made.bind(path)
    return made
