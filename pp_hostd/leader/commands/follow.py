"""Following the fleet: drawn again in place on a terminal, else a line for each change, until a person ends it.

It outlasts an API that does not answer: the last view stays, and the time since when it is old is told.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Callable, NoReturn, Optional

from pp_hostd.errors import UserError
from pp_hostd.leader.commands.fleet_text import fleet_text, note
from pp_hostd.leader.fleet import Fleet
from pp_hostd.model.moment import render_moment
from pp_hostd.service.output import now, say
from pp_hostd.service.screen import Colour, Screen

INTERVAL_SECONDS = 1.0
OTHER_SCREEN, OWN_SCREEN = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
HOME, END_OF_LINE, BELOW = "\x1b[H", "\x1b[K", "\x1b[J"
EXIT_TERMINATED = 128 + signal.SIGTERM
Looks = Iterator[tuple[Fleet, str, Optional[datetime]]]
"""For ever: the fleet, and why it is not read again, and since when; empty and None while it is."""


def pause() -> None:
    time.sleep(INTERVAL_SECONDS)


def follow(
    look: Callable[[], Fleet], screen: Callable[[], Screen], *, wide: bool, rest: Callable[[], None] = pause
) -> NoReturn:
    """`look` reads the fleet as it is now; the first look must succeed. The screen may change its size meanwhile."""
    first = look()
    looks = _looks(look, first, rest)
    if screen().follows:
        _drawn(looks, screen, wide)
    say(fleet_text(first, screen(), wide=wide))
    _told(looks, first)


def _drawn(looks: Looks, screen: Callable[[], Screen], wide: bool) -> NoReturn:
    with _other_screen() as draw:
        for fleet, trouble, since in looks:
            view = screen()
            text = fleet_text(fleet, view, wide=wide)
            if trouble and since is not None:
                old = f"The API does not answer since {render_moment(since)}; what follows was so before."
                text = f"{view.paint(old, Colour.RED)}\n{trouble}\n\n{text}"
            draw(frame(text, view))
    raise AssertionError("looks never end")


def _told(looks: Looks, first: Fleet) -> NoReturn:
    before, silent = first, False
    for after, trouble, _ in looks:
        if bool(trouble) != silent:
            silent = bool(trouble)
            told = f"the API does not answer: {trouble}" if trouble else "the API answers again"
            say(f"{render_moment(now())} {told}")
        for line in changes(before, after):
            say(f"{render_moment(after.at_wallclock)} {line}")
        before = after
    raise AssertionError("looks never end")


def _looks(look: Callable[[], Fleet], fleet: Fleet, rest: Callable[[], None]) -> Looks:
    since: datetime | None = None
    yield fleet, "", None
    while True:
        rest()
        try:
            fleet, trouble, since = look(), "", None
        except UserError as error:
            trouble, since = str(error).split("\n")[0], since or now()
        yield fleet, trouble, since


def frame(text: str, screen: Screen) -> str:
    """The text as a terminal's whole picture; lines that it has no room for are counted."""
    lines = text.split("\n")
    if len(lines) > screen.height:
        room = screen.height - 1
        lines = [*lines[:room], screen.paint(f"{len(lines) - room} more lines", Colour.FAINT)]
    return HOME + f"{END_OF_LINE}\n".join(lines) + END_OF_LINE + BELOW


@contextmanager
def _other_screen() -> Iterator[Callable[[str], None]]:
    """Draws on the terminal's second screen; whatever ends this, the first one comes back, and the last picture stays
    to be read on it."""
    last = ""

    def draw(picture: str) -> None:
        nonlocal last
        last = picture
        sys.stdout.write(picture)
        sys.stdout.flush()

    def end(*_: object) -> NoReturn:
        sys.exit(EXIT_TERMINATED)

    before = signal.signal(signal.SIGTERM, end)
    sys.stdout.write(OTHER_SCREEN)
    try:
        yield draw
    finally:
        left = last.replace(HOME, "").replace(END_OF_LINE, "").replace(BELOW, "")
        sys.stdout.write(f"{OWN_SCREEN}{left}\n")
        sys.stdout.flush()
        signal.signal(signal.SIGTERM, before)


def changes(before: Fleet, after: Fleet) -> Iterator[str]:
    """A line for each thing that is not as it was."""
    if (before.leadership.leads, before.leadership.holder) != (after.leadership.leads, after.leadership.holder):
        yield after.leadership.sentence()
    yield from _news(_limits(before), _limits(after), "no longer: ")
    yield from _news(_work(before), _work(after), "nothing is left to do: ")
    yield from _news(_hosts(before), _hosts(after), "no longer enrolled: ")


def _news(before: dict[str, str], after: dict[str, str], gone: str) -> Iterator[str]:
    for key, told in after.items():
        if before.get(key) != told:
            yield f"{key}: {told}"
    for key in before.keys() - after.keys():
        yield f"{gone}{key}"


def _limits(fleet: Fleet) -> dict[str, str]:
    return {f"limit {each.kind.value}": each.sentence for each in fleet.limits if fleet.leadership.leads}


def _work(fleet: Fleet) -> dict[str, str]:
    told = (each.told for each in fleet.ongoing)
    return {each.node or each.machine or each.sentence: f"{each.stage}: {each.sentence}" for each in told}


def _hosts(fleet: Fleet) -> dict[str, str]:
    return {host.name: note(host) or "protected and ready" for host in fleet.hosts}
