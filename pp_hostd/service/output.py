"""How commands print: text as it is, JSON for programs, and tables that fit 80 columns."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from textwrap import TextWrapper
from typing import Any

WIDTH = 80
LEAST_ROOM = 24


def say(text: str) -> None:
    print(text, flush=True)  # noqa: T201


def complain(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201


def say_json(value: Any, indent: int | None = 2) -> None:
    say(json.dumps(value, indent=indent))


def labelled(rows: Sequence[tuple[str, str]]) -> str:
    """A label and a text in each row, the texts below each other and wrapped."""
    width = max((len(label) for label, _ in rows), default=0) + 2
    return "\n".join(_wrapped(f"{label:{width}}", text) for label, text in rows)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as they need to be, but for the last one, which is wrapped to what is left."""
    shown = [[_clipped(cell) for cell in row[:-1]] for row in (header, *rows)]
    widths = [max(len(row[column]) for row in shown) for column in range(len(header) - 1)]
    heads = ["".join(f"{cell:{width}}  " for cell, width in zip(row, widths)) for row in shown]
    return "\n".join(_wrapped(head, row[-1]) for head, row in zip(heads, (header, *rows)))


def filled(text: str, indent: int = 0, first_indent: int = 0) -> str:
    """The text in lines; names and paths stay whole, for copying, even where one is wider than a line."""
    wrapper = TextWrapper(WIDTH, " " * first_indent, " " * indent, break_long_words=False, break_on_hyphens=False)
    return wrapper.fill(text)


def _wrapped(head: str, text: str) -> str:
    """The text beside its head, or below it when too little room is left."""
    if len(head) > WIDTH - LEAST_ROOM:
        return f"{head.rstrip()}\n{filled(text, 4, 4)}".rstrip()
    return (head + filled(text, len(head), len(head))[len(head) :]).rstrip()


def _clipped(cell: str, most: int = 28) -> str:
    return cell if len(cell) <= most else f"{cell[: most - 3]}..."
