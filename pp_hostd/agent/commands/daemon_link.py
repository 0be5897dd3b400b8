"""A command's way to the daemon: one request over its control socket; or, with the daemon down, what it said last."""

from __future__ import annotations

import json
import os
import socket
import time
from typing import Any, NamedTuple

from pp_hostd.agent.control_socket import NAME
from pp_hostd.agent.sense.boot import boot_id
from pp_hostd.agent.state import RUN_DIRECTORY, StateFiles
from pp_hostd.errors import UserError
from pp_hostd.model.record import render
from pp_hostd.service.output import complain, say_json

MAX_REPLY_BYTES = 1 << 20
STATUS_SECONDS = 5.0
ORDER_SECONDS = 35.0
"""More than the daemon takes for any order."""


class Down(Exception):
    """Nobody answers, for this reason."""


class Answer(NamedTuple):
    """The daemon's answer to an order, and whether the daemon could carry the order out in time."""

    sentence: str
    done: bool


def report() -> dict[str, Any]:
    """The running daemon's report."""
    return _request("status", {}, STATUS_SECONDS)


def order(command: str, **arguments: str) -> Answer:
    """Have the daemon do something."""
    reply = _request(command, arguments, ORDER_SECONDS)
    return Answer(str(reply.get("sentence", "done")), reply.get("done") is not False)


def tell_down(down: Down, as_json: bool, indent: int | None = 2) -> None:
    """Say that nobody answers, and what the daemon said last."""
    last = StateFiles().last_report()
    age_seconds = _age_seconds(last or {})
    if as_json:
        say_json({"running": False, "reason": str(down), "age_seconds": age_seconds, "last_report": last}, indent)
        return
    said = "It has said nothing in this boot."
    if age_seconds is not None and last is not None:
        said = f"{age_seconds:.0f} s ago it said: {last.get('sentence')}"
    complain(f"pp-hostd: {down}\n  {said}\n  See: systemctl status pp-hostd; journalctl -u pp-hostd")


def _age_seconds(last: dict[str, Any]) -> float | None:
    """None when there is no report of this boot."""
    at = last.get("at")
    if last.get("boot") != boot_id() or not isinstance(at, (int, float)):
        return None
    return round(time.clock_gettime(time.CLOCK_BOOTTIME) - at, 3)


def _request(command: str, arguments: dict[str, str], patience_seconds: float) -> dict[str, Any]:
    path = os.path.join(RUN_DIRECTORY, NAME)
    try:
        data = _exchanged(path, render({"command": command, **arguments}).encode() + b"\n", patience_seconds)
    except PermissionError:
        raise UserError(f"{path}: only root may ask the daemon", "Try the same with sudo.") from None
    except (FileNotFoundError, ConnectionRefusedError):
        raise Down("the daemon does not run on this host") from None
    except (OSError, socket.timeout) as error:
        raise Down(f"the daemon does not answer ({error})") from None
    try:
        reply = json.loads(data)
    except ValueError:
        raise Down("the daemon does not answer (it ended the connection)") from None
    if "error" in reply:
        raise UserError(str(reply["error"]))
    return dict(reply)


def _exchanged(path: str, line: bytes, patience_seconds: float) -> bytes:
    ends_at = time.monotonic() + patience_seconds
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(patience_seconds)
        sock.connect(path)
        sock.sendall(line)
        data = b""
        while len(data) < MAX_REPLY_BYTES:
            sock.settimeout(max(0.001, ends_at - time.monotonic()))
            part = sock.recv(65536)
            if not part:
                break
            data += part
    return data
