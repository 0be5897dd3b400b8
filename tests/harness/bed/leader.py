"""A leader on one of a bed's hosts: the real command, run and signalled as systemd would, and started again by hand."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from tests.harness.bed.host import PROGRAMS, Host
from tests.harness.eventually import eventually


class Leader:
    """It ends with its host, if not before."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._log = host.directory / "leader.log"
        with self._log.open("ab") as log:
            # In a directory that outlives a boot and holds no file of the agent's own making.
            command = host.command("env", "STATE_DIRECTORY=/etc/pp-hostd", *PROGRAMS["pp-leader"], "run")
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        self._pid = eventually(self._child, f"the leader of {host.name} runs")

    def _child(self) -> int:
        """nsenter's child, which is process 2 or later of the host."""
        process = self._process.pid
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        return int(children[0]) if children else 0

    def signal(self, number: int) -> None:
        os.kill(self._pid, number)
        if number in (signal.SIGCONT, signal.SIGKILL):
            self._process.send_signal(signal.SIGCONT)  # nsenter stops with its child, and does not wake with it

    def kill(self) -> None:
        """As `kill -9`."""
        self.signal(signal.SIGKILL)
        self._process.wait(10)

    def stop(self) -> int:
        """As `systemctl stop`; its exit code."""
        self.signal(signal.SIGTERM)
        return self._process.wait(30)

    def close(self) -> None:
        """End it, if it has not ended."""
        if self.is_running():
            self.kill()

    def is_running(self) -> bool:
        return self._process.poll() is None

    def output(self) -> str:
        """Returns the text that the leader printed, and did not send to the journal."""
        return self._log.read_text()
