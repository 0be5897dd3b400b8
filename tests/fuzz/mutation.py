"""Sound messages made unsound, the same way for the same seed."""

from __future__ import annotations

from random import Random
from typing import Callable

FRAGMENTS = (
    b"\r\n",
    b"\r\n\r\n",
    b"\n",
    b"\x00",
    b"\xff\xfe",
    b" ",
    b":",
    b"%",
    b"%00",
    b"/../",
    b"?uid=",
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n",
    b"Content-Length: 5\r\n",
    b"Content-Length: 99999999999999999999\r\n",
    b"Expect: 100-continue\r\n",
    b"Connection: close\r\n",
    b"Upgrade: websocket\r\n",
    b"PP-Hostd-Nonce: other\r\n",
    b"PP-Hostd-Signature: " + b"0" * 64 + b"\r\n",
    b"HTTP/1.0",
    b"{" * 2000,
    b'{"v":1,"answer":"unhealthy","id":1e999}',
    b"-1",
    b"A" * 5000,
)


def mutated(random: Random, message: bytes, others: list[bytes]) -> bytes:
    """The message with up to four changes; one in ten is left as it is."""
    if random.random() < 0.1:
        return message
    for _ in range(random.randrange(1, 5)):
        message = _CHANGES[random.randrange(len(_CHANGES))](random, message, others)
    return message


def pieces(random: Random, message: bytes, most_bytes: int) -> list[bytes]:
    """The message as the network might deliver it."""
    cuts = sorted(random.randrange(len(message) + 1) for _ in range(random.randrange(4)))
    parts = [message[start:end] for start, end in zip([0, *cuts], [*cuts, len(message)])]
    return [part[at : at + most_bytes] for part in parts for at in range(0, len(part), most_bytes)]


def _flip(random: Random, message: bytes, _: list[bytes]) -> bytes:
    at = random.randrange(len(message) + 1)
    return message[:at] + bytes([random.randrange(256)]) + message[at + 1 :]


def _cut(random: Random, message: bytes, _: list[bytes]) -> bytes:
    start, end = _span(random, message)
    return message[:start] + message[end:]


def _repeat(random: Random, message: bytes, _: list[bytes]) -> bytes:
    start, end = _span(random, message)
    return message[:end] + message[start:]


def _insert(random: Random, message: bytes, _: list[bytes]) -> bytes:
    """A fragment, more often than not at the beginning of a line."""
    at = random.randrange(len(message) + 1)
    if random.random() < 0.7:
        at = message.rfind(b"\r\n", 0, at) + 2 if b"\r\n" in message[:at] else at
    return message[:at] + FRAGMENTS[random.randrange(len(FRAGMENTS))] + message[at:]


def _splice(random: Random, message: bytes, others: list[bytes]) -> bytes:
    other = others[random.randrange(len(others))]
    return message[: random.randrange(len(message) + 1)] + other[random.randrange(len(other)) :]


def _follow(random: Random, message: bytes, others: list[bytes]) -> bytes:
    return message + others[random.randrange(len(others))]


def _span(random: Random, message: bytes) -> tuple[int, int]:
    start = random.randrange(len(message) + 1)
    return start, min(len(message), start + random.randrange(1, 40))


_CHANGES: tuple[Callable[[Random, bytes, list[bytes]], bytes], ...] = (_flip, _cut, _repeat, _insert, _splice, _follow)
