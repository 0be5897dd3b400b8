"""Failures that a person has to act on: what happened, where, and what to do next."""

from __future__ import annotations


class UserError(Exception):
    """An expected failure. Commands print it as `message` and, below it, `hint`; never as a traceback."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  {self.hint}" if self.hint else self.message
