"""The bed's main process: makes its network, boots hosts into it, and does to its wires what a test orders.

unshare -Urm python -m tests.harness.bed.switch DIRECTORY UPSTREAM_PORT API_SERVERS
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

from tests.harness.bed import init, machine, relay, wires
from tests.harness.bed.boot import Boot
from tests.harness.bed.channel import Commands, answer_one, listen
from tests.harness.bed.namespaces import CLONE_NEWNET, die_with_parent, hide_machine, keep_only, mount, or_exit, unshare

DISK_BYTES = 4 << 20


class Switch:
    """The commands that a test can order."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def commands(self) -> Commands:
        return {
            "add": self.add,
            "boot": self.boot,
            "set_carrier": wires.set_carrier,
            "set_neighbours": lambda neighbours, lost: wires.set_neighbours(wires.BRIDGE, neighbours, lost),
        }

    def add(self, name: str) -> None:
        """A host's disk, which outlives its boots."""
        disk = self._directory / name / "disk"
        disk.mkdir()
        mount("tmpfs", str(disk), f"size={DISK_BYTES},mode=700")

    def boot(self, boots: list[dict[str, Any]]) -> None:
        """All of them at once; returns when they are up."""
        started = [(boot["number"], *machine.power_on(Boot(**boot))) for boot in boots]
        for number, pid, link in started:
            _expect(link, machine.PLUG_ME_IN)
            wires.plug_in(number, pid)
            link.send(machine.PLUGGED)
        for _, _, link in started:
            _expect(link, init.UP)
            link.close()


def _expect(link: socket.socket, word: bytes) -> None:
    if link.recv(1) != word:
        raise ChildProcessError("a host failed to boot; the bed's log tells why")


def main(directory: Path, upstream_port: int, api_servers: int) -> None:
    """Serve until killed."""
    die_with_parent()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the hosts' processes: their records tell
    hide_machine(directory)
    near, far = socket.socketpair()
    if os.fork() == 0:
        or_exit(lambda: _relay(far, directory / "relay", upstream_port))
    unshare(CLONE_NEWNET)
    numbers = range(1, api_servers + 1)
    wires.add_bridge(numbers)
    listeners = [_listener(address) for number in numbers for address in wires.addresses_of(number)]
    socket.send_fds(near, [b"l"], [listener.fileno() for listener in listeners])
    commands = Switch(directory).commands()
    listener = listen(directory / "switch")
    while True:
        answer_one(listener, commands)


def _relay(link: socket.socket, control: Path, upstream_port: int) -> None:
    keep_only([link.fileno()])
    die_with_parent()
    _, descriptors, _, _ = socket.recv_fds(link, 1, 64)
    relay.run([socket.socket(fileno=each) for each in descriptors], upstream_port, control)


def _listener(address: str) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    listener.bind((address, wires.API_PORT))
    listener.listen(128)
    return listener


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
