"""The guests' network: a namespace with a bridge, cables for guests to come, and the API at the bridge's address.

python -m tests.machines.switch DIRECTORY UPSTREAM_PORT CABLES
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from pathlib import Path

from pyroute2 import IPRoute

from tests.harness.bed import relay, wires
from tests.harness.bed.namespaces import CLONE_NEWNET, die_with_parent, keep_only, or_exit, unshare

API_SERVER = 1
FIRST_GUEST = 10


def tap(number: int) -> str:
    """The cable of the guest with that number."""
    return f"tap{number}"


def main(directory: Path, upstream_port: int, cables: int) -> None:
    """Until killed; `directory` holds the relay's control socket, and `ready` once all is laid."""
    die_with_parent()
    near, far = socket.socketpair()
    if os.fork() == 0:
        or_exit(lambda: _relay(far, directory / "relay", upstream_port))
    unshare(CLONE_NEWNET)
    wires.add_bridge([API_SERVER])
    for number in range(FIRST_GUEST, FIRST_GUEST + cables):
        _lay(tap(number))
    listener = socket.socket()
    listener.bind((wires.addresses_of(API_SERVER)[0], wires.API_PORT))
    listener.listen(128)
    socket.send_fds(near, [b"l"], [listener.fileno()])
    (directory / "ready").touch()
    signal.pause()


def _lay(name: str) -> None:
    with IPRoute() as netlink:
        netlink.link("add", ifname=name, kind="tuntap", mode="tap")
        (bridge,) = netlink.link_lookup(ifname=wires.BRIDGE)
        (port,) = netlink.link_lookup(ifname=name)
        netlink.link("set", index=port, master=bridge, state="up")


def _relay(link: socket.socket, control: Path, upstream_port: int) -> None:
    """In the machine's own network, where the cluster listens."""
    keep_only([link.fileno()])
    die_with_parent()
    _, descriptors, _, _ = socket.recv_fds(link, 1, 64)
    relay.run([socket.socket(fileno=each) for each in descriptors], upstream_port, control)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
