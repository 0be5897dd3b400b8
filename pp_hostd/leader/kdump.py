"""Listens for fence_kdump's messages: a host sends them once its kernel has crashed and another one saves the dump.

A message is as authentic as its source address: nothing in it is secret.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
import struct
from collections.abc import Mapping
from typing import Callable

PORT = 7410
MESSAGES = frozenset(struct.pack(order, 0x1B302A40, 1) for order in ("<II", ">II"))
"""The magic number and the version, in the byte order of the sender."""
MESSAGE_BYTES = 8
MAX_ADDRESSES = 1000
QUIET_SECONDS = 5.0
"""An address that was silent for so long is news again. A sender repeats itself every 10 s, if nothing else is set."""
MOST_AT_ONCE = 100
REST_SECONDS = 0.1
"""After so many datagrams at once the listener rests for so long. So a flood costs little; most of it is lost."""


def is_message(datagram: bytes) -> bool:
    return datagram in MESSAGES


def plain_address(address: str) -> str:
    """The IPv4 address, if this one is mapped to IPv6. Any other in its usual form, without the interface."""
    found = ipaddress.ip_address(address.partition("%")[0])
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return str(mapped or found)


class KdumpListener:
    """Calls `changed` when a message comes from an address that was silent before. `trouble` says why the listener
    can't listen; empty if all is well. `ignored` counts the datagrams that are no messages."""

    def __init__(self, clock: Callable[[], float], changed: Callable[[], None], port: int = PORT) -> None:
        self.trouble = ""
        self.ignored = 0
        self._clock, self._changed, self._port = clock, changed, port
        self._seen: dict[str, float] = {}
        self._socket: socket.socket | None = None
        self._rest: asyncio.TimerHandle | None = None

    @property
    def seen(self) -> Mapping[str, float]:
        """The time of the last message from each address, the oldest first."""
        return self._seen

    def set_listening(self, wanted: bool) -> None:
        """Opens or closes the port, in a running loop. The listener forgets what it has seen when it closes. It tries
        again at each call as long as it can't open."""
        if not wanted:
            self._close()
        elif self._socket is None:
            try:
                self._socket = _listening(self._port)
            except OSError as error:
                what = f"can't listen for messages of kdump on UDP port {self._port}: {os.strerror(error.errno or 0)}"
                self.trouble = f"{what}. To see who has the port: ss -lunp 'sport = :{self._port}'"
            else:
                self.trouble = ""
                self._read_on(self._socket)

    def _close(self) -> None:
        if self._rest is not None:
            self._rest.cancel()
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()
        self.trouble, self._socket, self._rest = "", None, None
        self._seen.clear()

    def _read_on(self, sock: socket.socket) -> None:
        asyncio.get_running_loop().add_reader(sock, self._readable, sock)

    def _readable(self, sock: socket.socket) -> None:
        news = False
        for _ in range(MOST_AT_ONCE):
            try:
                datagram, source = sock.recvfrom(MESSAGE_BYTES + 1)
            except BlockingIOError:
                break
            except OSError:  # of one datagram; if of the socket, the rest bounds its cost
                continue
            if is_message(datagram):
                news |= self._heard(plain_address(source[0]))
            else:
                self.ignored += 1
        else:
            loop = asyncio.get_running_loop()
            loop.remove_reader(sock)
            self._rest = loop.call_later(REST_SECONDS, self._read_on, sock)
        if news:
            self._changed()

    def _heard(self, address: str) -> bool:
        """Whether that is news."""
        now, before = self._clock(), self._seen.pop(address, None)
        self._seen[address] = now
        if len(self._seen) > MAX_ADDRESSES:
            del self._seen[next(iter(self._seen))]
        return before is None or now - before >= QUIET_SECONDS


def _listening(port: int) -> socket.socket:
    """On all addresses: by one socket, to which IPv4 is mapped; by one of IPv4, if the kernel has no IPv6."""
    try:
        sock = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    except OSError:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    try:
        if sock.family is socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind(("", port))
    except OSError:
        sock.close()
        raise
    return sock
