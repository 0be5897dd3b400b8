"""A sequence of messages between lanes, from top to bottom, with the seconds of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.pictures.svg import LINE_HEIGHT, Tone, arrow, box, cross, document, line, lines_of, paragraph, text

LEFT, TOP, GAP, LANE = 92, 70, 18, 218


@dataclass(frozen=True)
class Step:
    """At this time `sender` says something to `receiver`, or does something itself if there is no receiver."""

    when: str
    sender: str
    words: str
    receiver: str = ""
    tone: Tone = Tone.INK
    lost: bool = False
    """Whether the message does not arrive."""


@dataclass(frozen=True)
class Exchange:
    title: str
    lanes: Sequence[str]
    steps: Sequence[Step]

    def told(self) -> str:
        return " ".join(f"{step.when}: {self._who(step)}: {step.words}." for step in self.steps)

    def _who(self, step: Step) -> str:
        return f"{step.sender} to {step.receiver}" if step.receiver else step.sender

    def draw(self) -> str:
        width = LEFT + LANE * len(self.lanes) + 14
        tops, bottom = self._tops()
        parts = [text(20, 30, self.title, style="big")]
        for name in self.lanes:
            at = self._at(name)
            parts += [box(at - 84, 44, 168, 28), text(at, 63, name, anchor="middle", style="small")]
            parts.append(line(at, 72, at, bottom - 14, dashed=True))
        for step, top in zip(self.steps, tops):
            parts += self._step(step, top)
        return document(width, int(bottom), self.title, self.told(), parts)

    def _at(self, name: str) -> float:
        return LEFT + LANE * (self.lanes.index(name) + 0.5)

    def _room(self, step: Step) -> float:
        span = abs(self._at(step.receiver) - self._at(step.sender)) if step.receiver else LANE
        return span - 26

    def _tops(self) -> tuple[list[float], float]:
        tops, top = [], float(TOP + 22)
        for step in self.steps:
            tops.append(top)
            rows = len(lines_of(step.words, self._room(step)))
            top += LINE_HEIGHT * rows + GAP + (12 if step.receiver else 8)
        return tops, top + 8

    def _step(self, step: Step, top: float) -> Iterator[str]:
        yield text(20, top + LINE_HEIGHT, step.when, Tone.SOFT)
        room, start = self._room(step), self._at(step.sender)
        rows = len(lines_of(step.words, room))
        if not step.receiver:
            height = LINE_HEIGHT * rows + 10
            yield box(start - LANE / 2 + 8, top, LANE - 16, height, edge=step.tone.value)
            yield from paragraph(start, top + LINE_HEIGHT, room, step.words, step.tone, "middle")
            return
        end = self._at(step.receiver)
        yield box((start + end) / 2 - room / 2, top + 2, room, LINE_HEIGHT * rows, fill="paper", edge="paper")
        yield from paragraph((start + end) / 2, top + LINE_HEIGHT - 2, room, step.words, step.tone, "middle")
        at = top + LINE_HEIGHT * rows + 8
        reached = start + 0.4 * (end - start) if step.lost else end
        yield arrow(start, at, reached, at, step.tone, dashed=step.lost)
        if step.lost:
            yield cross(reached + (8 if end > start else -8), at)
