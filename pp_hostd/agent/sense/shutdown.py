"""Whether the whole system is shutting down, rather than the agent's unit stopping, and how it is to end.

systemd's queue of jobs tells it from the moment of the order on, and pid 1 answers systemctl until the last unit ended.
"""

from __future__ import annotations

import enum
import subprocess

COMMAND = ("systemctl", "list-jobs", "--no-legend", "--no-pager")
SYSTEMCTL_SECONDS = 3.0


class Shutdown(enum.Enum):
    """How the kernel is to end."""

    POWER_OFF = "power-off"
    HALT = "halt"
    """A halted kernel would be reset by the watchdog that it no longer feeds: the agent itself powers off instead."""
    RESTART = "restart"


TARGETS = {
    "poweroff.target": Shutdown.POWER_OFF,
    "halt.target": Shutdown.HALT,
    "reboot.target": Shutdown.RESTART,
    "kexec.target": Shutdown.RESTART,
}


def shutdown_jobs() -> str:
    """What systemd says about the jobs that end a system; empty where it says nothing. May take SYSTEMCTL_SECONDS."""
    return _said(*COMMAND, *TARGETS)


def runtime_watchdog() -> str:
    """RuntimeWatchdogSec=, as systemd says it; empty where it says nothing."""
    return _said("systemctl", "show", "--property=RuntimeWatchdogUSec", "--value")


def _said(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=SYSTEMCTL_SECONDS, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def ordered_shutdown(jobs: str) -> Shutdown | None:
    """The shutdown that is under way, by lines of `JOB UNIT TYPE STATE`; None if there is none."""
    for words in map(str.split, jobs.splitlines()):
        if len(words) == 4 and words[2] == "start" and words[1] in TARGETS:
            return TARGETS[words[1]]
    return None
