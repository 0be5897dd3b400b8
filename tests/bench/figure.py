"""One figure and its target, and how it is printed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """A measured value. Without a target it is printed for the record and can't be missed."""

    name: str
    value: float
    unit: str
    at_most: float | None = None
    at_least: float | None = None

    @property
    def met(self) -> bool:
        small_enough = self.at_most is None or self.value <= self.at_most
        return small_enough and (self.at_least is None or self.value >= self.at_least)

    def line(self) -> str:
        target = "" if self.at_most is None else f"at most {self.at_most:g}"
        target = target if self.at_least is None else f"at least {self.at_least:g}"
        verdict = "" if not target else "ok" if self.met else "missed"
        return f"{self.name:<44} {self.value:>10.3f} {self.unit:<9} {target:<14} {verdict}".rstrip()
