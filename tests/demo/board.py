"""The hosts as a table, and a terminal on which it stands below the story and is written again in place."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from typing import NamedTuple


class HostRow(NamedTuple):
    """A host as a person sees it; `says` is its agent's own sentence."""

    host: str
    network: str
    kubelet: str
    runs: str
    says: str


HEADER = HostRow("HOST", "NETWORK", "KUBELET", "RUNS", "ITS AGENT SAYS")
BOLD, RED, GREEN, YELLOW, DIM = "1", "31", "32", "33", "2"
HIDE, SHOW, CLEAR_BELOW = "\033[?25l", "\033[?25h", "\033[J"


def table(rows: Sequence[HostRow], width: int, *, colour: bool) -> list[str]:
    """Each row is one line, which is cut where the terminal ends."""
    shown = [HEADER, *rows]
    widths = [max(len(row[column]) for row in shown) for column in range(len(HEADER) - 1)]
    lines = []
    for row in shown:
        cells = [f"{cell:{wide}}" for cell, wide in zip(row, widths)]
        line = "  ".join([*cells, row.says]).rstrip()
        line = line if len(line) <= width else f"{line[: max(0, width - 1)]}…"
        lines.append(coloured(line, _colour(row), colour=colour))
    return lines


def _colour(row: HostRow) -> str:
    if row is HEADER:
        return BOLD
    if row.kubelet == "off":
        return RED
    return GREEN if (row.network, row.kubelet) == ("ok", "runs") else YELLOW


def coloured(text: str, code: str, *, colour: bool) -> str:
    return f"\033[{code}m{text}\033[0m" if colour and text else text


class Screen:
    """Standard output: lines that stay, and below them, on a terminal, some that are replaced."""

    def __init__(self) -> None:
        self.live = sys.stdout.isatty() and os.environ.get("TERM", "") not in ("", "dumb")
        self.colour = self.live and not os.environ.get("NO_COLOR")
        self._below: list[str] = []
        self._drawn: tuple[list[str], int] = ([], 0)

    @property
    def width(self) -> int:
        """The columns now, since a person may change them; one is left, where a cursor may stand."""
        return max(40, shutil.get_terminal_size((120, 24)).columns) - 1

    def say(self, text: str) -> None:
        """A line that stays, or several."""
        self._write(f"{self._up()}{text}\n")
        self._drawn = ([], 0)
        self.show(self._below)

    def show(self, lines: list[str]) -> None:
        """Replace what stands below; without a terminal there is nothing below."""
        self._below = lines
        if self.live and lines and (lines, self.width) != self._drawn:
            text = "".join(f"{line}\n" for line in lines)
            self._write(f"{self._up()}{HIDE}{text}")
            self._drawn = (lines, self.width)

    def keep(self) -> None:
        """Leave the lines below where they are; on a terminal the cursor is seen again."""
        if self.live:
            self._write(SHOW)
        elif self._below:
            self._write("".join(f"{line}\n" for line in self._below))
        self._below, self._drawn = [], ([], 0)

    def _up(self) -> str:
        drawn = len(self._drawn[0])
        return f"\033[{drawn}F{CLEAR_BELOW}" if drawn else ""

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()
