"""Messages to systemd, and the descriptors it keeps for us. Nothing here blocks or raises: drops are counted."""

from __future__ import annotations

import os
import socket
import time
from typing import Callable, NamedTuple

WATCHDOG = "watchdog"
"""The name under which systemd keeps the watchdog's descriptor."""
MAX_UNSENT = 16


class _Owed(NamedTuple):
    text: str
    descriptor: int | None


class Notify:
    """Our end of systemd's notification socket. A message that must arrive is sent again until systemd has it; the
    newest MAX_UNSENT of these are kept."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._socket = _connected()
        self._alive_every_seconds = _watchdog_seconds() / 4
        self._alive_at = float("-inf")
        self._status = ""
        self._owed: list[_Owed] = []
        self.dropped = 0

    def ready(self) -> None:
        self._owe("READY=1")

    def reloading(self) -> None:
        """systemd wants to know when, on its own clock; `ready` ends it."""
        self._owe(f"RELOADING=1\nMONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")

    def stopping(self) -> None:
        self._owe("STOPPING=1")

    def extend_timeout(self, seconds: float) -> None:
        """Starting or stopping may take so long from now on."""
        self._owe(f"EXTEND_TIMEOUT_USEC={int(seconds * 1_000_000)}")

    def store(self, descriptor: int, name: str = WATCHDOG) -> None:
        """Keep this descriptor over our restart. FDPOLL=0, or systemd would drop it at the first hang-up it sees."""
        self._owe(f"FDSTORE=1\nFDNAME={name}\nFDPOLL=0", descriptor)

    def forget(self, name: str = WATCHDOG) -> None:
        """A stored descriptor would keep a disarmed watchdog open; one that is yet to be stored is closed by now."""
        self._owed = [each for each in self._owed if each.descriptor is None]
        self._owe(f"FDSTOREREMOVE=1\nFDNAME={name}")

    def judged(self, sentence: str) -> None:
        """A judgement is finished: the status if it is new, and that we live if that is due."""
        self._pay()
        status = " ".join(sentence.split())
        if status != self._status and self._send(_Owed(f"STATUS={status}", None)):
            self._status = status
        now = self._clock()
        due = self._alive_every_seconds and now >= self._alive_at + self._alive_every_seconds
        if due and self._send(_Owed("WATCHDOG=1", None)):
            self._alive_at = now

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _owe(self, text: str, descriptor: int | None = None) -> None:
        self._owed = [*self._owed, _Owed(text, descriptor)][-MAX_UNSENT:]
        self._pay()

    def _pay(self) -> None:
        while self._owed and self._send(self._owed[0]):
            del self._owed[0]

    def _send(self, message: _Owed) -> bool:
        if self._socket is None:
            return True
        try:
            descriptors = [] if message.descriptor is None else [message.descriptor]
            socket.send_fds(self._socket, [message.text.encode("utf-8", "replace")], descriptors)
        except OSError:
            self.dropped += 1
            return False
        return True


def inherited_descriptors() -> list[tuple[str, int]]:
    """The descriptors that systemd kept for us, by name; our children get neither them nor word of them."""
    names = os.environ.pop("LISTEN_FDNAMES", "").split(":")
    count, pid = os.environ.pop("LISTEN_FDS", ""), os.environ.pop("LISTEN_PID", "")
    if pid != str(os.getpid()) or not count.isdecimal():
        return []
    return [(name, descriptor) for name, descriptor in zip(names, range(3, 3 + int(count))) if _keep(descriptor)]


def _keep(descriptor: int) -> bool:
    try:
        os.set_inheritable(descriptor, False)
    except OSError:  # not open
        return False
    return True


def _connected() -> socket.socket | None:
    """The socket that NOTIFY_SOCKET names; None if there is none, or nobody listens there."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return None
    near = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    near.setblocking(False)
    try:
        near.connect(f"\0{address[1:]}" if address.startswith("@") else address)  # @: in the abstract namespace
    except OSError:
        near.close()
        return None
    return near


def _watchdog_seconds() -> float:
    """systemd's own watchdog over this process (WatchdogSec=); 0 is none."""
    microseconds = os.environ.get("WATCHDOG_USEC", "")
    if os.environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()) or not microseconds.isdecimal():
        return 0.0
    return int(microseconds) / 1_000_000
