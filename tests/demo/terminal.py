"""A terminal as far as the demo's output needs one: characters with colours, and going up to write again."""

from __future__ import annotations

import re
from typing import NamedTuple

_PART = re.compile(r"\033\[([?0-9;]*)([A-Za-z])|\r|\n|[^\033\r\n]")


class Cell(NamedTuple):
    """One character, and the SGR code of its colour."""

    character: str
    code: str


class Terminal:
    """`feed` it what a program writes; `rows` is what stands there then, what has scrolled away included."""

    def __init__(self) -> None:
        self.rows: list[list[Cell]] = [[]]
        self._row = self._column = 0
        self._code = ""

    def feed(self, text: str) -> None:
        for part in _PART.finditer(text):
            if part[2] is not None:
                self._order(part[1], part[2])
            elif part[0] == "\n":
                self._row, self._column = self._row + 1, 0
                self.rows += [[]] * (self._row + 1 - len(self.rows))
            elif part[0] == "\r":
                self._column = 0
            else:
                self._put(Cell(part[0], self._code))

    def lines(self) -> list[str]:
        """Without colours."""
        return ["".join(cell.character for cell in row).rstrip() for row in self.rows]

    def _put(self, cell: Cell) -> None:
        row = self.rows[self._row]
        row = [*row, *[Cell(" ", "")] * (self._column - len(row))]
        self.rows[self._row] = [*row[: self._column], cell, *row[self._column + 1 :]]
        self._column += 1

    def _order(self, arguments: str, letter: str) -> None:
        if letter == "m":
            self._code = arguments.strip("0")
        elif letter == "F":
            self._row, self._column = max(0, self._row - int(arguments or 1)), 0
        elif letter == "J":
            self.rows = [*self.rows[: self._row], self.rows[self._row][: self._column]]
