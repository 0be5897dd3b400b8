"""One watchdog device as tests see it: its ioctls, writes and closes, when it fires, and all the ways it can be odd."""

from __future__ import annotations

import errno
import struct
import time
from dataclasses import dataclass
from typing import Callable

GETSUPPORT, GETSTATUS, GETBOOTSTATUS = 0x80285700, 0x80045701, 0x80045702
SETOPTIONS, KEEPALIVE, SETTIMEOUT, GETTIMEOUT, GETTIMELEFT = 0x80045704, 0x80045705, 0xC0045706, 0x80045707, 0x8004570A
CAN_SET_TIMEOUT, CAN_MAGIC_CLOSE, CAN_KEEPALIVE = 0x80, 0x100, 0x8000


@dataclass(frozen=True)
class Behaviour:
    """How one device behaves; the defaults are those of a good one."""

    identity: str = "FUSE hardware watchdog"
    timeout_seconds: int = 60
    """Until it is set."""
    granted_seconds: int | None = None
    """The timeout that any SETTIMEOUT gets instead of its own argument."""
    min_seconds: int = 1
    """SETTIMEOUT refuses less."""
    refuses_timeout: bool = False
    refuses_feeding: bool = False
    magic_close: bool = True
    """Without it, any close stops the device."""
    nowayout: bool = False
    """Nothing stops it once it runs."""
    fires: bool = True
    """If not, it does all that a watchdog does but that."""
    tells_time_left: bool = True
    boot_status: int = 0
    permitted: bool = True
    is_watchdog: bool = True
    """If not, it is a file that knows no ioctl."""


class Refused(Exception):
    """The request fails with this errno."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Device:
    """One watchdog: what its file does, and when it fires."""

    def __init__(self, behaviour: Behaviour, record: Callable[..., None]) -> None:
        self.behaviour, self.record = behaviour, record
        self.timeout_seconds = behaviour.timeout_seconds
        self.is_open = self.is_armed = self.saw_magic = False
        self.fed_at = 0.0

    @property
    def fires_at(self) -> float:
        return self.fed_at + self.timeout_seconds if self.is_armed and self.behaviour.fires else float("inf")

    def open(self, pid: int) -> None:
        if not self.behaviour.permitted:
            raise Refused(errno.EACCES)
        if self.is_open:
            raise Refused(errno.EBUSY)
        self.record("open", pid=pid)
        self.is_open, self.is_armed, self.saw_magic = True, self.behaviour.is_watchdog, False
        self.fed_at = now()

    def write(self, data: bytes) -> None:
        self.feed(written=data.decode("ascii", "replace"))
        self.saw_magic = b"V" in data
        if self.saw_magic:
            self.record("magic")

    def close(self) -> None:
        self.is_open = False
        stops = (self.saw_magic or not self.behaviour.magic_close) and not self.behaviour.nowayout
        self.is_armed = self.is_armed and not stops
        self.record("close", armed=self.is_armed)

    def feed(self, **details: str) -> None:
        if self.behaviour.refuses_feeding:
            raise Refused(errno.EIO)
        self.fed_at = now()
        self.record("feed", **details)

    def fire(self) -> None:
        self.is_armed = False
        self.record("fired")

    def ioctl(self, command: int, argument: bytes) -> bytes:
        """The answer, as many bytes as the command's number says."""
        behaviour = self.behaviour
        if not behaviour.is_watchdog:
            raise Refused(errno.ENOTTY)
        if command == GETSUPPORT:
            options = CAN_SET_TIMEOUT | CAN_KEEPALIVE | CAN_MAGIC_CLOSE * behaviour.magic_close
            return struct.pack("<II32s", options, 1, behaviour.identity.encode())
        if command == SETTIMEOUT:
            self._set_timeout(*struct.unpack("<i", argument))
        elif command == KEEPALIVE:
            self.feed()
        elif command == SETOPTIONS:
            self._disable()
        return struct.pack("<i", self._value(command))

    def _value(self, command: int) -> int:
        if command in (SETTIMEOUT, GETTIMEOUT):
            return self.timeout_seconds
        if command == GETBOOTSTATUS:
            return self.behaviour.boot_status
        if command == GETTIMELEFT and self.behaviour.tells_time_left:
            return max(0, int(self.fires_at - now())) if self.is_armed else 0
        if command in (GETSTATUS, KEEPALIVE, SETOPTIONS):
            return 0
        raise Refused(errno.EOPNOTSUPP)

    def _set_timeout(self, seconds: int) -> None:
        if self.behaviour.refuses_timeout or seconds < self.behaviour.min_seconds:
            self.record("settimeout", asked_seconds=seconds, granted_seconds=None)
            raise Refused(errno.EINVAL)
        self.timeout_seconds = self.behaviour.granted_seconds or seconds
        self.fed_at = now()  # the kernel's core feeds as well whenever the timeout of a running device is set
        self.record("settimeout", asked_seconds=seconds, granted_seconds=self.timeout_seconds)

    def _disable(self) -> None:
        if self.behaviour.nowayout:
            raise Refused(errno.EBUSY)
        self.is_armed = False
        self.record("disabled")


def now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)
