"""Ways from this machine to the ports that daemons open on the loopback interfaces of a bed's hosts.

The listening sockets belong to this machine's network, and each host has a process that serves its own ones.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.harness.bed.host import Host

CHECKOUT = Path(__file__).parents[2]
SERVES = """
import asyncio, socket, sys
from tests.harness.bed.relay import Relay

async def main():
    for argument in sys.argv[1:]:
        descriptor, port = map(int, argument.split(":"))
        await asyncio.start_server(Relay(port).serve, sock=socket.socket(fileno=descriptor))
    await asyncio.Event().wait()

asyncio.run(main())
"""


class Doors:
    """`open` those of every host, and again once one has booted; while a host is down nobody answers at its doors."""

    def __init__(self, ports: Mapping[str, Sequence[int]]) -> None:
        """`ports` are those on each host, by its name."""
        self._listeners = {
            name: {port: socket.create_server(("127.0.0.1", 0)) for port in each} for name, each in ports.items()
        }
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def address(self, host: str, port: int) -> str:
        """Where this port of the host is reached."""
        return f"127.0.0.1:{self._listeners[host][port].getsockname()[1]}"

    def open(self, hosts: Sequence[Host]) -> None:
        for host in hosts:
            process = self._processes.get(host.name)
            if host.is_up() and (process is None or process.poll() is not None):
                self._processes[host.name] = self._served(host)

    def _served(self, host: Host) -> subprocess.Popen[bytes]:
        listeners = self._listeners[host.name]
        pairs = [f"{listener.fileno()}:{port}" for port, listener in listeners.items()]
        return subprocess.Popen(
            host.command(sys.executable, "-c", SERVES, *pairs),
            pass_fds=[listener.fileno() for listener in listeners.values()],
            env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
            start_new_session=True,
        )

    def close(self) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait()
        for listeners in self._listeners.values():
            for listener in listeners.values():
                listener.close()
