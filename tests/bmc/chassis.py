"""A BMC's wires: ipmi_sim calls `chassis.py DIRECTORY [get|set] power ...`. Power is a group of processes.

In DIRECTORY: `command`, the host's, one argument a line; `mode`, how the wires fare; `host`, its pid while it is on;
`hosts`, the pids of all that were ever on.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

OFF_SECONDS = 10.0


def pid_of(directory: Path) -> int:
    """Of the host that is on; 0 while it is off."""
    try:
        pid = int((directory / "host").read_text())
        os.killpg(pid, 0)
    except (OSError, ValueError):
        return 0
    return pid


def switch_off(directory: Path) -> None:
    """The whole group, at once; it returns when nothing of it is left."""
    pid, until = pid_of(directory), time.monotonic() + OFF_SECONDS
    while pid and time.monotonic() < until:
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)
        time.sleep(0.01)
        pid = pid_of(directory)


def switch_on(directory: Path) -> None:
    if pid_of(directory):
        return
    command = (directory / "command").read_text().splitlines()
    with open(directory / "console", "ab") as console:
        host = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=console, stderr=subprocess.STDOUT, start_new_session=True
        )
    (directory / "host").write_text(str(host.pid))
    with open(directory / "hosts", "a") as hosts:
        hosts.write(f"{host.pid}\n")


def times_on(directory: Path) -> int:
    return len((directory / "hosts").read_text().splitlines())


def main(directory: Path, verb: str, *arguments: str) -> None:
    mode = (directory / "mode").read_text().strip()
    if verb == "get":
        print(f"power:{int(bool(pid_of(directory)))}")
        return
    asked = dict(zip(arguments[::2], arguments[1::2]))
    wanted = "0" if "shutdown" in asked else asked.get("power")
    if wanted == "0" and mode in ("works", "one way"):
        switch_off(directory)
    elif wanted == "1" and mode == "works":
        switch_on(directory)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
