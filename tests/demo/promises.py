"""The promises that a run must keep, each with what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.demo.board import BOLD, GREEN, RED, coloured
from tests.demo.expect import Untrue


@dataclass
class Promise:
    """`kept` is None until it was measured."""

    what: str
    bound: str
    measured: str = ""
    kept: bool | None = None

    def settle(self, measured: str, *, kept: bool) -> None:
        """Ends the run if it was not kept."""
        self.measured, self.kept = measured, kept
        if not kept:
            raise Untrue(f"{self.what}: promised {self.bound}, measured {measured}")


MARKS = {True: ("✓", GREEN), False: ("✗", RED), None: ("-", "")}
NOT_REACHED = "not reached"


def ledger(promises: Sequence[Promise], *, colour: bool) -> list[str]:
    """A line for each promise, below a header."""
    cells = [
        ("PROMISED", "", "MEASURED"),
        *((each.what, each.bound, each.measured or NOT_REACHED) for each in promises),
    ]
    what, bound = (max(len(row[column]) for row in cells) for column in (0, 1))
    lines = [f"{row[0]:{what}}  {row[1]:{bound}}  {row[2]}" for row in cells]
    marks = [MARKS[each.kept] for each in promises]
    told = [
        f"{coloured(mark, code, colour=colour and bool(code))} {line}" for (mark, code), line in zip(marks, lines[1:])
    ]
    return [coloured(f"  {lines[0]}", BOLD, colour=colour), *told]
