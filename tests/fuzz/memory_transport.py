"""The far end of a connection without a socket: it keeps what the protocol does to it."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any


class MemoryTransport(asyncio.Transport):
    """Delivers pieces to a buffered protocol for as long as that reads, and tells it once that the end has come."""

    def __init__(self, protocol: asyncio.BufferedProtocol, pieces: list[bytes]) -> None:
        super().__init__()
        self._protocol = protocol
        self._pieces = deque(pieces)
        self._paused = False
        self.said = bytearray()
        self.ended = False
        self.closed = False
        protocol.connection_made(self)

    def deliver(self) -> bool:
        """Hand the next piece over, if the protocol wants it. Whether anything was done."""
        if self._paused or self.closed or not self._pieces:
            return False
        piece = self._pieces.popleft()
        buffer: Any = self._protocol.get_buffer(-1)
        buffer[: len(piece)] = piece
        self._protocol.buffer_updated(len(piece))
        return True

    def part(self) -> None:
        """The client hangs up."""
        if not self.closed and not self._protocol.eof_received():
            self.abort()

    def write(self, data: Any) -> None:
        assert not self.ended, "something is said after the end"
        self.said += data

    def write_eof(self) -> None:
        self.ended = True

    def pause_reading(self) -> None:
        self._paused = True

    def resume_reading(self) -> None:
        self._paused = False

    def close(self) -> None:
        self.abort()

    def abort(self) -> None:
        if not self.closed:
            self.closed = True
            asyncio.get_running_loop().call_soon(self._protocol.connection_lost, None)

    def is_closing(self) -> bool:
        return self.closed

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass
