"""The hardware of a host for one boot: its power, its watchdog, and the word on how it went down.

The process stands outside of the host's pid namespace, so it is there when process 1 goes, and with it all of the host.
"""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path
from typing import Any, NoReturn

from tests.harness.bed import init, wires
from tests.harness.bed.boot import Boot
from tests.harness.bed.namespaces import (
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUTS,
    die_with_parent,
    keep_only,
    or_exit,
    set_hostname,
    unshare,
)
from tests.harness.bed.record import Recorder
from tests.harness.fuse_watchdog import mount, serve
from tests.harness.watchdog_device import Behaviour, Device

PLUG_ME_IN, PLUGGED = b"?", b"!"


def power_on(boot: Boot) -> tuple[int, socket.socket]:
    """Fork a host: its process, and a socket over which it asks for its cable and then says that it is up."""
    near, far = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        or_exit(lambda: _run(boot, far))
    far.close()
    return pid, near


def _run(boot: Boot, link: socket.socket) -> NoReturn:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    keep_only([link.fileno()])
    die_with_parent()
    unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC)
    link.send(PLUG_ME_IN)
    link.recv(1)
    wires.configure("eth0", boot.number)
    wires.set_neighbours("eth0", boot.neighbours, boot.lost)
    set_hostname(boot.name)
    fuse = mount(str(Path(boot.directory, "watchdog")))
    record = Recorder(Path(boot.directory, "record"), boot.count)
    unshare(CLONE_NEWPID)
    pid = os.fork()
    if pid == 0:
        or_exit(lambda: init.run(boot, record, link))
    link.close()
    record("up", pid=pid)
    _Power(pid, record).stay_on(fuse, boot.watchdog)


class _Power:
    def __init__(self, pid: int, record: Recorder) -> None:
        self._pid, self._record = pid, record
        self._fired = False

    def stay_on(self, fuse: int, behaviour: dict[str, Any]) -> NoReturn:
        """Serve the watchdog until process 1 has gone."""
        signal.signal(signal.SIGCHLD, lambda *_: self._look())
        self._look()
        serve(fuse, {"watchdog": Device(Behaviour(**behaviour), self._on_event)}, "")
        while True:
            signal.pause()

    def _on_event(self, event: str, **details: Any) -> None:
        self._record("watchdog", event=event, **details)
        if event == "fired":
            self._fired = True
            os.kill(self._pid, signal.SIGKILL)

    def _look(self) -> None:
        pid, status = os.waitpid(self._pid, os.WNOHANG)
        if pid:
            self._record("down", how=self._how(os.waitstatus_to_exitcode(status)))
            os._exit(0)

    def _how(self, status: int) -> str:
        """The kernel says by a signal which reboot(2) ended a pid namespace."""
        causes = {-signal.SIGHUP: "reboot", -signal.SIGINT: "halt", init.SYSRQ_STATUS: "sysrq"}
        killed = "watchdog" if self._fired else "killed"
        return causes.get(status, killed if status == -signal.SIGKILL else f"process 1 ended with {status}")
