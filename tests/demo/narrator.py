"""Tells a story on the terminal: who does what, when; in colour and unhurried for a person, plain for a file."""

from __future__ import annotations

import asyncio
import sys
import time

COLOURS = {"api": "36", "client": "32", "watch": "35", "trouble": "33", "settings": "34"}
READING_SECONDS = 0.6


class Narrator:
    """Every line carries the time since the story began."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._live = sys.stdout.isatty()

    def scene(self, title: str) -> None:
        print(f"\n\033[1m{title}\033[0m" if self._live else f"\n{title}", flush=True)

    async def say(self, who: str, text: str) -> None:
        """One line; on a terminal there is time to read it."""
        self.note(who, text)
        await asyncio.sleep(READING_SECONDS if self._live else 0)

    def note(self, who: str, text: str) -> None:
        """One line, without a pause."""
        name = f"\033[{COLOURS[who]}m{who:<9}\033[0m" if self._live else f"{who:<9}"
        print(f"{time.monotonic() - self._begun:6.2f} s  {name} {text}", flush=True)
