"""One line of the diagnosis: what was checked, how it stands, what was found, and what to do."""

from __future__ import annotations

import enum

from pp_hostd.frozen import frozen


class Outcome(enum.Enum):
    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"


@frozen
class Line:
    """`advice` is empty only where all is well."""

    check: str
    outcome: Outcome
    found: str
    advice: str = ""

    def fields(self) -> dict[str, str]:
        return {"check": self.check, "outcome": self.outcome.value, "found": self.found, "advice": self.advice}


def ok(check: str, found: str) -> Line:
    return Line(check, Outcome.OK, found)


def warning(check: str, found: str, advice: str) -> Line:
    return Line(check, Outcome.WARNING, found, advice)


def failure(check: str, found: str, advice: str) -> Line:
    return Line(check, Outcome.FAILURE, found, advice)


def not_checked(check: str, why: str, advice: str) -> Line:
    """What can't be known is no failure; but nobody should think that it was looked at."""
    return Line(check, Outcome.WARNING, f"not checked: {why}", advice)
