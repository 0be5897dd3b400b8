"""What can be wrong with a configuration, in a person's words."""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Sequence
from typing import Any

from pp_hostd.errors import UserError
from pp_hostd.frozen import frozen

LONGEST_SHOWN = 120
WIDTH = 100


@frozen
class Problem:
    """One error. `message` completes a sentence that begins with the key, or without a key with the file."""

    file: str
    line: int | None
    message: str
    key: str = ""
    found: str = ""
    allowed: str = ""
    nearest: str = ""


class ConfigError(UserError):
    """Every error in the configuration, by file and line."""

    def __init__(self, errors: Sequence[Problem]) -> None:
        self.errors = list(errors)
        count = f"{_counted(len(errors), 'error')} in {_counted(len({error.file for error in errors}), 'file')}"
        super().__init__(
            f"the configuration can't be used\n{_report(self.errors)}\n{count}.",
            "Correct them and run check-config again; check-config --help lists every setting.",
        )


def dotted(path: Sequence[str]) -> str:
    """A key as it is written in TOML, with quotes where it needs them."""
    return ".".join(_shortened(part if re.fullmatch(r"[\w-]+", part, re.ASCII) else repr(part)) for part in path)


def shown(value: Any) -> str:
    """A TOML value on one line, whatever it is."""
    if isinstance(value, list):
        if value and all(isinstance(item, dict) for item in value):
            return "a list of tables"
        return _shortened(f"[{', '.join('[...]' if isinstance(item, list) else shown(item) for item in value)}]")
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and value.bit_length() > 64:
        return _shortened(hex(value))  # Python refuses to write long ones in decimal
    return _shortened(repr(value) if isinstance(value, str) else str(value))


def nearest(name: str, known: Sequence[str]) -> str:
    """The known name that was probably meant; empty if none."""
    from difflib import get_close_matches  # only a mistake needs it

    # Half of the letters are enough: whoever leaves a unit out, as in "retry", should see "retry_seconds".
    return next(iter(get_close_matches(name, known, 1, cutoff=0.5)), "")


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 3]}..."


def _report(errors: Sequence[Problem]) -> str:
    """Each file, below it its errors: the line, what stands there, and what is wrong with it."""
    report = ""
    for file, group in itertools.groupby(errors, key=lambda error: error.file):
        report += f"\n{file}\n"
        for error in group:
            place = f"  line {error.line:<5}" if error.line else "  "
            subject = _subject(error)
            report += f"{place}{subject}\n" if subject else ""
            report += _indented(error.message, len(place) * " " if subject else place)
    return report


def _subject(error: Problem) -> str:
    tables = {"a table": f"[{error.key}]", "a list of tables": f"[[{error.key}]]"}
    return tables.get(error.found, f"{error.key} = {error.found}") if error.key else ""


def _indented(message: str, place: str) -> str:
    margin = len(place) * " "
    wrapped = textwrap.TextWrapper(WIDTH, subsequent_indent=margin, break_long_words=False, break_on_hyphens=False)
    text = "".join(wrapped.fill(f"{margin}{line}") + "\n" for line in message.split("\n"))
    return place + text[len(place) :]
