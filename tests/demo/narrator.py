"""Tells a story on the terminal: who does what, when; in colour for a person, plain for a file."""

from __future__ import annotations

import sys
import time

COLOURS = ("36", "32", "35", "33", "34", "31")


class Narrator:
    """Every line carries the time since the story began."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._live = sys.stdout.isatty()
        self._colours: dict[str, str] = {}

    def scene(self, title: str) -> None:
        print(f"\n\033[1m{title}\033[0m" if self._live else f"\n{title}", flush=True)

    def say(self, who: str, *lines: str) -> None:
        colour = self._colours.setdefault(who, COLOURS[len(self._colours) % len(COLOURS)])
        name = f"\033[{colour}m{who:<9}\033[0m" if self._live else f"{who:<9}"
        for line in lines:
            print(f"{time.monotonic() - self._begun:6.1f} s  {name} {line}", flush=True)
