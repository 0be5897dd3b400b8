"""The conditions that must hold for the demo to have shown anything."""

from __future__ import annotations


class Untrue(Exception):
    """Something did not happen as it must; the text is what should have held."""


def expect(holds: bool, what: str) -> None:
    if not holds:
        raise Untrue(f"it does not hold that {what}")
