"""Tells a story line by line: short for a person, with everything for who wants it, as JSON for a program."""

from __future__ import annotations

import enum
import json
import textwrap
import time
from collections.abc import Sequence

from tests.demo.board import BOLD, GREEN, RED, HostRow, Screen, coloured, table
from tests.demo.promises import Promise, ledger


class Form(enum.Enum):
    """How much is told, and to whom."""

    STORY = "story"
    VERBOSE = "verbose"
    JSON = "json"


class Role(enum.Enum):
    """The role of a speaker; the value is its name in JSON. Of these a short story shows the demo's own words alone."""

    AGENT = "agent"
    VICTIM = "victim"
    LEADER = "leader"
    CLUSTER = "cluster"
    DEMO = "demo"


COLOURS = {Role.AGENT: "36", Role.VICTIM: "31", Role.LEADER: "33", Role.CLUSTER: "32", Role.DEMO: "35"}
TIME, WHO = 7, 22
"""The columns of the time, and in the long form of the speaker."""


class Narrator:
    """Every line carries the time since the story began."""

    def __init__(self, form: Form) -> None:
        self._form, self._screen = form, Screen()
        self._begun_at = now()

    def scene(self, title: str) -> None:
        self._say(f"\n{self._in_colour(BOLD, title)}", scene=title)

    def say(self, role: Role, who: str, line: str, at: float | None = None, **fields: object) -> None:
        """`at` is when it happened, if not now; a program reads the further fields, too."""
        seconds = self.seconds(at)
        known = {"role": role.value, "who": who, "line": line, "seconds": seconds, **fields}
        told = f"{who:<{WHO - 2}}  " if self._form is Form.VERBOSE else ""
        margin = TIME + len(told)
        words = textwrap.wrap(line, max(24, self._screen.width - margin), break_on_hyphens=False)
        text = f"\n{' ' * margin}".join(words)
        if role is Role.DEMO or self._form is not Form.STORY:
            self._say(f"{seconds:5.1f}  {self._in_colour(COLOURS[role], told)}{text}", **known)

    def hosts(self, rows: Sequence[HostRow]) -> None:
        """The hosts as they are now: written again in place, or once at the end."""
        if self._form is Form.STORY:
            self._screen.show(["", *table(rows, self._screen.width, colour=self._screen.colour)])

    def promises(self, promises: Sequence[Promise]) -> None:
        """The table of promises and measurements."""
        self._screen.keep()
        if self._form is Form.JSON:
            for each in promises:
                known = {"promised": each.what, "bound": each.bound, "measured": each.measured, "kept": each.kept}
                self._say("", **known)
        else:
            self._say("\n" + "\n".join(ledger(promises, colour=self._screen.colour)))

    def end(self, happened: bool, words: str) -> None:
        """Whether all of it happened, and what is left to say; the last line is the outcome."""
        self._screen.keep()
        text = self._in_colour(GREEN if happened else RED, words)
        self._say(f"\n{text}", happened=happened, line=" ".join(words.split()))

    def close(self) -> None:
        """Leave the terminal as it was."""
        self._screen.keep()

    def seconds(self, at: float | None = None) -> float:
        """Since the story began."""
        return round((now() if at is None else at) - self._begun_at, 2)

    def _in_colour(self, code: str, text: str) -> str:
        return coloured(text, code, colour=self._screen.colour)

    def _say(self, text: str, **fields: object) -> None:
        if self._form is Form.JSON:
            self._screen.say(json.dumps({"seconds": self.seconds(), **fields}))
        else:
            self._screen.say(text)


def now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)
