"""QEMU's own word: its control socket, with every event that it reported and when."""

from __future__ import annotations

import json
import queue
import socket
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.machines.patience import eventually

ANSWER_SECONDS = 60


@dataclass(frozen=True)
class Event:
    """`at_wallclock` is QEMU's own time, by the clock of this machine."""

    name: str
    at_wallclock: float
    data: dict[str, Any]


class Qmp:
    """A connection; a thread of its own listens, until QEMU ends."""

    def __init__(self, path: Path) -> None:
        found = eventually(lambda: _connected(path), f"QEMU listens at {path}")
        assert found is not None
        self._socket = found
        self._answers: queue.Queue[dict[str, Any]] = queue.Queue()
        self._events: list[Event] = []
        threading.Thread(target=self._listen, daemon=True).start()
        self.ask("qmp_capabilities")

    def ask(self, command: str, **arguments: Any) -> Any:
        """Have QEMU do something; what it returns. One at a time."""
        request = {"execute": command, "arguments": arguments}
        self._socket.sendall(json.dumps(request).encode() + b"\n")
        answer = self._answers.get(timeout=ANSWER_SECONDS)
        if "error" in answer:
            raise RuntimeError(f"{command}: {answer['error']['desc']}")
        return answer["return"]

    def events(self, *names: str) -> list[Event]:
        """In the order of time."""
        return [event for event in list(self._events) if not names or event.name in names]

    def close(self) -> None:
        self._socket.close()

    def _listen(self) -> None:
        with self._socket.makefile("rb") as lines:
            try:
                for line in lines:
                    self._hear(json.loads(line))
            except (OSError, ValueError):  # it was closed on this side
                return

    def _hear(self, message: dict[str, Any]) -> None:
        if "event" in message:
            time = message["timestamp"]
            at = time["seconds"] + time["microseconds"] / 1e6
            self._events.append(Event(message["event"], at, message.get("data", {})))
        elif "QMP" not in message:  # which is the greeting
            self._answers.put(message)


def _connected(path: Path) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(str(path))
    except OSError:  # it has not come up yet
        connection.close()
        return None
    return connection
