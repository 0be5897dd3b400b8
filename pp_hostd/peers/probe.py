"""Trying whether a host is there: a connection to its peer port that is reset at once. Nothing is sent.

The other's kernel does all of it: it gives its agent a connection only once there is something to read.
"""

from __future__ import annotations

import asyncio
import enum
import errno
import os
import socket
import struct
from functools import lru_cache
from typing import Callable

from pp_hostd.frozen import frozen
from pp_hostd.kube.connection import from_exception
from pp_hostd.model.endpoint import is_address
from pp_hostd.model.reachability import ATTEMPT_GAP_SECONDS, ATTEMPT_SECONDS, ATTEMPTS, Finding

_REFUSED = (errno.ECONNREFUSED, errno.ECONNRESET)
_RESET_WHEN_CLOSED = struct.pack("ii", 1, 0)
_is_literal = lru_cache(maxsize=8)(is_address)  # an agent probes the same few hosts as long as it lives
_SILENT = (errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENETDOWN, errno.ENONET)


class Contact(enum.Enum):
    """The outcome of a probe, as metrics name it."""

    REACHED = "reached"
    """The host took the connection."""
    REFUSED = "refused"
    """The host's kernel refused the connection: the host is up, and its agent does not listen."""
    SILENT = "silent"
    UNTRIED = "untried"
    """The probe failed on this host itself, which lacks sockets or ports, for example. It says nothing about the
    other."""


@frozen
class Probed:
    """The outcome of a probe; `why` says why nobody took the connection, and is empty if somebody did."""

    contact: Contact
    why: str = ""

    @property
    def finding(self) -> Finding:
        """Whether the host was reached; None if that was not found out."""
        if self.contact is Contact.UNTRIED:
            return None
        return self.contact is not Contact.SILENT


_TAKEN = Probed(Contact.REACHED)
_UNANSWERED = Probed(Contact.SILENT, "nobody answered in time")


class Attempt:
    """One connection, opened and reset. `ended` is called once, by the deadline, unless `cancel` comes before.

    Callbacks, and no task: an agent makes one in two seconds as long as it lives.
    """

    __slots__ = ("_ended", "_sock", "_timer", "is_over")

    def __init__(
        self, address: str, port: int, ended: Callable[[Probed], None], deadline_seconds: float = ATTEMPT_SECONDS
    ) -> None:
        self._ended, self.is_over = ended, False
        self._sock: socket.socket | None = None
        self._timer: asyncio.TimerHandle | None = None
        if not _is_literal(address):  # a name would be looked up, without a deadline
            self._end(Probed(Contact.UNTRIED, f"{address!a} is not an address"))
            return
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        try:
            self._sock = sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_WHEN_CLOSED)
            number = sock.connect_ex((address, port))
        except OSError as error:
            self._end(_failed(error))
            return
        if number != errno.EINPROGRESS:
            self._answered(number)
            return
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(deadline_seconds, self._end, _UNANSWERED)
        # By number: asyncio would render a socket object, which takes four system calls, only to miss it in a table.
        loop.add_writer(sock.fileno(), lambda: self._answered(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)))

    def cancel(self) -> None:
        self.is_over = True
        if self._timer is not None:
            self._timer.cancel()
        number = -1 if self._sock is None else self._sock.fileno()
        if self._sock is not None and number >= 0:
            asyncio.get_running_loop().remove_writer(number)
            self._sock.close()

    def _answered(self, number: int) -> None:
        self._end(_failed(OSError(number, os.strerror(number))) if number else _TAKEN)

    def _end(self, probed: Probed) -> None:
        self.cancel()
        self._ended(probed)


async def probe(address: str, port: int, deadline_seconds: float = ATTEMPT_SECONDS) -> Probed:
    """Makes one attempt. Ends by the deadline; raises nothing."""
    outcome: asyncio.Future[Probed] = asyncio.get_running_loop().create_future()
    attempt = Attempt(address, port, outcome.set_result, deadline_seconds)
    try:
        return await outcome
    finally:
        attempt.cancel()


def _failed(error: OSError) -> Probed:
    number, why = error.errno, from_exception(error)[1]
    if number in _REFUSED:
        return Probed(Contact.REFUSED, why)
    return Probed(Contact.SILENT if number in _SILENT else Contact.UNTRIED, why)


async def reach(address: str, port: int, *, attempts: int = ATTEMPTS) -> Probed:
    """Probes the host so often, a moment apart, until one probe reaches it. It is silent if all of them met silence.

    Ends SILENT_AFTER_SECONDS later at the latest; raises nothing.
    """
    waiting = {asyncio.ensure_future(_later(address, port, number)) for number in range(attempts)}
    missed: list[Probed] = []
    try:
        while waiting:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for probed in (task.result() for task in done):
                if probed.finding:
                    return probed
                missed.append(probed)
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    return next((each for each in missed if each.contact is Contact.UNTRIED), missed[-1])


async def _later(address: str, port: int, number: int) -> Probed:
    await asyncio.sleep(number * ATTEMPT_GAP_SECONDS)
    return await probe(address, port)
