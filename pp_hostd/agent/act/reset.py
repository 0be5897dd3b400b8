"""Resetting this host in the order of rule 8: nothing on the way can hang, and all of it was ready before arming."""

from __future__ import annotations

import contextlib
import ctypes
import os
from typing import Callable, NoReturn

from pp_hostd.agent.act.watchdog import Watchdog

SYSRQ = "/proc/sysrq-trigger"
RESTART, POWER_OFF = 0x01234567, 0x4321FEDC
SYNC_SECONDS = 0.5
"""The short, bounded pause in which the disks are synced and the Node may take its record."""
WATCHDOG_GRACE_SECONDS = 5.0
"""A watchdog that is to do it alone and has not by then, after its timeout, is helped by software."""


def ordered_by(who: str, watchdog_only: bool) -> str:
    """The cause of a reset that a person has ordered; it completes "the last boot ended because ..."."""
    return f"{who} ordered a test {'of its watchdog alone' if watchdog_only else 'reset'}"


class Reset:
    """The means of a reset, opened while there is time. The watchdog is the guarantee, all the rest is haste."""

    def __init__(self, record_file: str, sysrq: str = SYSRQ) -> None:
        """Opens the means of a reset. `troubles` names each that can't be opened; the reset does without it.

        `record_file` will hold the record for the next boot (sense/boot.py, which must have read the last one's).
        """
        self.troubles: list[str] = []
        self.powers_off = False
        """A power-off was ordered, so the host ends off: with its watchdog's whole timeout to get there."""
        self._record_file = self._open(record_file, os.O_CREAT | os.O_TRUNC)
        self._sysrq = self._open(sysrq, 0)
        self._reboot = ctypes.CDLL(None, use_errno=True).reboot
        self._reboot.argtypes, self._reboot.restype = [ctypes.c_int], ctypes.c_int

    def _open(self, path: str, flags: int) -> int:
        try:
            return os.open(path, os.O_WRONLY | os.O_CLOEXEC | flags, 0o600)
        except OSError as error:
            self.troubles.append(f"{path} can't be opened for a reset ({error.strerror})")
            return -1

    def begin(self, watchdog: Watchdog | None, record: str, start_node_record: Callable[[], None]) -> None:
        """All that is to happen before the disks get SYNC_SECONDS, after which `finish` is due."""
        if watchdog is not None and not self.powers_off:
            watchdog.shorten()
        self._write_records(record.encode(), start_node_record)
        self._press(b"s")

    def sync(self) -> None:
        """Begin to write what the disks owe; nobody waits for them."""
        with contextlib.suppress(OSError):
            if os.fork() == 0:
                self._sync_all()

    def _sync_all(self) -> NoReturn:
        try:
            os.sync()
        finally:
            os._exit(0)

    def leave_to_watchdog(self, record: str) -> None:
        """Record and sync, and nothing that hastens the watchdog: whether it fires in time is what is to be seen."""
        self._write_records(record.encode(), lambda: None)
        self._press(b"s")

    def finish(self) -> str:
        """End the kernel. If it returns, nothing here had the right to: the watchdog, fed no more, will do it."""
        if self.powers_off:
            self._reboot(POWER_OFF)
            self._press(b"o")
        else:
            self._press(b"b")
            self._reboot(RESTART)
        return f"this program could not reset the host ({os.strerror(ctypes.get_errno())}); its watchdog is not fed"

    def close(self) -> None:
        for descriptor in (self._record_file, self._sysrq):
            if descriptor >= 0:
                os.close(descriptor)
        self._record_file = self._sysrq = -1

    def _write_records(self, record: bytes, start_node_record: Callable[[], None]) -> None:
        with contextlib.suppress(Exception):  # nothing may come between the decision and the reset (rule 7)
            start_node_record()
        with contextlib.suppress(OSError):
            if self._record_file >= 0 and os.fork() == 0:  # a disk that hangs holds up this child, and nobody else
                self._write_file(record)

    def _write_file(self, record: bytes) -> NoReturn:
        try:
            os.write(self._record_file, record)
            os.fsync(self._record_file)
        finally:
            os._exit(0)

    def _press(self, key: bytes) -> None:
        with contextlib.suppress(OSError):  # a kernel without it, or no right to: the next means is meant for that
            os.write(self._sysrq, key)


class DryReset:
    """Says what it would do, and does nothing."""

    troubles: tuple[str, ...] = ()
    powers_off = False

    def sync(self) -> None:
        pass

    def begin(self, watchdog: Watchdog | None, record: str, start_node_record: Callable[[], None]) -> None:
        pass

    def leave_to_watchdog(self, record: str) -> None:
        pass

    def finish(self) -> str:
        return "dry run: the agent would have reset this host now, and no longer fed its watchdog"

    def close(self) -> None:
        pass
