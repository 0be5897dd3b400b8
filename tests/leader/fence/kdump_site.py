"""A listener for kdump's messages on a free port of this machine, and hosts that send to it."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

from pp_hostd.leader.kdump import KdumpListener
from tests.agent.objects import until

MESSAGE = bytes.fromhex("402a301b 01000000")
"""As fence_kdump_send sends it on x86."""
JUNK = b"crashed!"


class Site:
    """A listener on a free port, and the hosts that send to it. `news` are the times at which it has called."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.news: list[float] = []
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sock:
            sock.bind(("", 0))
            self.port = sock.getsockname()[1]
        self.listener = KdumpListener(lambda: self.now, lambda: self.news.append(self.now), self.port)

    @contextlib.contextmanager
    def listening(self) -> Iterator[KdumpListener]:
        self.listener.set_listening(True)
        try:
            yield self.listener
        finally:
            self.listener.set_listening(False)

    def send(self, datagram: bytes = MESSAGE, source: str = "127.0.0.1", times: int = 1) -> None:
        with socket.socket(socket.AF_INET6 if ":" in source else socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.bind((source, 0))
            for _ in range(times):
                sock.sendto(datagram, ("::1" if ":" in source else "127.0.0.1", self.port))

    async def takes(self, datagram: bytes = MESSAGE, source: str = "127.0.0.1") -> None:
        """Junk follows it by which we know that it was read."""
        before = self.listener.ignored
        self.send(datagram, source)
        self.send(JUNK, source)
        await until(lambda: self.listener.ignored > before, "the listener has read it")
