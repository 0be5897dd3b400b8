"""The screen that a command prints on: its width, and whether it takes colours and block characters.

A file or a pipe gets plain ASCII without escape codes; so does a terminal whose user has set NO_COLOR.
"""

from __future__ import annotations

import enum
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TextIO, Union

from pp_hostd.frozen import frozen
from pp_hostd.service.output import WIDTH, clipped, wrapped

LEAST_WIDTH = 40
FULL, EMPTY = "\N{FULL BLOCK}", "\N{LIGHT SHADE}"


class Colour(enum.Enum):
    """The codes of a terminal, which its user's palette turns into colours."""

    RED = "31"
    YELLOW = "33"
    GREEN = "32"
    BOLD = "1"
    FAINT = "2"


class Cell(NamedTuple):
    """A text in a table, and its colour."""

    text: str
    colour: Colour | None = None


Row = Sequence[Union[Cell, str]]


@frozen
class Screen:
    """`blocks`: it shows block characters. `follows`: it is a terminal, on which lines can be drawn again."""

    width: int = WIDTH
    colours: bool = False
    blocks: bool = False
    follows: bool = False
    height: int = 24

    @classmethod
    def of(cls, stream: TextIO | None, environment: Mapping[str, str], *, no_color: bool) -> Screen:
        size = shutil.get_terminal_size((WIDTH, 24))
        terminal = stream is not None and stream.isatty() and environment.get("TERM") != "dumb"
        encoding = (getattr(stream, "encoding", None) or "").lower()
        return cls(
            width=max(LEAST_WIDTH, size.columns),
            colours=terminal and not no_color and not environment.get("NO_COLOR"),
            blocks=terminal and encoding.startswith("utf"),
            follows=terminal,
            height=size.lines,
        )

    def paint(self, text: str, colour: Colour | None) -> str:
        return f"\x1b[{colour.value}m{text}\x1b[0m" if self.colours and colour is not None and text else text

    def bar(self, part: float, cells: int) -> str:
        """Full only once all of it is done."""
        done = int(part * cells)
        full, empty = (FULL, EMPTY) if self.blocks else ("#", "-")
        return f"{full * done}{empty * (cells - done)}"

    def labelled(self, rows: Sequence[tuple[str, Cell | str]]) -> str:
        """A label and a text in each row, the texts below each other and wrapped."""
        width = max((len(label) for label, _ in rows), default=0) + 2
        return "\n".join(
            self._lines(self.paint(f"{label:{width}}", Colour.FAINT), width, _cell(text)) for label, text in rows
        )

    def table(self, header: Sequence[str], rows: Sequence[Row]) -> str:
        """Columns as wide as they need to be, but for the last one, which is wrapped to the room that is left."""
        cells = [[Cell(name, Colour.FAINT) for name in header], *([_cell(each) for each in row] for row in rows)]
        widths = [max(len(clipped(row[column].text)) for row in cells) for column in range(len(header) - 1)]
        return "\n".join(self._row(row, widths) for row in cells)

    def _row(self, row: Sequence[Cell], widths: Sequence[int]) -> str:
        padded = ((f"{clipped(cell.text):{width}}  ", cell.colour) for cell, width in zip(row, widths))
        head = "".join(self.paint(text, colour) for text, colour in padded)
        return self._lines(head, sum(widths) + 2 * len(widths), row[-1])

    def _lines(self, head: str, wide: int, last: Cell) -> str:
        """The head is `wide` characters on the screen, its codes aside."""
        first, *more = wrapped(" " * wide, last.text, self.width).split("\n")
        if not first:
            return "\n".join([head.rstrip(), *(self.paint(line, last.colour) for line in more)])
        lines = [head + self.paint(first[wide:], last.colour), *(self.paint(line, last.colour) for line in more)]
        return "\n".join(line.rstrip() for line in lines)


def _cell(value: Cell | str) -> Cell:
    return value if isinstance(value, Cell) else Cell(value)


def this_screen(*, no_color: bool) -> Screen:
    import os

    return Screen.of(sys.stdout, os.environ, no_color=no_color)
