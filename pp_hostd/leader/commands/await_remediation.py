"""Following one remediation to its end: a line for each step of the leader, and then the outcome."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Collection, Sequence
from typing import Callable

from pp_hostd.errors import UserError
from pp_hostd.leader.commands.fleet_text import progress
from pp_hostd.leader.commands.follow import END_OF_LINE, pause
from pp_hostd.leader.fleet import Ongoing, part_of
from pp_hostd.leader.leadership import Leadership
from pp_hostd.leader.node_memory import Stage
from pp_hostd.leader.timeline import FINISHED, last_remediation
from pp_hostd.model.leader_status import Told
from pp_hostd.service.output import complain, filled, now, say, wrapped
from pp_hostd.service.screen import Screen

SETTLES_SECONDS = 5.0
"""So long after the request is gone the leader's last line may still come: it writes its history once a second."""


def await_remediation(
    name: str,
    known: Collection[Told],
    look: Callable[[], Leadership],
    is_requested: Callable[[], bool],
    screen: Screen,
    wait_seconds: float,
    clock: Callable[[], float] = time.monotonic,
    rest: Callable[[], None] = pause,
) -> None:
    """Returns once the workloads of the node are freed and the leader has nothing left to do; a UserError else. `known`
    is the history before the request; `is_requested` tells whether the request stands, or the Node is missing."""
    try:
        lines = _Followed(name, known, look, is_requested, screen, clock, rest).until_over(wait_seconds)
    except KeyboardInterrupt:
        left = "No longer followed. The request stands, and the leader goes on."
        complain(f"\n{left} To withdraw it: {absolve_command(name)}")
        raise
    found = last_remediation(lines, name)
    if found is None or found.freed_wallclock is None:
        told = f"the remediation of {name} is over, and its workloads were not freed: the request was withdrawn"
        raise UserError(told, f"See: pp-leader explain {name}")
    say(
        filled(f"Done. {found.summary()} To see whether its host is back: pp-leader explain {name}", width=screen.width)
    )


def absolve_command(name: str) -> str:
    return f"pp-leader absolve {name}"


class _Followed:
    """One remediation, and the lines about it so far. `_leadership` is the last that could be read."""

    def __init__(
        self,
        name: str,
        known: Collection[Told],
        look: Callable[[], Leadership],
        is_requested: Callable[[], bool],
        screen: Screen,
        clock: Callable[[], float],
        rest: Callable[[], None],
    ) -> None:
        self._name, self._look, self._is_requested, self._screen = name, look, is_requested, screen
        self._known, self._lines = set(known), list[Told]()
        self._leadership: Leadership | None = None
        self._clock, self._rest = clock, rest
        self._began_at, self._gone_at, self._trouble = clock(), math.inf, ""

    def until_over(self, wait_seconds: float) -> Sequence[Told]:
        while not self._is_over():
            if self._clock() - self._began_at >= wait_seconds:
                self._clear()
                raise self._overdue(wait_seconds)
            self._rest()
        self._clear()
        return self._lines

    def _is_over(self) -> bool:
        """After one look; an API that does not answer is told once, and asked again."""
        try:
            self._leadership = self._look()
            requested = self._is_requested()
        except UserError as error:
            if not self._trouble:
                self._print("no answer", str(error).split("\n")[0])
            self._trouble = str(error)
            return False
        self._trouble = ""
        history = self._leadership.history
        for told in history if isinstance(history, tuple) else ():
            if told.node == self._name and told not in self._known:
                self._known.add(told)
                self._lines.append(told)
                self._print(told.stage, _sentence(told))
        self._draw()
        self._gone_at = math.inf if requested else min(self._gone_at, self._clock())
        finished = bool(self._lines) and self._lines[-1].stage == FINISHED
        return not requested and (finished or self._clock() >= self._gone_at + SETTLES_SECONDS)

    def _print(self, stage: str, sentence: str) -> None:
        self._clear()
        head = f"{int(self._clock() - self._began_at):>5} s  {stage:<13}  "
        say(wrapped(head, sentence, self._screen.width))

    def _draw(self) -> None:
        """The present stage's bar, in place."""
        course = None if self._leadership is None else self._leadership.course(self._name)
        if not self._screen.follows or course is None:
            return
        at = now()
        cell = progress(Ongoing(course, part_of(course, at)), self._screen, at)
        sys.stdout.write(f"\r{' ' * 9}{self._screen.paint(cell.text, cell.colour)}{END_OF_LINE}")
        sys.stdout.flush()

    def _clear(self) -> None:
        if self._screen.follows:
            sys.stdout.write(f"\r{END_OF_LINE}")
            sys.stdout.flush()

    def _overdue(self, wait_seconds: float) -> UserError:
        course = None if self._leadership is None else self._leadership.course(self._name)
        why = f"{course.stage}: {course.sentence}" if course else "the leader has not begun"
        if self._leadership is not None and not self._leadership.leads:
            why = self._leadership.sentence()
        told = f"the remediation of {self._name} is not over after {wait_seconds:g} s: {self._trouble or why}"
        hint = f"The request stands. See: pp-leader explain {self._name}. To withdraw it: {absolve_command(self._name)}"
        return UserError(told, hint)


def _sentence(told: Told) -> str:
    if told.stage != Stage.WAITING.value or told.dead_by_wallclock is None:
        return told.sentence
    left = (told.dead_by_wallclock - told.when_wallclock).total_seconds()
    return f"{told.sentence} ({left:g} s from here)"
