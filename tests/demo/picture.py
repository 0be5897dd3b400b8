"""Draws what the demo leaves on a terminal: `python -m tests.demo.picture docs/images/demo.svg` runs it in one.

The picture is of the last screen, has a paper of its own, and so is readable on light and on dark pages.
"""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from xml.sax.saxutils import escape

from tests.demo.terminal import Cell, Terminal

COLUMNS, ROWS = 120, 50
LINE, CHARACTER, MARGIN, SIZE = 19, 8.43, 18, 14
INKS = {"1": "#ffffff", "2": "#8b98a9", "31": "#ff8b80", "32": "#7ee29a", "33": "#ffd479", "35": "#d8dee9"}
PAPER, INK = "#161b22", "#d8dee9"
FONT = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"


def output_of(command: list[str]) -> Iterator[str]:
    """The output of a command on a terminal of this size, as it comes."""
    outer, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "LINES": str(ROWS)}
    environment.pop("NO_COLOR", None)
    with subprocess.Popen(command, stdin=inner, stdout=inner, env=environment) as process, open(outer, "rb", 0) as read:
        os.close(inner)
        written = b""
        while True:
            try:
                written += read.read(65536)
            except OSError:  # the other end is closed
                break
            whole = written.rfind(b"\n") + 1
            yield written[:whole].decode()
            written = written[whole:]
    if process.returncode:
        sys.exit(f"the demo ended with {process.returncode}; no picture was drawn")


def svg(rows: list[list[Cell]], title: str) -> str:
    """The rows as they stand, on dark paper with a frame that shows on a dark page, too."""
    width, height = round(COLUMNS * CHARACTER + 2 * MARGIN), len(rows) * LINE + 2 * MARGIN
    lines = [line for number, row in enumerate(rows) for line in _line(row, MARGIN + (number + 0.75) * LINE)]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    paper = f'<rect x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="9" fill="{PAPER}" stroke="#6e7b8b"/>'
    style = f'<g font-family="{FONT}" font-size="{SIZE}" fill="{INK}" xml:space="preserve">'
    named = f"<title>{escape(title)}</title>"
    return "\n".join([f'{head} role="img">', named, paper, style, *lines, "</g>", "</svg>", ""])


def _line(row: list[Cell], y: float) -> Iterator[str]:
    column = 0
    for code, cells in groupby(row, lambda cell: cell.code):
        text = "".join(cell.character for cell in cells)
        if text.strip():
            x, length = MARGIN + column * CHARACTER, len(text) * CHARACTER
            look = f' fill="{INKS.get(code, INK)}"' + (' font-weight="bold"' if code == "1" else "")
            fitted = f'textLength="{length:.1f}" lengthAdjust="spacingAndGlyphs"'
            yield f'<text x="{x:.1f}" y="{y:.1f}" {fitted}{look if code else ""}>{escape(text)}</text>'
        column += len(text)


def _without_outer_blanks(rows: list[list[Cell]]) -> list[list[Cell]]:
    told = [number for number, row in enumerate(rows) if any(cell.character != " " for cell in row)]
    return rows[told[0] : told[-1] + 1]


def main() -> None:
    terminal = Terminal()
    for text in output_of([sys.executable, "-m", "tests.demo"]):
        terminal.feed(text)
        sys.stdout.write(text)
        sys.stdout.flush()
    target = Path(sys.argv[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(svg(_without_outer_blanks(terminal.rows), "make demo: the last screen of a real run"))


if __name__ == "__main__":
    main()
