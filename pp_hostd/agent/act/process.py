"""This process made hard to stop: memory that stays, a turn on the CPU, no OOM kill, a unit that goes on."""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess

MCL_CURRENT, MCL_FUTURE = 1, 2
OOM_SCORE = "-1000"
REAL_TIME_PRIORITY = 1
NICE = -20
SOCKETS = 8192


def lock_memory() -> str | None:
    """No page of ours is ever fetched from a disk that may hang (design, section 5)."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mlockall(MCL_CURRENT | MCL_FUTURE) == 0:
        return None
    return f"memory can't be locked ({os.strerror(ctypes.get_errno())}); a hung disk may hang this program"


def raise_priority() -> str | None:
    """The lowest real-time priority, else niceness; our children get neither.

    That is ahead of every ordinary process, also of other control groups (which niceness is not), and behind every
    other real-time one.
    """
    try:
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(REAL_TIME_PRIORITY))
    except OSError as refused:
        return _renice(refused)
    return None


def _renice(refused: OSError) -> str | None:
    try:
        os.setpriority(os.PRIO_PROCESS, 0, NICE)
    except OSError as error:
        return f"priority can't be raised ({error.strerror}); a busy host may delay this program"
    return f"real-time priority was refused ({refused.strerror}); niceness {NICE} is used"


def allow_sockets() -> str | None:
    """An inquiry asks many peers at once, each over a socket of its own."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = SOCKETS if hard == resource.RLIM_INFINITY else min(SOCKETS, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    if wanted < SOCKETS:
        return f"no more than {wanted} files can be open; a large cluster's peers may be silent for that (LimitNOFILE=)"
    return None


def shield_from_oom(path: str = "/proc/self/oom_score_adj") -> str | None:
    """A host out of memory must not kill what watches over it."""
    try:
        with open(path, "r+", encoding="ascii") as file:
            file.write(OOM_SCORE)
            file.flush()
            file.seek(0)
            score = file.read(16).strip()
    except OSError as error:
        return f"the OOM score can't be set ({error.strerror}); this program may be killed when memory is short"
    if score != OOM_SCORE:  # some containers take the write and keep their value
        return f"the OOM score stayed {score}; this program may be killed when memory is short"
    return None


COMMAND = ("systemctl", "--no-block", "start", "pp-hostd.service")
SYSTEMCTL_SECONDS = 3.0


def start_again() -> str:
    """Order a start while the unit stops: systemd drops the stop, ends the one who waits for it, and starts the next
    run as soon as this one has ended, with the descriptors that it keeps. Returns why that failed; empty if it did not.
    """
    try:
        subprocess.run(COMMAND, capture_output=True, text=True, timeout=SYSTEMCTL_SECONDS, check=True)
    except subprocess.CalledProcessError as error:
        return " ".join(str(error.stderr).split()) or str(error)
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    return ""
