"""How a test gives orders to the bed's processes: a question and an answer as JSON, one connection each."""

from __future__ import annotations

import json
import socket
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Callable

Commands = Mapping[str, Callable[..., Any]]
ANSWER_SECONDS = 30


class OrderFailed(Exception):
    """The other side raised; the message is its traceback."""


def ask(path: Path, command: str, *arguments: Any) -> Any:
    """Returns the answer of the process that listens there; raises ConnectionError if that process has ended."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(ANSWER_SECONDS)
        connection.connect(str(path))
        connection.sendall(json.dumps([command, *arguments]).encode())
        connection.shutdown(socket.SHUT_WR)
        reply = _read_all(connection)
    if not reply:
        raise ConnectionResetError(f"{path}: ended before it answered {command}")
    answer = json.loads(reply)
    if "error" in answer:
        raise OrderFailed(answer["error"])
    return answer["result"]


def listen(path: Path) -> socket.socket:
    """A socket there, in place of any other; who sees its name can connect."""
    listener = socket.socket(socket.AF_UNIX)
    unfinished = path.with_suffix(".unfinished")
    listener.bind(str(unfinished))
    listener.listen()
    unfinished.rename(path)
    return listener


def answer_one(listener: socket.socket, commands: Commands) -> None:
    """Carry out the next order."""
    connection, _ = listener.accept()
    with connection:
        connection.sendall(reply_to(_read_all(connection), commands))


def reply_to(order: bytes, commands: Commands) -> bytes:
    try:
        command, *arguments = json.loads(order)
        return json.dumps({"result": commands[command](*arguments)}).encode()
    except Exception:
        return json.dumps({"error": traceback.format_exc()}).encode()


def _read_all(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(65536), b""))
