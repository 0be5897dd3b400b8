"""This boot: its id and time, why the last boot ended as far as it left word, and whether the system shuts down."""

from __future__ import annotations

import contextlib
import enum
import os
import subprocess
import time
from datetime import datetime, timezone

from pp_hostd.agent.act.watchdog_device import CARD_RESET
from pp_hostd.files import FileError, read_whole, write_whole
from pp_hostd.frozen import frozen, replace
from pp_hostd.model.moment import render_moment
from pp_hostd.model.record import MAX_RECORD_CHARACTERS, OPAQUE, PROSE, Unreadable, document, read, render

BOOT_ID = "/proc/sys/kernel/random/boot_id"
RECORD, HISTORY, SET_ASIDE = "reset.json", "resets.jsonl", ".set-aside"
MAX_CAUSE_CHARACTERS = 500
MAX_HISTORY = 100
MAX_HISTORY_BYTES = 1 << 20
UNKNOWN = "unknown"


@frozen
class Ending:
    """How a boot ended: the record of rule 7 on disk. `cause` completes "the last boot ended because ..."."""

    boot: str
    cause: str
    condemnation_id: int | None = None
    ended_wallclock: str = UNKNOWN
    told_in: str = ""
    """The boot that said so in its journal."""

    def render(self) -> str:
        fields = {"boot": self.boot, "cause": self.cause, "id": self.condemnation_id, "ended": self.ended_wallclock}
        return render({**fields, "told": self.told_in or None}) + "\n"


@frozen
class LastBoot:
    """The news at the start: `sentence` says once why the last boot ended, `trouble` what is wrong with its record."""

    sentence: str | None = None
    trouble: str | None = None


def boot_id(path: str = BOOT_ID) -> str:
    with open(path, encoding="ascii") as file:
        return file.read(64).strip()


def booted_wallclock() -> str:
    """When this boot began, for people."""
    return _moment(time.time() - time.clock_gettime(time.CLOCK_BOOTTIME))


def ending(boot: str, cause: str, condemnation_id: int | None = None) -> Ending:
    """The record of a reset that is about to happen."""
    return Ending(boot, " ".join(cause.split())[:MAX_CAUSE_CHARACTERS], condemnation_id, _moment(time.time()))


def last_boot(directory: str, boot: str, boot_status: int | None) -> LastBoot:
    """Why the last boot ended, from its record and the watchdog's boot status; said once, then history."""
    path = os.path.join(directory, RECORD)
    try:
        text = read_whole(path, MAX_RECORD_CHARACTERS) if os.path.lexists(path) else b""
        found = parse_ending(text) if text else None  # it is opened long before it is written, if it ever is
        if isinstance(found, Unreadable):
            os.replace(path, path + SET_ASIDE)
            return LastBoot(None, f"{path}: {found}; it was set aside as {RECORD}{SET_ASIDE}, and counts as nothing")
        return LastBoot(_told(directory, boot, found, bool((boot_status or 0) & CARD_RESET)))
    except (OSError, FileError) as error:
        return LastBoot(None, f"{path}: what the last boot left can't be read or put away ({error})")


def history(directory: str) -> list[Ending]:
    """The endings that were told, the oldest first; lines that can't be read are left out."""
    try:
        lines = read_whole(os.path.join(directory, HISTORY), MAX_HISTORY_BYTES).splitlines()
    except FileError:
        return []
    endings = (parse_ending(line) for line in lines)
    return [found for found in endings if isinstance(found, Ending)]


def parse_ending(text: object) -> Ending | Unreadable:
    return read("the record of the last reset", _ending, text)


def _ending(text: object) -> Ending:
    fields = document(text, MAX_RECORD_CHARACTERS)
    return Ending(
        boot=fields.text("boot", OPAQUE),
        cause=fields.text("cause", PROSE),
        condemnation_id=fields.count("id") if "id" in fields else None,
        ended_wallclock=fields.text("ended", OPAQUE),
        told_in=fields.text("told", OPAQUE) if "told" in fields else "",
    )


def _told(directory: str, boot: str, found: Ending | None, by_watchdog: bool) -> str | None:
    told = history(directory)
    if found is not None and found.boot != boot:
        fired = ", and the watchdog did it" if by_watchdog else ""
        sentence = f"the last boot ended because {found.cause}{fired} (boot {found.boot}, at {found.ended_wallclock})"
    elif by_watchdog and not any(one.told_in == boot for one in told):
        found = Ending(UNKNOWN, "its watchdog was not fed in time; that boot left no reason")
        sentence = f"the last boot ended because {found.cause}"
    else:  # nothing, or the word of this very boot: a reset that is still under way
        return None
    _remember(directory, [*told, replace(found, told_in=boot)])
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(directory, RECORD))
    return sentence


def _remember(directory: str, endings: list[Ending]) -> None:
    lines = "".join(one.render() for one in endings[-MAX_HISTORY:])
    write_whole(os.path.join(directory, HISTORY), lines.encode())


def _moment(wallclock: float) -> str:
    return render_moment(datetime.fromtimestamp(int(wallclock), timezone.utc))


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
    """Returns systemd's list of the jobs that end a system; empty if systemd gives none. May take SYSTEMCTL_SECONDS."""
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
