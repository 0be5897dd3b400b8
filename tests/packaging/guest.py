"""A Debian with systemd, booted in a container, with a watchdog of ours as its /dev/watchdog: for packages to live in.

It shares the machine's network, so that it reaches an API of the tests at 127.0.0.1; all else is its own. Files that
are written in it are gone with it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.harness.eventually import eventually
from tests.packaging.root import root

CHECKOUT = Path(__file__).parents[2]
COMMAND_SECONDS = 100
START = """
set -eu
for cgroup in "$GROUP_1" "$GROUP_2"; do [ ! -d "$cgroup" ] || echo $$ >"$cgroup/cgroup.procs"; done
mkdir "$WORK/watchdogs"
"$PYTHON" -m tests.harness.fuse_watchdog "$WORK/watchdogs" "$WORK/record" &
until [ -e "$WORK/watchdogs/watchdog" ]; do sleep 0.05; done
exec systemd-nspawn --quiet --directory="$ROOT" --volatile=overlay --boot --register=no --keep-unit --console=pipe \
    --machine=guest --capability=CAP_IPC_LOCK --bind="$WORK/watchdogs/watchdog:/dev/watchdog" \
    --bind-ro="$RPMS:/rpms"
"""
SAFE = "[Service]\nInaccessiblePaths=-/proc/sysrq-trigger\n"
"""Nspawn keeps a container from sysrq, which would reset the machine; this does so even if it should not."""


class Guest:
    """`booted` is how to get one."""

    def __init__(self, pid: int, work: Path) -> None:
        self._pid, self._work = pid, work

    def run(self, *argv: str, check: bool = True, text: str | None = None) -> subprocess.CompletedProcess[str]:
        command = ["nsenter", f"--target={self._pid}", "-m", "-p", "-u", "-i", "-C", "--", *argv]
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}
        pipe = subprocess.PIPE
        done = subprocess.run(
            command, input=text, stdout=pipe, stderr=pipe, text=True, env=environment, timeout=COMMAND_SECONDS
        )
        assert done.returncode == 0 or not check, f"{' '.join(argv)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def write(self, path: str, text: str, mode: str = "644") -> None:
        self.run("sh", "-c", f"mkdir -p '{os.path.dirname(path)}'; cat >'{path}'; chmod {mode} '{path}'", text=text)

    def exists(self, path: str) -> bool:
        return self.run("test", "-e", path, check=False).returncode == 0

    def shows(self, unit: str, name: str) -> str:
        """A property of a unit."""
        return self.run("systemctl", "show", f"--property={name}", "--value", unit).stdout.strip()

    def is_active(self, unit: str) -> bool:
        return self.shows(unit, "ActiveState") == "active"

    def status_of(self, unit: str) -> str:
        return self.run("systemctl", "status", "--no-pager", "--full", unit, check=False).stdout

    def journal(self, unit: str) -> str:
        return self.run("journalctl", "--no-pager", "--unit", unit).stdout

    def watchdog(self) -> list[str]:
        """Returns the names of its watchdog's events so far, in order."""
        record = self._work / "record"
        lines = record.read_text().splitlines() if record.exists() else []
        events: list[dict[str, Any]] = [json.loads(line) for line in lines]
        return [event["event"] for event in events]


@contextlib.contextmanager
def booted(rpms: Path) -> Iterator[Guest]:
    """A new one, with the packages in /rpms; it ends, whatever becomes of it, with the process that started it."""
    work = Path(tempfile.mkdtemp(prefix="pp-hostd-guest-"))
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, work)
        groups = [stack.enter_context(_control_group(each, work.name)) for each in ("systemd", "unified")]
        environment = {
            **os.environ,
            "PYTHON": sys.executable,
            "ROOT": str(root()),
            "WORK": str(work),
            "RPMS": str(rpms),
            "GROUP_1": str(groups[0]),
            "GROUP_2": str(groups[1]),
        }
        unshare = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        with open(work / "console", "wb") as console:
            machine = subprocess.Popen(
                [*unshare, "bash", "-c", START, "guest"],
                cwd=CHECKOUT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
            )
        stack.callback(machine.wait)
        stack.callback(machine.kill)
        guest = Guest(eventually(lambda: _init_below(machine.pid), "systemd is started", 60), work)
        eventually(lambda: _has_started(guest), "it has booted", 60)
        guest.write("/etc/systemd/system/pp-hostd.service.d/safe.conf", SAFE)
        yield guest


def _has_started(guest: Guest) -> bool:
    return guest.run("systemctl", "is-system-running", check=False).stdout.strip() in ("running", "degraded")


def _init_below(pid: int) -> int:
    """The process below this one that is process 1 of the container; 0 if there is none yet."""
    for child in _children(pid):
        with contextlib.suppress(OSError):
            if Path(f"/proc/{child}/comm").read_text() == "systemd\n":
                return child
        found = _init_below(child)
        if found:
            return found
    return 0


def _children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


@contextlib.contextmanager
def _control_group(hierarchy: str, name: str) -> Iterator[Path]:
    """A directory for its processes, where the machine has that hierarchy: neighbours would share their units."""
    directory = Path("/sys/fs/cgroup") / hierarchy / name
    if directory.parent.is_dir():
        directory.mkdir()
    yield directory
    for each, _, _ in os.walk(directory, topdown=False):
        eventually(lambda each=each: _removed(each), f"{each} is empty")  # type: ignore[misc]


def _removed(directory: str) -> bool:
    for pid in Path(directory, "cgroup.procs").read_text().split():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)
    try:
        os.rmdir(directory)
    except OSError:
        return False
    return True
