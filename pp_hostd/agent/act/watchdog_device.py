"""One open watchdog of the kernel: its ioctls as typed outcomes. Nothing here raises for what a device may do."""

from __future__ import annotations

import enum
import errno
import fcntl
import os
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
