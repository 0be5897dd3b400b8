"""Tells a story line by line: in colour for a person, plain for a file, as JSON for a program."""

from __future__ import annotations

import enum
import json
import shutil
import textwrap
import time

MARGIN = 29
"""Where the words begin, after time and name."""


class Form(enum.Enum):
    """How lines look."""

    COLOUR = "colour"
    PLAIN = "plain"
    JSON = "json"


class Role(enum.Enum):
    """The role of a speaker; the value is its name in JSON."""

    AGENT = "agent"
    VICTIM = "victim"
    LEADER = "leader"
    CLUSTER = "cluster"
    DEMO = "demo"


COLOURS = {Role.AGENT: 36, Role.VICTIM: 31, Role.LEADER: 33, Role.CLUSTER: 32, Role.DEMO: 35}


class Narrator:
    """Every line carries the time since the story began."""

    def __init__(self, form: Form) -> None:
        self._form = form
        self._begun_at = now()

    def scene(self, title: str) -> None:
        self._print(f"\n{self._in_colour(1, title)}", scene=title)

    def say(self, role: Role, who: str, line: str, at: float | None = None, **fields: object) -> None:
        """`at` is when it happened, if not now; a program reads the further fields, too."""
        seconds = self.seconds(at)
        words = textwrap.wrap(line, max(40, shutil.get_terminal_size((120, 0)).columns - MARGIN))
        text = f"{seconds:5.1f} s  {self._in_colour(COLOURS[role], f'{who:<18}')}  " + f"\n{' ' * MARGIN}".join(words)
        self._print(text, role=role.value, who=who, line=line, **{"seconds": seconds, **fields})

    def end(self, happened: bool, words: str) -> None:
        """Whether all of it happened, and what is left to say."""
        self._print(f"\n{words}", happened=happened, line=" ".join(words.split()))

    def seconds(self, at: float | None = None) -> float:
        """Since the story began."""
        return round((now() if at is None else at) - self._begun_at, 2)

    def _in_colour(self, code: int, text: str) -> str:
        return f"\033[{code}m{text}\033[0m" if self._form is Form.COLOUR else text

    def _print(self, text: str, **fields: object) -> None:
        line = json.dumps({"seconds": self.seconds(), **fields}) if self._form is Form.JSON else text
        print(line, flush=True)


def now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)
