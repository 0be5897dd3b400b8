"""A violation: something that must never happen, whatever goes wrong."""

from __future__ import annotations


class Violation(Exception):
    """`kind` is the invariant's name."""

    def __init__(self, kind: str, sentence: str) -> None:
        super().__init__(f"{kind}: {sentence}")
        self.kind = kind
