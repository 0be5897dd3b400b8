"""The last remediation of a node, out of the leaders' history: its stages, the promised end, and the measured one.

The history is of whole seconds, by the wall clocks of the leaders that wrote it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from pp_hostd.frozen import frozen
from pp_hostd.leader.fleet import FREED_STAGES, WAITING_STAGES
from pp_hostd.leader.node_memory import Stage
from pp_hostd.model.leader_status import Told
from pp_hostd.model.moment import render_moment

FINISHED = "finished"
_FREES = {Stage.FREEING.value, Stage.RESTORING.value}


@frozen
class Span:
    """One stage, and the last sentence about it. It has not ended if `ended_wallclock` is None."""

    stage: str
    began_wallclock: datetime
    ended_wallclock: datetime | None
    sentence: str


@frozen
class Timeline:
    """`spans` are in order, and never empty. `freed_wallclock` is when its workloads were freed, `finished_wallclock`
    when nothing was left to do, and `dead_by_wallclock` by when the host was to be dead; None if that is not told."""

    node: str
    spans: tuple[Span, ...]
    dead_by_wallclock: datetime | None
    freed_wallclock: datetime | None
    finished_wallclock: datetime | None

    @property
    def began_wallclock(self) -> datetime:
        return self.spans[0].began_wallclock

    @property
    def remedied_wallclock(self) -> datetime | None:
        """When nothing held it back any more; None if it never was so."""
        began = (span.began_wallclock for span in self.spans if span.stage not in WAITING_STAGES)
        return next(began, None)

    @property
    def promised_seconds(self) -> float | None:
        """From when nothing held it back any more until its host was to be dead."""
        return _seconds(self.remedied_wallclock, self.dead_by_wallclock)

    @property
    def freed_seconds(self) -> float | None:
        """From when nothing held it back any more until its workloads were free."""
        return _seconds(self.remedied_wallclock, self.freed_wallclock)

    def summary(self) -> str:
        """The outcome in a sentence or two."""
        promised, freed = self.promised_seconds, self.freed_seconds
        dead = "" if promised is None else f" The host was to be dead within {promised:g} s."
        if freed is not None:
            return f"Its workloads were free {freed:g} s after its remediation could begin.{dead}"
        if self.finished_wallclock is not None:
            return "It ended before its workloads were freed: somebody withdrew the request."
        return f"It is not over: {self.spans[-1].stage}.{dead}"

    def as_json(self) -> dict[str, Any]:
        return {
            "node": self.node,
            "began": render_moment(self.began_wallclock),
            "promised_seconds": self.promised_seconds,
            "freed_seconds": self.freed_seconds,
            "dead_by": _rendered(self.dead_by_wallclock),
            "freed": _rendered(self.freed_wallclock),
            "finished": _rendered(self.finished_wallclock),
            "stages": [
                {
                    "stage": span.stage,
                    "began": render_moment(span.began_wallclock),
                    "ended": _rendered(span.ended_wallclock),
                    "sentence": span.sentence,
                }
                for span in self.spans
            ],
        }


def last_remediation(history: Iterable[Told], node: str) -> Timeline | None:
    """None if the history has no line about this node; else of its last remediation, which may not be over."""
    lines: list[Told] = []
    for told in (each for each in history if each.node == node):
        lines = [told] if lines and lines[-1].stage == FINISHED else [*lines, told]
    stages = [told for told in lines if told.stage != FINISHED]
    if not stages:
        return None
    finished = lines[-1].when_wallclock if lines[-1].stage == FINISHED else None
    spans = _spans(stages, finished)
    dead_by = [told.dead_by_wallclock for told in lines if told.dead_by_wallclock is not None]
    return Timeline(node, spans, dead_by[-1] if dead_by else None, _freed(spans, finished), finished)


def _spans(lines: Sequence[Told], finished: datetime | None) -> tuple[Span, ...]:
    first = [lines[0], *(after for before, after in zip(lines, lines[1:]) if before.stage != after.stage)]
    ends = [*(told.when_wallclock for told in first[1:]), finished]
    last: dict[int, str] = {}
    place = -1
    for told in lines:
        place += place + 1 < len(first) and told is first[place + 1]
        last[place] = told.sentence
    return tuple(
        Span(told.stage, told.when_wallclock, end, last[number]) for number, (told, end) in enumerate(zip(first, ends))
    )


def _freed(spans: Sequence[Span], finished: datetime | None) -> datetime | None:
    """When the leader went on from the freeing, or gave back what it had freed."""
    for before, span in zip((None, *spans), spans):
        if span.stage in FREED_STAGES and before is not None and before.stage in _FREES:
            return span.began_wallclock
    return finished if spans[-1].stage in _FREES else None


def _seconds(since: datetime | None, until: datetime | None) -> float | None:
    return None if since is None or until is None else (until - since).total_seconds()


def _rendered(moment: datetime | None) -> str | None:
    return None if moment is None else render_moment(moment)
