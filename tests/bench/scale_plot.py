"""A row of log-log plots as SVG: each with titled axes, one colour a line, and one legend for all."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

WIDTH, HEIGHT = 380, 300
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 34, 92
STYLE = "font-family='sans-serif' font-size='12'"


@dataclass(frozen=True)
class Line:
    """Points are (nodes, value)."""

    name: str
    colour: str
    dashed: bool
    points: list[tuple[float, float]]
    width: int = 2


@dataclass(frozen=True)
class Panel:
    title: str
    lines: list[Line]


@dataclass(frozen=True)
class _Scale:
    """Where a value lies between two powers of ten, in pixels."""

    low: int
    high: int
    begin: float
    end: float

    def __call__(self, value: float) -> float:
        return self.begin + (math.log10(value) - self.low) / (self.high - self.low) * (self.end - self.begin)


def plot(panels: list[Panel]) -> str:
    width, height = WIDTH * len(panels), HEIGHT + TOP + BOTTOM
    parts = [part for number, panel in enumerate(panels) for part in _panel(panel, number * WIDTH)]
    parts += _legend(panels[0].lines, height - 24)
    size = f"width='{width}' height='{height}' viewBox='0 0 {width} {height}'"
    background = "<rect width='100%' height='100%' fill='white'/>"
    return "\n".join([f"<svg xmlns='http://www.w3.org/2000/svg' {size} {STYLE}>", background, *parts, "</svg>\n"])


def _panel(panel: Panel, left: float) -> Iterator[str]:
    drawn = [(x, y) for line in panel.lines for x, y in line.points if y > 0]
    across = _Scale(*_powers([x for x, _ in drawn]), left + LEFT, left + WIDTH - RIGHT)
    up = _Scale(*_powers([y for _, y in drawn]), TOP + HEIGHT, TOP)
    yield _text((across.begin + across.end) / 2, TOP - 14, panel.title, "middle", "font-weight='bold'")
    yield _text((across.begin + across.end) / 2, TOP + HEIGHT + 36, "nodes", "middle")
    for power in range(up.low, up.high + 1):
        yield _rule(across.begin, up(10**power), across.end, up(10**power))
        yield _text(across.begin - 6, up(10**power) + 4, _short(power), "end")
    for power in range(across.low, across.high + 1):
        yield _rule(across(10**power), up.begin, across(10**power), up.end)
        yield _text(across(10**power), TOP + HEIGHT + 18, _short(power), "middle")
    for line in panel.lines:
        points = [(across(x), up(y)) for x, y in line.points if y > 0]
        yield f"<polyline fill='none' {_stroke(line)} points='{' '.join(f'{x:.1f},{y:.1f}' for x, y in points)}'/>"
        yield from (f"<circle cx='{x:.1f}' cy='{y:.1f}' r='3' fill='{line.colour}'/>" for x, y in points)


def _legend(lines: list[Line], top: float) -> Iterator[str]:
    for number, line in enumerate(lines):
        left = LEFT + number * 190
        yield f"<line x1='{left}' y1='{top}' x2='{left + 36}' y2='{top}' {_stroke(line)}/>"
        yield _text(left + 44, top + 4, line.name, "start")


def _powers(values: list[float]) -> tuple[int, int]:
    return math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))


def _short(power: int) -> str:
    units = {0: "", 3: "k", 6: "M", 9: "G"}
    unit = max((each for each in units if each <= power), default=0)
    return f"{10.0 ** (power - unit):g}{units[unit]}"


def _stroke(line: Line) -> str:
    return f"stroke='{line.colour}' stroke-width='{line.width}'" + " stroke-dasharray='6 4'" * line.dashed


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' stroke='#dddddd'/>"


def _text(x: float, y: float, text: str, anchor: str, more: str = "") -> str:
    return f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}' {more}>{text}</text>"
