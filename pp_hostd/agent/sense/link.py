"""Changes of links and addresses, from the kernel as they happen: whoever listens can check the API at once."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import struct
from collections.abc import Iterator
from typing import Callable

GROUPS = 0x1 | 0x10 | 0x100  # RTMGRP_LINK, RTMGRP_IPV4_IFADDR, RTMGRP_IPV6_IFADDR
NEW_LINK, DELETED_LINK, GET_LINK, NEW_ADDRESS, DELETED_ADDRESS, GET_ADDRESS = 16, 17, 18, 20, 21, 22
DONE = 3
REQUEST_DUMP, PART_OF_ANSWER = 0x1 | 0x300, 0x2
HEADER, LINK, ADDRESS, ATTRIBUTE = (
    struct.Struct("=IHHII"),
    struct.Struct("=BxHiII"),
    struct.Struct("=BBBBi"),
    struct.Struct("=HH"),
)
CARRIER_FLAGS = 0x1 | 0x40 | 0x10000  # up, running, lower up
IFLA_OPERSTATE, IFA_ADDRESS, IFA_LOCAL = 16, 1, 2
MAX_DATAGRAMS = 32
MAX_KNOWN = 8192
SETTLE_SECONDS = 0.02
DATAGRAM_BYTES = 65536


class LinkChanges:
    """Calls back once per burst of changes of carrier, operational state or addresses; other news count for nothing."""

    def __init__(self, changed: Callable[[], None], receive_buffer_bytes: int = 0) -> None:
        self._changed = changed
        self._known: dict[tuple[object, ...], object] = {}
        self._loop = asyncio.get_running_loop()
        self._settling: asyncio.TimerHandle | None = None
        self._must_ask = False
        self.overruns = 0
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK, socket.NETLINK_ROUTE)
        if receive_buffer_bytes:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self._socket.bind((0, GROUPS))
        self._loop.add_reader(self._socket, self._readable)
        self._ask(GET_LINK)

    def close(self) -> None:
        self._loop.remove_reader(self._socket)
        self._socket.close()
        if self._settling is not None:
            self._settling.cancel()

    def _ask(self, kind: int) -> None:
        """Ask for all there is, to compare news with: links first, and addresses when those have come."""
        request = HEADER.pack(HEADER.size + 4, kind, REQUEST_DUMP, kind, 0) + bytes(4)  # its number is its kind
        with contextlib.suppress(OSError):  # then the first news of each link counts as a change
            self._socket.send(request)

    def _readable(self) -> None:
        """Take what is there, but not for ever: the rest wakes us again."""
        for _ in range(MAX_DATAGRAMS):
            try:
                data = self._socket.recv(DATAGRAM_BYTES)
            except BlockingIOError:
                self._emptied()
                return
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    return
                self._overrun()
                continue
            for kind, flags, number, body in _messages(data):
                if kind == DONE and number == GET_LINK:
                    self._ask(GET_ADDRESS)
                self._take(kind, bool(flags & PART_OF_ANSWER), body)

    def _overrun(self) -> None:
        """News were lost, so anything may have changed."""
        self.overruns += 1
        self._known.clear()
        self._must_ask = True
        self._notice()

    def _emptied(self) -> None:
        """Only now is there room for the answer to what an overrun makes us ask."""
        if self._must_ask:
            self._must_ask = False
            self._ask(GET_LINK)

    def _take(self, kind: int, is_answer: bool, body: bytes) -> None:
        try:
            key, value = _fact(kind, body)
        except struct.error:
            return
        if key is None or self._known.get(key) == value:
            return
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        self._known[key] = value
        if value is None:
            del self._known[key]
        if not is_answer:
            self._notice()

    def _notice(self) -> None:
        if self._settling is None:
            self._settling = self._loop.call_later(SETTLE_SECONDS, self._settled)

    def _settled(self) -> None:
        self._settling = None
        self._changed()


def _messages(data: bytes) -> Iterator[tuple[int, int, int, bytes]]:
    while len(data) >= HEADER.size:
        length, kind, flags, number, _port = HEADER.unpack_from(data)
        if length < HEADER.size:
            return
        yield kind, flags, number, data[HEADER.size : length]
        data = data[(length + 3) & ~3 :]


def _fact(kind: int, body: bytes) -> tuple[tuple[object, ...] | None, object]:
    """Returns the key of the link or address and its state, None once it has gone; other messages have no key."""
    if kind in (NEW_LINK, DELETED_LINK):
        _family, _type, index, flags, _change = LINK.unpack_from(body)
        state = _attribute(body[LINK.size :], IFLA_OPERSTATE)
        return ("link", index), (flags & CARRIER_FLAGS, state) if kind == NEW_LINK else None
    if kind in (NEW_ADDRESS, DELETED_ADDRESS):
        family, prefix, _flags, _scope, index = ADDRESS.unpack_from(body)
        attributes = body[ADDRESS.size :]
        address = _attribute(attributes, IFA_LOCAL) or _attribute(attributes, IFA_ADDRESS)
        return ("address", index, family, prefix, address), True if kind == NEW_ADDRESS else None
    return None, None


def _attribute(data: bytes, wanted: int) -> bytes | None:
    while len(data) >= ATTRIBUTE.size:
        length, kind = ATTRIBUTE.unpack_from(data)
        if length < ATTRIBUTE.size:
            return None
        if kind & 0x3FFF == wanted:
            return data[ATTRIBUTE.size : length]
        data = data[(length + 3) & ~3 :]
    return None
