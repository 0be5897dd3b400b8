"""A port of this machine that leads to a port on a host's loopback, as `ssh -L` makes one. A test can cut it.

A program on the host leads from a socket in its /etc/pp-hostd, which this machine sees too, to the port there.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from tests.harness.bed.host import Host
from tests.harness.eventually import HANGS_SECONDS, eventually

NAME = "forwarded"
ROOT = Path(__file__).parents[2]
READ_BYTES = 65536


async def splice(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, far: Coroutine[Any, Any, Any]) -> None:
    """Carry bytes both ways until one side ends; then end both."""
    writers = [writer]
    try:
        far_reader, far_writer = await far
        writers.append(far_writer)
        both = [asyncio.create_task(_carry(reader, far_writer)), asyncio.create_task(_carry(far_reader, writer))]
        _, pending = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        await asyncio.gather(*both, return_exceptions=True)
    except OSError:
        pass
    finally:
        for each in writers:
            each.transport.abort()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(READ_BYTES):
        writer.write(data)
        await writer.drain()


class Forward:
    """`url` is where the host's page is from here."""

    def __init__(self, host: Host, port: int = 9481) -> None:
        self._socket = host.etc / NAME
        program = [sys.executable, "-m", "tests.page.forward", f"/etc/pp-hostd/{NAME}", str(port)]
        command = host.command("env", f"PYTHONPATH={ROOT}", *program)
        self._program = subprocess.Popen(command, start_new_session=True)
        eventually(self._socket.exists, f"{host.name} forwards its port")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._tasks: set[asyncio.Task[None]] = set()
        self._refuses = False
        self._server = self._call(asyncio.start_server(self._connected, "127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/"

    def cut(self) -> None:
        """End every connection, and refuse more."""
        self._refuses = True
        self._call(self._end())

    def mend(self) -> None:
        self._refuses = False

    def close(self) -> None:
        self.cut()
        self._call(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(HANGS_SECONDS)
        self._loop.close()
        self._program.kill()
        self._program.wait(HANGS_SECONDS)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refuses:
            writer.transport.abort()
            return
        far = asyncio.open_unix_connection(str(self._socket))
        task = asyncio.create_task(splice(reader, writer, far))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _stop(self) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _end(self) -> None:
        ending = list(self._tasks)
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)

    def _call(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(HANGS_SECONDS)


async def serve(path: str, port: int) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await splice(reader, writer, asyncio.open_connection("127.0.0.1", port))

    await (await asyncio.start_unix_server(connected, path)).serve_forever()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(sys.argv[1], int(sys.argv[2])))
