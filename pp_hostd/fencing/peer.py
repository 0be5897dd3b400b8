"""Whether the process at the other end of a Unix socket may have fence agents run."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Collection

LEADER_UNIT = "pp-leader.service"
ROOT = 0
HIERARCHIES = ("", "name=systemd")
"""The unified one, and the one that systemd keeps where there are others beside it."""


def refusal(peer: socket.socket) -> str:
    """Returns why the process at the other end is refused; empty if it is not."""
    pid, user, _ = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    try:
        with open(f"/proc/{pid}/cgroup", encoding="utf-8", errors="replace") as file:
            groups = file.read()
    except OSError as error:
        groups = ""
        seen = f"its control group can't be read ({error.strerror})"
    else:
        seen = "it is not that unit"
    if is_welcome(user, groups, {ROOT, os.geteuid()}):
        return ""
    return f"only {LEADER_UNIT} and root may have fence agents run; process {pid} of user {user} asked, and {seen}"


def is_welcome(user: int, groups: str, users: Collection[int]) -> bool:
    """By its user, or by its control groups (/proc/PID/cgroup): only systemd itself makes one of a service right below
    slices. Users make groups of any name, but below their own user@UID.service, and containers below their own scope.
    """
    return user in users or any(map(_is_leader, groups.splitlines()))


def _is_leader(group: str) -> bool:
    _, _, rest = group.partition(":")
    hierarchy, _, path = rest.partition(":")
    *above, last = path.lstrip("/").split("/")
    return hierarchy in HIERARCHIES and last == LEADER_UNIT and all(part.endswith(".slice") for part in above)
