"""Describes a watchdog without opening it, since opening would arm it: by sysfs, and by who holds it."""

from __future__ import annotations

import os
import re
import stat

from pp_hostd.frozen import frozen

SYSFS = "/sys/class/watchdog"
PROC = "/proc"
UNOPENED = "It was not opened, as that would arm it; values that sysfs does not show are not known."
ALIASES = {"/dev/watchdog": "/dev/watchdog0"}
"""Two nodes of one device: the kernel gives its first watchdog the old name as well."""


@frozen
class Seen:
    """None is unknown."""

    device: str
    exists: bool
    identity: str | None
    driver: str | None
    state: str | None
    timeout_seconds: int | None
    time_left_seconds: int | None
    min_timeout_seconds: int | None
    max_timeout_seconds: int | None
    boot_status: int | None
    nowayout: int | None
    options: int | None
    holders: tuple[str, ...]
    note: str = UNOPENED


def query(device: str, sysfs: str = SYSFS, proc: str = PROC) -> Seen:
    entry = entry_of(device, sysfs)
    return Seen(
        device=device,
        exists=os.path.exists(device),
        identity=_attribute(entry, "identity"),
        driver=_driver(entry),
        state=_attribute(entry, "state"),
        timeout_seconds=_number(entry, "timeout"),
        time_left_seconds=_number(entry, "timeleft"),
        min_timeout_seconds=_number(entry, "min_timeout"),
        max_timeout_seconds=_number(entry, "max_timeout"),
        boot_status=boot_status(device, sysfs),
        nowayout=_number(entry, "nowayout"),
        options=_flags(entry, "options"),
        holders=holders(device, proc),
    )


def boot_status(device: str, sysfs: str = SYSFS) -> int | None:
    """How the last boot ended; without the search for holders, which takes a starting agent long on a busy host."""
    return _number(entry_of(device, sysfs), "bootstatus")


def entry_of(device: str, sysfs: str) -> str:
    """The directory of the device in sysfs, which need not be there."""
    real = os.path.realpath(device)
    return os.path.join(sysfs, os.path.basename(ALIASES.get(real, real)))


def same_device(one: str, other: str) -> bool:
    """Whether both are names of one watchdog."""
    first, second = (ALIASES.get(real, real) for real in map(os.path.realpath, (one, other)))
    return first == second


def all_known(sysfs: str = SYSFS) -> list[str]:
    """Every watchdog of the kernel, as "watchdog0 (iTCO_wdt)"."""
    return [f"{name} ({_attribute(os.path.join(sysfs, name), 'identity') or 'unnamed'})" for name in _names(sysfs)]


def with_identity(identity: str, sysfs: str) -> str | None:
    """The name of the first watchdog that calls itself so."""
    return next((name for name in _names(sysfs) if _attribute(os.path.join(sysfs, name), "identity") == identity), None)


def holders(device: str, proc: str = PROC) -> tuple[str, ...]:
    """The processes that have the device open, as "systemd (pid 1)"; only those that we may look at."""
    real = os.path.realpath(device)
    paths = {real, ALIASES.get(real, real), *(old for old, new in ALIASES.items() if new == real)}
    pids = sorted(int(name) for name in _names(proc) if name.isdigit())
    return tuple(f"{_command(proc, pid)} (pid {pid})" for pid in pids if _holds(f"{proc}/{pid}/fd", paths))


def wrong_kind(device: str) -> str | None:
    """What stands there instead of a device. A regular file may pass: it will not answer a watchdog's questions."""
    mode = os.stat(device).st_mode
    return None if stat.S_ISCHR(mode) or stat.S_ISREG(mode) else stat.filemode(mode)


def _holds(descriptors: str, paths: set[str]) -> bool:
    try:
        return any(os.readlink(f"{descriptors}/{name}") in paths for name in _names(descriptors))
    except OSError:  # it has just been closed
        return False


def _names(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError:  # it is not there, or not ours to look at
        return []


def _command(proc: str, pid: int) -> str:
    return _attribute(f"{proc}/{pid}", "comm") or "a process"


def _number(directory: str, name: str) -> int | None:
    text = _attribute(directory, name)
    return int(text) if text and text.isdecimal() else None


def _flags(directory: str, name: str) -> int | None:
    """A number in hexadecimal digits; older kernels do not show it."""
    text = _attribute(directory, name) or ""
    return int(text, 16) if re.fullmatch("0x[0-9a-fA-F]{1,8}", text) else None


def _driver(entry: str) -> str | None:
    try:
        return os.path.basename(os.readlink(os.path.join(entry, "device", "driver")))
    except OSError:
        return None


def _attribute(directory: str, name: str) -> str | None:
    try:
        with open(os.path.join(directory, name), encoding="ascii", errors="replace") as file:
            return file.read(256).strip()
    except OSError:
        return None
