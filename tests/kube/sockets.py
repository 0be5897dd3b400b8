"""The kernel's view of this process's connections, from outside the client."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from urllib.parse import urlsplit

CLOSE_WAIT = "08"


def is_closed_by(url: str) -> bool:
    """Whether the server has closed our one connection to it."""
    return _columns(url)[3] == CLOSE_WAIT


def has_heard_from(url: str) -> bool:
    """Whether the server has said something that we have not read."""
    return int(_columns(url)[4].partition(":")[2], 16) > 0


def our_socket_to(url: str) -> socket.socket:
    """A duplicate of our one connection to the server."""
    inode = _columns(url)[9]
    (descriptor,) = [number for number, target in _descriptors().items() if target == f"socket:[{inode}]"]
    return socket.socket(fileno=os.dup(descriptor))


def sockets_of_this_process() -> set[str]:
    return {target for target in _descriptors().values() if target.startswith("socket:")}


def _columns(url: str) -> list[str]:
    """The row of /proc/net/tcp for our end of the connection."""
    rows = [line.split() for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:]]
    (row,) = [row for row in rows if row[2].endswith(f":{urlsplit(url).port:04X}")]
    return row


def _descriptors() -> dict[int, str]:
    found = {}
    for name in os.listdir("/proc/self/fd"):
        path = f"/proc/self/fd/{name}"
        if os.path.lexists(path):  # all but the one that listed the directory
            found[int(name)] = os.readlink(path)
    return found
