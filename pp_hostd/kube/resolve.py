"""Host names to addresses, outside the event loop: getaddrinfo knows no deadline, so a short-lived child asks it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

from pp_hostd.kube.child import answer_of
from pp_hostd.kube.deadline import TimedOut
from pp_hostd.model.address import is_address

FRESH_SECONDS = 60.0
MAX_ANSWER_BYTES = 65536
CHILD = """
import socket, sys
found = socket.getaddrinfo(sys.argv[1], None, type=socket.SOCK_STREAM)
print("\\n".join(dict.fromkeys(entry[4][0] for entry in found)))
"""
COMMAND = (sys.executable, "-I", "-S", "-c", CHILD)


class Resolver:
    """Remembers the last good answer for each name, and uses it when no better one can be had in time."""

    def __init__(self, command: Sequence[str] = COMMAND) -> None:
        """`command` gets the name as its last argument and prints one address a line."""
        self._command = command
        self._known: dict[str, tuple[float, list[str]]] = {}

    async def addresses(self, host: str, deadline_seconds: float) -> list[str]:
        """The addresses of `host`, or an OSError that says why there are none."""
        if is_address(host):
            return [host]
        now = asyncio.get_running_loop().time()
        asked_at, last_good = self._known.get(host, (0.0, []))
        if last_good and now - asked_at < FRESH_SECONDS:
            return last_good
        try:
            found = await _ask_child([*self._command, host], deadline_seconds)
        except (OSError, TimedOut) as error:
            if last_good:
                return last_good
            raise OSError(f"the host name {host} can't be resolved ({str(error) or 'no answer in time'})") from None
        self._known[host] = (now, found)
        return found


async def _ask_child(command: list[str], deadline_seconds: float) -> list[str]:
    answer = await answer_of(command, deadline_seconds, MAX_ANSWER_BYTES)
    found = [line for line in answer.decode("ascii", "replace").split("\n") if is_address(line)]
    if not found:
        raise OSError("no such name")
    return found
