"""A TCP connection with TLS on it, made of plain socket operations.

asyncio's own TLS transports keep buffers, timers and half-closed connections of their own, different in each Python
version. Here every await is one socket operation, so a deadline can end it anywhere, and closing closes the descriptor.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Awaitable
from typing import Callable, TypeVar

T = TypeVar("T")

CHUNK_BYTES = 16384
HOUSEKEEPING_CHUNKS = 4  # more than TLS itself ever has to say on an idle connection
# A far side that vanished without a word is noticed within about 11 seconds.
KEEPALIVE = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 2),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 11000),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
)


class Stream:
    """Bytes to and from one server. Raises OSError when the network fails and ssl.SSLError when TLS does."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, server_name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket = sock
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=server_name)

    @classmethod
    async def connect(cls, address: str, port: int, context: ssl.SSLContext, server_name: str) -> Stream:
        """Connect to an address literal and shake hands. Nothing stays open if this fails or is cancelled."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            for level, option, value in KEEPALIVE:
                sock.setsockopt(level, option, value)
            await _done(asyncio.get_running_loop().sock_connect(sock, (address, port)))
            stream = cls(sock, context, server_name)
            await stream._drive(stream._tls.do_handshake)
            return stream
        except BaseException:
            sock.close()
            raise

    async def send(self, data: bytes) -> None:
        """Hand all of `data` to the kernel."""
        try:
            await self._drive(lambda: self._tls.write(data))
        except ConnectionError:
            await self.receive()  # raises, if the last that the server said was that TLS refuses us
            raise

    async def receive(self) -> bytes:
        """The next bytes, or b"" when the server has closed the connection."""
        try:
            return await self._drive(lambda: self._tls.read(CHUNK_BYTES))
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
            return b""

    def stale(self) -> bool:
        """Whether an idle connection is of no more use: the server closed it, or said something that nobody asked."""
        try:
            for _ in range(HOUSEKEEPING_CHUNKS):
                data = self._socket.recv(CHUNK_BYTES)
                if not data:
                    return True
                self._incoming.write(data)
            return True
        except BlockingIOError:
            pass
        except OSError:
            return True
        try:
            self._tls.read(1)
        except ssl.SSLWantReadError:
            return False  # at most TLS housekeeping, such as session tickets, was waiting
        except ssl.SSLError:
            return True
        return True

    def close(self) -> None:
        """Close at once; nothing is awaited and nothing lingers."""
        self._socket.close()

    async def _drive(self, operation: Callable[[], T]) -> T:
        """Run a TLS operation, moving bytes between it and the socket until it is done."""
        while True:
            try:
                result = operation()
            except ssl.SSLWantReadError:
                await self._flush()
                await asyncio.sleep(0)  # or a server that always has more to say would starve the loop and its timers
                data = await _done(self._loop.sock_recv(self._socket, CHUNK_BYTES))
                if data:
                    self._incoming.write(data)
                else:
                    self._incoming.write_eof()
            except ssl.SSLError:
                with contextlib.suppress(OSError):
                    await self._flush()  # the alert that tells the server why
                raise
            else:
                await self._flush()
                return result

    async def _flush(self) -> None:
        if self._outgoing.pending:
            await _done(self._loop.sock_sendall(self._socket, self._outgoing.read()))


async def _done(operation: Awaitable[T]) -> T:
    """The result. A failure comes without asyncio's traceback, whose frames hold the future that holds the failure."""
    try:
        return await operation
    except OSError as error:
        raise error.with_traceback(None) from None
