"""How every record is read and written: reading is total, and what can't be relied on becomes a value, `Unreadable`."""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from re import Pattern
from typing import Any, Callable, TypeVar

from pp_hostd.frozen import frozen
from pp_hostd.model.moment import parse_moment

VERSION = 1
MAX_RECORD_CHARACTERS = 16384
MAX_CONFIG_MAP_CHARACTERS = 1 << 20
MAX_COUNT = 10**15 - 1
"""The largest condemnation id or roster version; any JSON reader holds it exactly."""


@frozen
class Form:
    """The pattern that a text must match from end to end, and how a sentence calls such a text."""

    called: str
    pattern: Pattern[str]


_NAME = "[a-z0-9](?:[-.a-z0-9]{0,251}[a-z0-9])?"
NAME = Form("a Kubernetes name", re.compile(_NAME))
MACHINE = Form("namespace/name of a Machine", re.compile(f"{_NAME}/{_NAME}"))
SUBJECT = Form("namespace/name of a Machine or the name of a Node", re.compile(f"(?:{_NAME}/)?{_NAME}"))
UNIT = Form("the name of a systemd service", re.compile(r"[A-Za-z0-9:_.@-]{1,247}\.service"))
HOST_NAME = Form("namespace/name of a BareMetalHost", re.compile(f"{_NAME}/{_NAME}"))
SUFFIX = Form("the last part of an annotation's name", re.compile("[A-Za-z0-9](?:[-._A-Za-z0-9]{0,61}[A-Za-z0-9])?"))
COUNT = Form("a whole number from 1 on", re.compile("[1-9][0-9]{0,14}"))
OPAQUE = Form("one word of ASCII", re.compile("[!-~]{1,128}"))  # uid, boot id, token: compared, never interpreted
PROSE = Form("one line of text", re.compile("[^\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,500}"))

Record = TypeVar("Record")
Source = TypeVar("Source")
Choice = TypeVar("Choice", bound=enum.Enum)


@frozen
class Unreadable:
    """A record that is there and can't be relied on. It never stands for "nothing there": absence is None."""

    what: str
    reason: str

    def __str__(self) -> str:
        return f"{self.what} is unreadable: {self.reason}"


class Refused(Exception):
    """Why a record is not taken. It never leaves `read`."""


def read(what: str, build: Callable[[Source], Record], source: Source) -> Record | Unreadable:
    """Returns what `build` makes of the source, or `Unreadable` with the reason why `build` refused it."""
    try:
        return build(source)
    except Refused as refused:
        return Unreadable(what, str(refused))


def matching(value: object, form: Form, name: str) -> str:
    """The value, if it is text of that form."""
    if not isinstance(value, str) or form.pattern.fullmatch(value) is None:
        raise Refused(f"{name} is {_shown(value)}, not {form.called}")
    return value


class Fields:
    """A JSON object, perhaps a hostile one: each getter returns a value of its type and range, or refuses."""

    def __init__(self, value: object, name: str = "it") -> None:
        if not isinstance(value, dict):
            raise Refused(f"{name} is {_shown(value)}, not an object")
        self._fields: dict[Any, Any] = value

    def __contains__(self, key: str) -> bool:
        return key in self._fields

    def section(self, key: str) -> Fields:
        """The object under this key; absent or null is an empty one, as the API leaves empty maps out."""
        value = self._fields.get(key)
        return Fields({} if value is None else value, key)

    def elements(self, key: str) -> Iterator[object]:
        """The elements of the list under this key; absent or null is an empty one."""
        value = self._fields.get(key)
        if not isinstance(value, (list, type(None))):
            raise Refused(f"{key} is {_shown(value)}, not a list")
        return iter(value or ())

    def text(self, key: str, form: Form) -> str:
        return matching(self._fields.get(key), form, key)

    def texts(self, key: str) -> dict[str, str]:
        """A map of text to text, such as labels."""
        section = self.section(key)._fields
        if not all(isinstance(part, str) for pair in section.items() for part in pair):
            raise Refused(f"{key} holds something that is not text")
        return dict(section)

    def anything(self, key: str) -> object:
        return self._fields.get(key)

    def without(self, *keys: str) -> dict[str, Any]:
        """All fields but these."""
        return {key: value for key, value in self._fields.items() if key not in keys}

    def count(self, key: str, most: int = MAX_COUNT) -> int:
        value = self._fields.get(key)
        if type(value) is not int or not 1 <= value <= most:  # True is no count
            raise Refused(f"{key} is {_shown(value)}, not a whole number from 1 to {most}")
        return value

    def seconds(self, key: str, least: float, most: float) -> float:
        value = self._fields.get(key)
        # True is no number, and NaN is in no range.
        if isinstance(value, (int, float)) and not isinstance(value, bool) and least <= value <= most:
            return float(value)
        raise Refused(f"{key} is {_shown(value)}, not {least:g} to {most:g} seconds")

    def choice(self, key: str, choices: type[Choice]) -> Choice:
        value = self._fields.get(key)
        for choice in choices:
            if choice.value == value:
                return choice
        raise Refused(f"{key} is {_shown(value)}, not one of {', '.join(str(choice.value) for choice in choices)}")

    def moment(self, key: str) -> datetime:
        value = self._fields.get(key)
        moment = parse_moment(value) if isinstance(value, str) else None
        if moment is None:
            raise Refused(f"{key} is {_shown(value)}, not a time like 2026-03-01T12:00:00Z")
        return moment


def document(text: object, max_characters: int) -> Fields:
    """The fields of a JSON record of our version; bytes are taken as UTF-8."""
    if not isinstance(text, (str, bytes)):
        raise Refused(f"it is {_shown(text)}, not text")
    if len(text) > max_characters:
        raise Refused(f"it is longer than {max_characters} characters")
    fields = Fields(_decoded(text))
    version = fields.anything("v")
    if type(version) is not int or version != VERSION:
        raise Refused(f"its version (v) is {_shown(version)}, and this program reads version {VERSION}: update it")
    return fields


def render(fields: Mapping[str, Any]) -> str:
    """The record as compact JSON with our version; fields that are None are left out."""
    present = {key: value for key, value in fields.items() if value is not None}
    return _ENCODER.encode({"v": VERSION, **present})


def render_list(elements: Sequence[str]) -> str:
    """As `render` has it in a record."""
    return _ENCODER.encode(elements)


def _decoded(text: str | bytes) -> Any:
    try:
        if isinstance(text, bytes):
            text = text.decode()
        return _DECODER.decode(text)
    except RecursionError:
        raise Refused("it is nested too deeply") from None
    except ValueError as error:
        raise Refused(f"it is not JSON: {error}") from None


def _integer(digits: str) -> int:
    if len(digits) > 20:  # int() takes seconds for a million digits
        raise ValueError("a number has more than 20 digits")
    return int(digits)


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is no number")


# Made once: json.loads and json.dumps make one for each text, which takes longer than to read a record.
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_DECODER = json.JSONDecoder(parse_int=_integer, parse_constant=_no_number)


def _shown(value: object) -> str:
    """A value in a sentence: short, printable, and never as deep or long as what a stranger sent."""
    if value is None:
        return "missing"
    if isinstance(value, str):
        return ascii(value[:60])
    if isinstance(value, float) or (isinstance(value, int) and value.bit_length() < 70):
        return repr(value)
    return f"of type {type(value).__name__}"
