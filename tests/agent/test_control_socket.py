"""The control socket: one line asks, one answers; others than root are not heard, and who hangs costs nothing."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pp_hostd.agent.control_socket import ASK_SECONDS, MAX_CONNECTIONS, MAX_REQUEST_BYTES, NAME, ControlSocket
from pp_hostd.errors import UserError
from pp_hostd.files import FileError

Heard = list[tuple[str, dict[str, str]]]
ME = os.geteuid()


@contextlib.asynccontextmanager
async def served(directory: Path, heard: Heard, user: int = ME) -> AsyncIterator[str]:
    async def answer(command: str, arguments: dict[str, str]) -> dict[str, Any]:
        heard.append((command, arguments))
        if command == "gate-open":
            raise UserError("the gate stays closed", "The API is away.")
        return {"sentence": f"heard {command}"}

    control = ControlSocket(str(directory), answer, [user])
    await control.listen()
    try:
        yield str(directory / NAME)
    finally:
        await control.close()


async def ask(path: str, data: bytes) -> Any:
    """The reply; None if the connection ended without one."""
    reader, writer = await asyncio.open_unix_connection(path)
    try:
        with contextlib.suppress(ConnectionError):
            writer.write(data)
            line = await asyncio.wait_for(reader.read(), 20)
            return json.loads(line) if line else None
        return None
    finally:
        writer.transport.abort()
        await asyncio.sleep(0)


def line(**fields: Any) -> bytes:
    return json.dumps({"v": 1, **fields}).encode() + b"\n"


async def test_a_request_is_heard_with_its_arguments_and_answered(tmp_path: Path) -> None:
    heard: Heard = []
    async with served(tmp_path, heard) as path:
        assert os.stat(path).st_mode & 0o777 == 0o600
        assert await ask(path, line(command="status", extra=1)) == {"sentence": "heard status"}
        order = {"who": "eve", "why": "new disk", "until": "2026-03-01T13:00:00+01:00"}
        await ask(path, line(command="maintenance-on", **order))
    assert heard == [("status", {}), ("maintenance-on", {**order, "until": "2026-03-01T12:00:00Z"})]


async def test_a_refusal_is_told_in_its_own_words(tmp_path: Path) -> None:
    async with served(tmp_path, []) as path:
        reply = await ask(path, line(command="gate-open", who="eve"))
    assert reply == {"error": "the gate stays closed\n  The API is away."}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"status\n", "it is not JSON"),
        (b'{"command": "status"}\n', "reads version 1"),
        (line(command="reboot"), "command is not one of status"),
        (line(command=["status"]), "command is not one of status"),
        (line(command="maintenance-off"), "who is missing"),
        (line(command="gate-open", who="eve\nroot"), "not one line of text"),
        (line(command="maintenance-on", who="a", why="b", until="soon"), "until is 'soon', not a time"),
        (b"[" * 3000 + b"\n", "nested too deeply"),
    ],
)
async def test_what_is_no_request_is_refused_with_the_reason(tmp_path: Path, data: bytes, reason: str) -> None:
    heard: Heard = []
    async with served(tmp_path, heard) as path:
        reply = await ask(path, data)
    assert reason in reply["error"]
    assert heard == []


async def test_other_users_are_not_heard(tmp_path: Path) -> None:
    heard: Heard = []
    async with served(tmp_path, heard, user=ME + 1) as path:
        assert await ask(path, line(command="status")) is None
    assert heard == []


async def test_a_line_without_end_is_not_read_on(tmp_path: Path) -> None:
    heard: Heard = []
    async with served(tmp_path, heard) as path:
        assert await ask(path, b"x" * (100 * MAX_REQUEST_BYTES)) is None
        assert await ask(path, line(command="status")) is not None
    assert heard == [("status", {})]


async def test_who_hangs_is_dropped_and_others_are_answered_meanwhile(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    async with served(tmp_path, []) as path:
        began_at = loop.time()
        hanging = [await asyncio.open_unix_connection(path) for _ in range(MAX_CONNECTIONS - 1)]
        assert await ask(path, line(command="status")) is not None
        for reader, writer in hanging:
            assert await asyncio.wait_for(reader.read(), 20) == b""
            writer.transport.abort()
        assert loop.time() >= began_at + ASK_SECONDS
        await asyncio.sleep(0)


async def test_more_connections_than_allowed_are_closed_at_once(tmp_path: Path) -> None:
    async with served(tmp_path, []) as path:
        hanging = [await asyncio.open_unix_connection(path) for _ in range(MAX_CONNECTIONS)]
        assert await ask(path, line(command="status")) is None
        hanging[0][1].transport.abort()
        await hanging[1][0].read()  # dropped when its time is up
        assert await ask(path, line(command="status")) is not None
        for _, writer in hanging:
            writer.transport.abort()
        await asyncio.sleep(0)


async def test_a_socket_that_was_left_behind_is_replaced(tmp_path: Path) -> None:
    for _ in range(2):
        async with served(tmp_path, []) as path:
            assert await ask(path, line(command="status")) is not None
    for name in (NAME, f"{NAME}.new"):
        (tmp_path / name).unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(tmp_path / name))
    async with served(tmp_path, []) as path:
        assert await ask(path, line(command="status")) is not None


async def test_a_place_where_no_socket_can_be_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="the control socket can't be made"):
        async with served(tmp_path / "missing", []):
            pass
