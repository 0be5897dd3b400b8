"""How commands print, and whom they speak with: text, JSON, tables that fit 80 columns, and a person's confirmation."""

from __future__ import annotations

import json
import os
import pwd
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from textwrap import TextWrapper
from typing import Any

from pp_hostd.errors import UserError
from pp_hostd.model.record import PROSE

WIDTH = 80
LEAST_ROOM = 24


def say(text: str) -> None:
    print(text, flush=True)  # noqa: T201


def complain(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201


def say_json(value: Any, indent: int | None = 2) -> None:
    say(json.dumps(value, indent=indent))


def say_yaml(value: Any) -> None:
    import yaml  # only here: daemons import this module, too, and print none

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    say(yaml.dump(value, Dumper=dumper, sort_keys=False, default_flow_style=False).rstrip())


def labelled(rows: Sequence[tuple[str, str]]) -> str:
    """A label and a text in each row, the texts below each other and wrapped."""
    width = max((len(label) for label, _ in rows), default=0) + 2
    return "\n".join(wrapped(f"{label:{width}}", text) for label, text in rows)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as they need to be, but for the last one, which is wrapped to what is left."""
    shown = [[clipped(cell) for cell in row[:-1]] for row in (header, *rows)]
    widths = [max(len(row[column]) for row in shown) for column in range(len(header) - 1)]
    heads = ["".join(f"{cell:{width}}  " for cell, width in zip(row, widths)) for row in shown]
    return "\n".join(wrapped(head, row[-1]) for head, row in zip(heads, (header, *rows)))


def filled(text: str, indent: int = 0, first_indent: int = 0, width: int = WIDTH) -> str:
    """The text in lines; names and paths stay whole, for copying, even where one is wider than a line."""
    wrapper = TextWrapper(width, " " * first_indent, " " * indent, break_long_words=False, break_on_hyphens=False)
    return wrapper.fill(text)


def wrapped(head: str, text: str, width: int = WIDTH) -> str:
    """The text beside its head, or below it when too little room is left."""
    if len(head) > width - LEAST_ROOM:
        return f"{head.rstrip()}\n{filled(text, 4, 4, width)}".rstrip()
    return (head + filled(text, len(head), len(head), width)[len(head) :]).rstrip()


def clipped(cell: str, most: int = 28) -> str:
    """The cell of a table, cut off if it is longer than so many characters."""
    return cell if len(cell) <= most else f"{cell[: most - 3]}..."


def who(name: str = "") -> str:
    """The name given, or the user behind sudo, or the user."""
    return one_line(name or os.environ.get("SUDO_USER") or user_name(os.getuid()))


def user_name(uid: int) -> str:
    """Their name, or, as in a container that knows nobody, the number."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid-{uid}"


def one_line(text: str) -> str:
    """The text, if a record can hold it."""
    if PROSE.pattern.fullmatch(text) is None:
        raise UserError(f"{text[:60]!a}: is not one line of 1 to 500 characters")
    return text


def now() -> datetime:
    return datetime.now(timezone.utc).replace(microsecond=0)


def confirm(name: str, *, yes: bool | None) -> None:
    """Return only if they type the node's name back, or have said --yes; None: the command has no such option."""
    if yes:
        return
    if not (sys.stdin and sys.stdin.isatty()):
        hint = "Run it on a terminal." if yes is None else "If you are sure, say --yes."
        raise UserError("nothing was changed: there is no terminal to ask on", hint)
    try:
        typed = input("Type the node's name to go on: ")
    except EOFError:
        typed = ""
    if typed.strip() != name:
        raise UserError(f"nothing was changed: that is not {name}")
