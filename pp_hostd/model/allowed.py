"""The values that a setting may have: for each kind, which TOML values are taken, and how a sentence names them."""

from __future__ import annotations

import re
from typing import Protocol, TypeVar

from pp_hostd.frozen import frozen
from pp_hostd.model.endpoint import is_address, parse_endpoint
from pp_hostd.model.record import Form

_SHARE = re.compile("[0-9]{1,6}|(?:100|[0-9]{1,2})%")
Accepted = TypeVar("Accepted", covariant=True)


class Allowed(Protocol[Accepted]):
    """The values that a setting may have. Their `str` completes the sentence "must be ..."."""

    def accept(self, value: object) -> Accepted | None:
        """The setting's value for a TOML value, or None if that is not allowed."""


@frozen
class Number:
    low: float
    high: float

    def accept(self, value: object) -> float | None:
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            return None
        return float(value) if self.low <= value <= self.high else None  # which no NaN is

    def __str__(self) -> str:
        return f"a number from {self.low:g} to {self.high:g}"


@frozen
class Whole:
    low: int
    high: int

    def accept(self, value: object) -> int | None:
        return value if type(value) is int and self.low <= value <= self.high else None

    def __str__(self) -> str:
        return f"a whole number from {self.low} to {self.high}"


@frozen
class AbsolutePath:
    def accept(self, value: object) -> str | None:
        return value if isinstance(value, str) and value.startswith("/") and value.isprintable() else None

    def __str__(self) -> str:
        return "a path that begins with /"


@frozen
class Choice:
    words: tuple[str, ...]

    def accept(self, value: object) -> str | None:
        return value if isinstance(value, str) and value in self.words else None

    def __str__(self) -> str:
        return f"one of {', '.join(self.words)}"


@frozen
class Flag:
    def accept(self, value: object) -> bool | None:
        return value if isinstance(value, bool) else None

    def __str__(self) -> str:
        return "true or false"


@frozen
class Share:
    """A number of nodes, or a part of all of them."""

    def accept(self, value: object) -> str | None:
        return value if isinstance(value, str) and _SHARE.fullmatch(value) else None

    def __str__(self) -> str:
        return 'a number of nodes like "3", or a part of all like "40%"'


@frozen
class Text:
    """Text of a form from model/record.py; empty if none."""

    form: Form

    def accept(self, value: object) -> str | None:
        return value if isinstance(value, str) and (not value or self.form.pattern.fullmatch(value)) else None

    def __str__(self) -> str:
        return f"{self.form.called}, or empty"


@frozen
class Address:
    """An address of this host to listen on."""

    def accept(self, value: object) -> str | None:
        return value if isinstance(value, str) and (not value or is_address(value)) else None

    def __str__(self) -> str:
        return "an IPv4 or IPv6 address, or empty"


@frozen
class Servers:
    """API servers by address literal or host name."""

    def accept(self, value: object) -> tuple[str, ...] | None:
        if not isinstance(value, list) or not all(isinstance(url, str) and parse_endpoint(url) for url in value):
            return None
        return tuple(value)

    def __str__(self) -> str:
        return 'a list of https URLs like "https://192.0.2.10:6443" or "https://[2001:db8::10]"'
