"""Host names to addresses, outside the event loop: getaddrinfo knows no deadline, so a short-lived child asks it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Sequence

from pp_hostd.kube.deadline import Deadline, TimedOut
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
    child = subprocess.Popen(  # noqa: ASYNC220  (asyncio's own would start a thread per child on Python 3.9 to 3.11)
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert child.stdout is not None
    try:
        with Deadline(deadline_seconds):
            answer = await _read_to_end(child.stdout.fileno())
    finally:
        child.kill()  # it has nothing more to say, whether it answered or not
        child.stdout.close()
        await _reap(child)
    found = [line for line in answer.decode("ascii", "replace").split("\n") if is_address(line)]
    if not found:
        raise OSError("no such name")
    return found


async def _read_to_end(descriptor: int) -> bytes:
    loop = asyncio.get_running_loop()
    os.set_blocking(descriptor, False)
    parts: list[bytes] = []
    while sum(map(len, parts)) < MAX_ANSWER_BYTES:
        readable: asyncio.Future[None] = loop.create_future()
        loop.add_reader(descriptor, _wake, readable)
        try:
            await readable
        finally:
            loop.remove_reader(descriptor)
        data = os.read(descriptor, 4096)
        if not data:
            break
        parts.append(data)
    return b"".join(parts)


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


async def _reap(child: subprocess.Popen[bytes]) -> None:
    """Collect a killed child; one that the kernel does not give back yet is left to subprocess to collect later."""
    for _ in range(20):
        if child.poll() is not None:
            return
        await asyncio.sleep(0.01)
