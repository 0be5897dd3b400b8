"""`pp-hostd doctor`: look at all that this host's protection rests on, and say what to do."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Sequence

from pp_hostd.agent.doctor.diagnose import diagnose
from pp_hostd.agent.doctor.examination import Examination
from pp_hostd.agent.doctor.facts import Facts, Line, Outcome
from pp_hostd.errors import UserError
from pp_hostd.service.output import say, say_json, table

EXIT_FAILED = 1
QUIET_SECONDS, EVERY_SECONDS = 1.0, 0.5
CLEAR_LINE = "\r\x1b[K"


def doctor(arguments: Namespace) -> int:
    if arguments.peers < 1:
        raise UserError(f"--peers {arguments.peers}: is no number of peers", "Allowed: a whole number from 1 on.")
    lines = list(diagnose(asyncio.run(_examined(Examination(arguments.config, arguments.peers)))))
    if arguments.json:
        say_json([line.fields() for line in lines])
    else:
        say(f"{table(['', 'CHECK', 'FOUND'], list(_rows(lines)))}\n\n{_summary(lines)}")
    return EXIT_FAILED if any(line.outcome is Outcome.FAILURE for line in lines) else 0


def _rows(lines: Sequence[Line]) -> Iterator[list[str]]:
    for line in lines:
        yield [line.outcome.value, line.check, line.found]
        if line.advice:
            yield ["", "", f"-> {line.advice}"]


def _summary(lines: Sequence[Line]) -> str:
    counts = Counter(line.outcome for line in lines)
    return ", ".join(f"{counts[each]} {each.value}{_plural(each, counts[each])}" for each in Outcome)


def _plural(outcome: Outcome, count: int) -> str:
    return "" if outcome is Outcome.OK or count == 1 else "s"


async def _examined(examination: Examination) -> Facts:
    progress = asyncio.ensure_future(_tell_progress(examination)) if sys.stderr and sys.stderr.isatty() else None
    try:
        return await examination.facts()
    finally:
        if progress is not None:
            progress.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await progress


async def _tell_progress(examination: Examination) -> None:
    """On a terminal, one line that goes away again."""
    await asyncio.sleep(QUIET_SECONDS)
    try:
        while True:
            sys.stderr.write(f"{CLEAR_LINE}waiting for: {', '.join(examination.probes.waiting)}"[:100])
            sys.stderr.flush()
            await asyncio.sleep(EVERY_SECONDS)
    finally:
        sys.stderr.write(CLEAR_LINE)
        sys.stderr.flush()
