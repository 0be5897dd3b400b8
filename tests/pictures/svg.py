"""The few shapes of the pictures: boxes, arrows and texts, in colours for a light and a dark background."""

from __future__ import annotations

import enum
import textwrap
from collections.abc import Iterable
from html import escape

TEXT_WIDTH = 6.4
"""Of one character of 13 pixels, on average."""
LINE_HEIGHT = 17

LIGHT = {
    "paper": "#ffffff",
    "box": "#f6f8fa",
    "edge": "#d0d7de",
    "ink": "#1f2328",
    "soft": "#59636e",
    "good": "#1a7f37",
    "bad": "#cf222e",
    "act": "#0969da",
    "wait": "#9a6700",
}
DARK = {
    "paper": "#0d1117",
    "box": "#161b22",
    "edge": "#3d444d",
    "ink": "#e6edf3",
    "soft": "#9198a1",
    "good": "#3fb950",
    "bad": "#f85149",
    "act": "#4493f8",
    "wait": "#d29922",
}


class Tone(enum.Enum):
    """The meaning of a colour; never told by the colour alone."""

    INK = "ink"
    SOFT = "soft"
    GOOD = "good"
    BAD = "bad"
    ACT = "act"
    WAIT = "wait"


def document(width: int, height: int, title: str, told: str, parts: Iterable[str]) -> str:
    """`told` is the picture in words, for people who can't see it."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    lines = [
        f'{head} role="img" aria-labelledby="title told">',
        f'<title id="title">{escape(title)}</title>',
        f'<desc id="told">{escape(told)}</desc>',
        f"<style>{_rules(LIGHT)}@media (prefers-color-scheme: dark) {{{_rules(DARK)}}}",
        "text {font: 13px system-ui, 'Segoe UI', 'Noto Sans', 'DejaVu Sans', sans-serif}",
        ".big {font-size: 15px; font-weight: 600} .small {font-size: 12px}</style>",
        "<defs>",
        *(_arrow_head(tone) for tone in Tone),
        "</defs>",
        f'<rect class="f-paper s-edge" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="10"/>',
        *parts,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _rules(colours: dict[str, str]) -> str:
    return "".join(f".f-{name} {{fill: {colour}}} .s-{name} {{stroke: {colour}}} " for name, colour in colours.items())


def _arrow_head(tone: Tone) -> str:
    shape = f'<path class="f-{tone.value}" d="M0 0 L8 4 L0 8 z"/>'
    size = 'viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8"'
    return f'<marker id="{tone.value}" {size} markerUnits="userSpaceOnUse" orient="auto-start-reverse">{shape}</marker>'


def box(x: float, y: float, width: float, height: float, fill: str = "box", edge: str = "edge") -> str:
    return f'<rect class="f-{fill} s-{edge}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6"/>'


def text(x: float, y: float, words: str, tone: Tone = Tone.INK, anchor: str = "start", style: str = "") -> str:
    names = f"f-{tone.value} {style}".strip()
    return f'<text class="{names}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(words)}</text>'


def lines_of(words: str, width: float) -> list[str]:
    """The words, broken so that they fit into so many pixels."""
    return textwrap.wrap(words, max(8, int(width / TEXT_WIDTH))) or [""]


def paragraph(x: float, y: float, width: float, words: str, tone: Tone = Tone.INK, anchor: str = "start") -> list[str]:
    """The words from this line downwards."""
    return [text(x, y + LINE_HEIGHT * row, line, tone, anchor) for row, line in enumerate(lines_of(words, width))]


def line(x1: float, y1: float, x2: float, y2: float, tone: str = "edge", dashed: bool = False, width: float = 1) -> str:
    dashes = ' stroke-dasharray="5 4"' if dashed else ""
    ends = f'x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"'
    return f'<line class="s-{tone}" {ends} stroke-width="{width:g}"{dashes}/>'


def arrow(x1: float, y1: float, x2: float, y2: float, tone: Tone, both: bool = False, dashed: bool = False) -> str:
    ends = f'x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" marker-end="url(#{tone.value})"'
    ends += f' marker-start="url(#{tone.value})"' if both else ""
    dashes = ' stroke-dasharray="5 4"' if dashed else ""
    return f'<line class="s-{tone.value}" stroke-width="1.6" {ends}{dashes}/>'


def cross(x: float, y: float) -> str:
    """The mark of a message that does not arrive."""
    path = f"M{x - 5:g} {y - 5:g} l10 10 m0 -10 l-10 10"
    return f'<path class="s-bad" stroke-width="2.4" fill="none" d="{path}"/>'
