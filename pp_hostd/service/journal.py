"""One line per change of state, to journald or stderr, never blocking: what can't be written at once is counted."""

from __future__ import annotations

import enum
import os
import select
import socket
import stat
import struct

SOCKET = "/run/systemd/journal/socket"
IDENTIFIER = "pp-hostd"
MAX_LINE_BYTES = 4000
"""Less than a pipe takes at once (PIPE_BUF, 4096), so what poll lets through can't block."""


class Message(enum.Enum):
    """The subject of a line; the value is its MESSAGE_ID, for ever (`journalctl MESSAGE_ID=...`)."""

    STATE_CHANGED = "37e3dc3ee8b94c4b9131cf320bf98451"
    ARMED = "9bc3908bb53647d3be34c414791c3936"
    DISARMED = "f15d73d2b0df4d9785283db4ababab7d"
    PROMISE_STORED = "8a3f92a1e5e9414da5456ff578a832cd"
    PROMISE_WITHDRAWN = "21dace1750074e009eb641acedb2474a"
    GATE_OPENED = "45d2df07df594f3a814046ac42afca30"
    GATE_CLOSED = "bb2bc142d1fb45f4b35ab8a4f8949884"
    RESETTING = "64ee1e9401a04bc689975ec55d8f691c"
    LAST_BOOT = "11c89873c8794fcda14fa7db7e99beae"
    TROUBLE = "ef1d286a8b144ff0854f9daa2937b69a"
    CONFIG_REFUSED = "04847b3cbd04477caff3745c8fc91adb"
    CONFIG_RELOADED = "1fb1982af86349119772d14b1e8799ac"
    STATE_SET_ASIDE = "c6544b73c5d44c398eff3bebe681e17d"
    MAINTENANCE = "8c9a9b01b4f548f88aab1a7f4b5b76e9"
    LEADING = "92c2f8b456ed47dc9f94b7804446ecce"
    COURSE = "3196104b4d334314bc1cc3a4c021da62"
    ROSTER_WRITTEN = "e5c1b224a71042508064d05f6ee23c2d"
    RENEWAL = "4f0a2b6dd3c94a0f8b1e5c7790d2e6a1"
    EXPIRY = "b7c3d5a0e1f84c629d0b8a4f63217e5c"


class Priority(enum.IntEnum):
    """syslog's, as journald shows them."""

    CRITICAL = 2
    ERROR = 3
    WARNING = 4
    NOTICE = 5
    INFO = 6


class Journal:
    """Where lines go. journald's socket is looked up for each line, so journald may come, go and restart."""

    def __init__(self, path: str = SOCKET, stderr: int = 2, identifier: str = IDENTIFIER) -> None:
        self._path = path
        self._stderr = stderr
        self._identifier = identifier
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._dropped = 0
        self.dropped_in_all = 0

    def say(self, message: Message, sentence: str, priority: Priority = Priority.INFO, **fields: object) -> None:
        """Write one line; each of `fields` becomes PP_HOSTD_<NAME>."""
        self._say(message, sentence, priority, {f"PP_HOSTD_{name.upper()}": str(fields[name]) for name in fields})

    def say_about(self, unit: str, message: Message, sentence: str, priority: Priority = Priority.INFO) -> None:
        """Write one line that `systemctl status` of that unit shows too."""
        self._say(message, sentence, priority, {"OBJECT_SYSTEMD_UNIT": unit})

    def _say(self, message: Message, sentence: str, priority: Priority, fields: dict[str, str]) -> None:
        text = " ".join(sentence.split())
        if self._dropped:
            text += f" ({self._dropped} lines before this one could not be written)"
            fields["PP_HOSTD_DROPPED"] = str(self._dropped)
        if self._write(text, _entry(self._identifier, message, text, priority, fields), priority):
            self._dropped = 0
        else:
            self._dropped += 1
            self.dropped_in_all += 1

    def close(self) -> None:
        self._socket.close()

    def _write(self, text: str, entry: bytes, priority: Priority) -> bool:
        try:
            self._socket.sendto(entry, self._path)
        except (FileNotFoundError, ConnectionRefusedError, PermissionError):  # no journald
            return self._write_stderr(f"<{priority.value}>{text}".encode("utf-8", "replace")[:MAX_LINE_BYTES] + b"\n")
        except OSError:  # it is there and does not read
            return False
        return True

    def _write_stderr(self, line: bytes) -> bool:
        """Without making it non-blocking: that would hold for every process that shares it."""
        try:
            if stat.S_ISSOCK(os.fstat(self._stderr).st_mode):
                with socket.socket(fileno=os.dup(self._stderr)) as stream:
                    return stream.send(line, socket.MSG_DONTWAIT) == len(line)
            poll = select.poll()
            poll.register(self._stderr, select.POLLOUT)
            return poll.poll(0) == [(self._stderr, select.POLLOUT)] and os.write(self._stderr, line) == len(line)
        except OSError:
            return False


def _entry(identifier: str, message: Message, text: str, priority: Priority, fields: dict[str, str]) -> bytes:
    entry = {
        "MESSAGE": text,
        "MESSAGE_ID": message.value,
        "PRIORITY": str(priority.value),
        "SYSLOG_IDENTIFIER": identifier,
        **fields,
    }
    return b"".join(_field(name, value) for name, value in entry.items())


def _field(name: str, value: str) -> bytes:
    data = value.encode("utf-8", "replace")[:MAX_LINE_BYTES]
    if b"\n" in data:
        return name.encode() + b"\n" + struct.pack("<Q", len(data)) + data + b"\n"
    return name.encode() + b"=" + data + b"\n"
