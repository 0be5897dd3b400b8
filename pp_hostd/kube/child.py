"""A short-lived child process whose answer is awaited without holding up the event loop."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Sequence

from pp_hostd.kube.deadline import Deadline


async def answer_of(command: Sequence[str], deadline_seconds: float, limit_bytes: int, data: bytes = b"") -> bytes:
    """All that the child prints, having read `data`; TimedOut or OSError if that can't be had.

    How the child ends is not looked at: whoever reads the answer knows whether it is whole.
    """
    given = os.memfd_create("given")  # not a pipe: more than a pipe holds would have to be written bit by bit
    try:
        os.write(given, data)
        os.lseek(given, 0, os.SEEK_SET)
        child = subprocess.Popen(  # noqa: ASYNC220  (asyncio's own would start a thread per child on Python 3.9 to 3.11)
            command, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
    finally:
        os.close(given)
    assert child.stdout is not None
    try:
        with Deadline(deadline_seconds):
            return await _read_to_end(child.stdout.fileno(), limit_bytes)
    finally:
        child.kill()  # it has nothing more to say, whether it answered or not
        child.stdout.close()
        await _reap(child)


async def _read_to_end(descriptor: int, limit_bytes: int) -> bytes:
    loop = asyncio.get_running_loop()
    os.set_blocking(descriptor, False)
    answer = bytearray()
    while len(answer) < limit_bytes:
        readable: asyncio.Future[None] = loop.create_future()
        loop.add_reader(descriptor, _wake, readable)
        try:
            await readable
        finally:
            loop.remove_reader(descriptor)
        data = os.read(descriptor, 65536)
        if not data:
            break
        answer += data
    return bytes(answer)


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


async def _reap(child: subprocess.Popen[bytes]) -> None:
    """Collect a killed child; one that the kernel does not give back yet is left to subprocess to collect later."""
    for _ in range(20):
        if child.poll() is not None:
            return
        await asyncio.sleep(0.01)
