"""The kernel's watchdogs: an open one by its ioctls, any other one by sysfs, since opening it would arm it.

Every ioctl has a typed outcome. Nothing here raises for what a device may do.
"""

from __future__ import annotations

import enum
import errno
import fcntl
import os
import re
import stat
import struct
from typing import Union

from pp_hostd.frozen import frozen
from pp_hostd.model.promise import MAX_TIMEOUT_SECONDS, WatchdogKind

GETSUPPORT, GETBOOTSTATUS, SETOPTIONS = 0x80285700, 0x80045702, 0x80045704
KEEPALIVE, SETTIMEOUT, GETTIMEOUT, GETTIMELEFT = 0x80045705, 0xC0045706, 0x80045707, 0x8004570A
DISABLECARD = 1
INFO = struct.Struct("=II32s")
WORD = struct.Struct("=i")
HAS_MAGIC_CLOSE = 0x100
CARD_RESET = 0x20
"""In the boot status: the last boot was ended by this watchdog."""
SOFTDOG_IDENTITY = "Software Watchdog"
SHORT_SECONDS = (1, 2, 4, 8)


class Unusable(enum.Enum):
    """Why a watchdog can't be used, or not in the way that was asked."""

    NO_DEVICE = "no device"
    NO_PERMISSION = "no permission"
    BUSY = "busy"
    NOT_A_WATCHDOG = "not a watchdog"
    STOPS_WHEN_CLOSED = "stops when closed"
    TIMEOUT_REFUSED = "timeout refused"
    TIMEOUT_OUT_OF_RANGE = "timeout out of range"
    NO_WAY_OUT = "no way out"
    FAILED = "failed"


@frozen
class Trouble:
    state: Unusable
    sentence: str


class Done(enum.Enum):
    DONE = "done"


Outcome = Union[Done, Trouble]


class Device:
    """A watchdog that is open, and so armed. Setting its timeout feeds it as well (the kernel does that)."""

    def __init__(self, descriptor: int, path: str, options: int, identity: str) -> None:
        self._descriptor = descriptor
        self.path = path
        self._word = bytearray(WORD.size)
        self.identity = identity
        self.kind = WatchdogKind.SOFTDOG if identity == SOFTDOG_IDENTITY else WatchdogKind.HARDWARE
        self.has_magic_close = bool(options & HAS_MAGIC_CLOSE)
        self.timeout_seconds = 0.0
        """As the device told it last; 0 if it never did."""
        self.troubles: tuple[str, ...] = ()
        self.read_timeout()

    def fileno(self) -> int | None:
        """The descriptor, for systemd's store; None once disarmed."""
        return self._descriptor if self._descriptor >= 0 else None

    def feed(self) -> Outcome:
        return self._do(KEEPALIVE, 0, "can't be fed")

    def set_timeout(self, seconds: int) -> Outcome:
        """Ask for a timeout and read back the real one, which may differ; a refusal leaves it as it was."""
        outcome = self._do(SETTIMEOUT, seconds, f"refused a timeout of {seconds} s", Unusable.TIMEOUT_REFUSED)
        return self.read_timeout() if outcome is Done.DONE else outcome

    def read_timeout(self) -> Outcome:
        outcome = self._do(GETTIMEOUT, 0, "does not report its timeout", Unusable.TIMEOUT_REFUSED)
        if outcome is Done.DONE:
            self.timeout_seconds = float(self._answer())
        return outcome

    def shorten(self) -> Outcome:
        """The shortest timeout that it takes (rule 8); if it takes none, it fires when it would have anyway."""
        outcome: Outcome = Done.DONE
        for seconds in SHORT_SECONDS:
            if seconds < self.timeout_seconds:
                outcome = self.set_timeout(seconds)
                if outcome is Done.DONE:
                    break
        return outcome

    def time_left_seconds(self) -> int | None:
        return self._answer() if self._do(GETTIMELEFT, 0, "") is Done.DONE else None

    def boot_status(self) -> int | None:
        return self._answer() if self._do(GETBOOTSTATUS, 0, "") is Done.DONE else None

    def disarm(self) -> Outcome:
        """Stop it and close it; what can't be stopped stays open and armed, and must be fed on.

        Closing alone tells nobody whether it worked, so the device is first asked to stop, which it can refuse.
        """
        stopped = self._do(SETOPTIONS, DISABLECARD, "was set up never to stop (nowayout)", Unusable.NO_WAY_OUT)
        if isinstance(stopped, Trouble) and stopped.state is Unusable.NO_WAY_OUT:
            return stopped
        try:
            os.write(self._descriptor, b"V")
        except OSError as error:
            if stopped is not Done.DONE:
                return Trouble(Unusable.FAILED, f"{self.path} can't be disarmed ({error.strerror})")
        os.close(self._descriptor)
        self._descriptor = -1
        return Done.DONE

    def _do(self, command: int, value: int, else_it: str, state: Unusable = Unusable.FAILED) -> Outcome:
        WORD.pack_into(self._word, 0, value)
        try:
            fcntl.ioctl(self._descriptor, command, self._word)
        except (OSError, ValueError) as error:  # ValueError: closed
            number = error.errno if isinstance(error, OSError) else errno.EBADF
            if command == SETOPTIONS and number != errno.EBUSY:
                state = Unusable.FAILED
            return Trouble(state, f"{self.path} {else_it} ({os.strerror(number or 0)})")
        return Done.DONE

    def _answer(self) -> int:
        answer: int = WORD.unpack(self._word)[0]
        return answer


def recognize(descriptor: int, path: str) -> Device | Trouble:
    """The watchdog behind an open descriptor. Neither sets nor feeds anything; what is none is closed."""
    info = bytearray(INFO.size)
    try:
        fcntl.ioctl(descriptor, GETSUPPORT, info)
    except OSError as error:
        if error.errno == errno.ENOTTY:  # and so nothing that a V should be written to
            os.close(descriptor)
            return Trouble(Unusable.NOT_A_WATCHDOG, f"{path} is not a watchdog")
        Device(descriptor, path, 0, "").disarm()
        return Trouble(Unusable.FAILED, f"{path} does not say what it is ({error.strerror})")
    options, _firmware, identity = INFO.unpack(info)
    return Device(descriptor, path, options, identity.rstrip(b"\0").decode("ascii", "replace"))


def unfit(device: Device, timeout_seconds: int, least_seconds: float) -> Trouble | None:
    """Give it its timeout, and say what makes it unfit to be relied on; a refused timeout alone does not."""
    if not device.has_magic_close:
        sentence = f"{device.path} stops whenever its holder ends, so it would not outlast a crash of this program"
        return Trouble(Unusable.STOPS_WHEN_CLOSED, sentence)
    asked = device.set_timeout(timeout_seconds)
    real_seconds = device.timeout_seconds
    if not least_seconds <= real_seconds <= MAX_TIMEOUT_SECONDS:
        needed = f"its timeout is {real_seconds:g} s, and {least_seconds:g} to {MAX_TIMEOUT_SECONDS:g} s is needed"
        why = asked.sentence if isinstance(asked, Trouble) else f"{device.path}: {timeout_seconds} s were requested"
        return Trouble(Unusable.TIMEOUT_OUT_OF_RANGE, f"{why}; {needed}")
    if isinstance(asked, Trouble):
        device.troubles = (f"{asked.sentence}; it keeps its own {real_seconds:g} s",)
    return None


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
    """Returns the mode of a file that can't be a device; None if it may be one. A regular file passes: it will not
    answer a watchdog's questions."""
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
