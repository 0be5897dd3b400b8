"""The root-only Unix socket of the daemon: one JSON line asks, one JSON line answers, and the connection ends.

Size, number of connections and time are bounded, so a client that hangs costs next to nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import struct
from collections.abc import Awaitable, Collection, Mapping
from typing import Any, Callable

from pp_hostd.errors import UserError
from pp_hostd.files import FileError
from pp_hostd.kube.deadline import Deadline, TimedOut
from pp_hostd.model.moment import render_moment
from pp_hostd.model.record import PROSE, Fields, Refused, Unreadable, document, read

NAME = "control.sock"
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "status": (),
    "maintenance-on": ("who", "why", "until"),
    "maintenance-off": ("who",),
    "gate-open": ("who",),
    "test-reset": ("who",),
    "test-watchdog": ("who",),
}
"""Each command and what comes with it; `until` is a time, all else one line of text."""
ROOT = 0
MAX_REQUEST_BYTES = 4096
MAX_CONNECTIONS = 16
ASK_SECONDS = 2.0
ANSWER_SECONDS = 30.0
"""Opening the gate needs the API, more than once."""

Request = tuple[str, dict[str, str]]
Answer = Callable[[str, dict[str, str]], Awaitable[dict[str, Any]]]


class ControlSocket:
    """`answer(command, arguments)` makes the reply; what it raises as UserError is told as {"error": ...}."""

    def __init__(self, run_directory: str, answer: Answer, users: Collection[int] = (ROOT,)) -> None:
        """Only these users are heard; the file's mode says the same of root, and might be changed."""
        self._users = users
        self._path = os.path.join(run_directory, NAME)
        self._answer = answer
        self._open: set[asyncio.StreamWriter] = set()
        self._server: asyncio.AbstractServer | None = None

    async def listen(self) -> None:
        """Take the place of whatever socket is there. FileError if that can't be."""
        self._server = await asyncio.start_unix_server(
            self._connected, sock=_listening(self._path), limit=MAX_REQUEST_BYTES, backlog=MAX_CONNECTIONS
        )

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for writer in list(self._open):
            writer.transport.abort()
        await asyncio.sleep(0)  # that takes effect when the loop comes round

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            if len(self._open) > MAX_CONNECTIONS or _user(writer.get_extra_info("socket")) not in self._users:
                return
            with Deadline(ASK_SECONDS):
                request = _parse(await reader.readline())
            with Deadline(ANSWER_SECONDS):
                reply = await self._reply(request)
            with Deadline(ASK_SECONDS):
                writer.write(json.dumps(reply).encode() + b"\n")
                writer.write_eof()
                await writer.drain()
                await reader.read(1)  # until the client has it all
        except (TimedOut, OSError, ValueError):  # ValueError: the line is longer than the limit
            pass
        finally:
            self._open.discard(writer)
            writer.transport.abort()

    async def _reply(self, request: Request | Unreadable) -> dict[str, Any]:
        if isinstance(request, Unreadable):
            return {"error": str(request)}
        try:
            return await self._answer(*request)
        except UserError as error:
            return {"error": str(error)}


def _listening(path: str) -> socket.socket:
    """Bound under another name and then renamed, so that the socket is never there with other rights."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    new = f"{path}.new"
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(new)
        sock.bind(new)
        os.chmod(new, 0o600)
        sock.listen(MAX_CONNECTIONS)
        os.rename(new, path)
    except OSError as error:
        sock.close()
        raise FileError(f"{path}: the control socket can't be made ({error.strerror or error})") from None
    return sock


def _user(sock: socket.socket) -> int:
    """Returns the user id of the process at the other end."""
    credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", credentials)[1])


def _parse(line: bytes) -> Request | Unreadable:
    return read("the request", _request, line)


def _request(line: bytes) -> Request:
    fields = document(line, MAX_REQUEST_BYTES)
    command = fields.anything("command")
    if not isinstance(command, str) or command not in COMMANDS:
        raise Refused(f"command is not one of {', '.join(COMMANDS)}")
    return command, {name: _argument(fields, name) for name in COMMANDS[command]}


def _argument(fields: Fields, name: str) -> str:
    return render_moment(fields.moment(name)) if name == "until" else fields.text(name, PROSE)
