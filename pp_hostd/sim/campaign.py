"""Many schedules, of one seed after the other, run by as many processes as are wanted, added up and resumed."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import multiprocessing
import os
import platform
import re
import signal
from collections.abc import Iterable, Iterator
from dataclasses import asdict, fields
from functools import partial, reduce
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Callable, TypeVar

import pp_hostd
from pp_hostd.errors import UserError
from pp_hostd.files import FileError, read_whole, write_whole
from pp_hostd.frozen import frozen
from pp_hostd.model.record import Fields, Form, Refused, Unreadable, document, read, render
from pp_hostd.model.settings import Settings, every_setting, value_of
from pp_hostd.sim.days import Flows, random_schedule
from pp_hostd.sim.run import Outcome, run
from pp_hostd.sim.schedule import Schedule

AHEAD = 8
"""So many tasks for each process may be done before the oldest one is: what waits to be told takes memory."""
LOOK_SECONDS = 1.0
_FORK = multiprocessing.get_context("fork")

Task = TypeVar("Task")
Result = TypeVar("Result")


def in_order(work: Callable[[Task], Result], tasks: Iterable[Task], jobs: int) -> Iterator[Result]:
    """Yields the result of `work` for each task, in the order of the tasks; `jobs` processes do the work."""
    workers = _started(work, jobs)
    try:
        yield from _results(list(workers), iter(tasks))
    except (EOFError, ConnectionError):
        advice = "If the kernel ran out of memory, which its log tells, fewer --jobs help."
        raise UserError("a process of the simulation ended before its work was done", advice) from None
    finally:
        for connection, process in workers.items():
            process.kill()  # it has nothing to put in order
            process.join()
            process.close()
            connection.close()


def _started(work: Callable[[Task], Result], jobs: int) -> dict[Connection, Any]:
    # Ctrl-C reaches every process of a terminal, and is the parent's to answer: in the others it stays blocked.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return dict(_start(work) for _ in range(jobs))
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start(work: Callable[[Task], Result]) -> tuple[Connection, Any]:
    here, there = _FORK.Pipe()
    process = _FORK.Process(target=_serve, args=(work, here, there, os.getpid()), daemon=True)
    process.start()
    there.close()
    return here, process


def _serve(work: Callable[[Task], Result], parents: Connection, own: Connection, parent: int) -> None:
    def look(*_: object) -> None:
        if os.getppid() != parent:
            os._exit(1)

    parents.close()
    _hurry()
    signal.signal(signal.SIGALRM, look)  # for a parent that was killed in the middle of a long task
    signal.setitimer(signal.ITIMER_REAL, LOOK_SECONDS, LOOK_SECONDS)
    with contextlib.suppress(EOFError, ConnectionError):  # nobody is there any more
        while True:
            own.send(work(own.recv()))


def _hurry() -> None:
    """As Python can, in a process that does the same again and again."""
    if platform.python_implementation() == "PyPy":
        import pypyjit  # type: ignore[import-not-found]

        # No path is hot, but very many are warm: they are compiled earlier than by default, and in smaller pieces.
        pypyjit.set_param("threshold=200,function_threshold=300,trace_eagerness=20,trace_limit=2500")
    else:
        gc.freeze()  # objects that were there before will stay, and are not looked through again and again


def _results(idle: list[Connection], tasks: Iterator[Any]) -> Iterator[Any]:
    most_ahead = AHEAD * len(idle)
    busy: dict[Connection, int] = {}
    finished: dict[int, Any] = {}
    given = told = 0
    while True:
        while idle and given < told + most_ahead:
            try:
                task = next(tasks)
            except StopIteration:
                break
            idle[-1].send(task)
            busy[idle.pop()] = given
            given += 1
        if not busy:
            return
        for connection in wait(list(busy)):
            assert isinstance(connection, Connection)
            finished[busy.pop(connection)] = connection.recv()
            idle.append(connection)
        while told in finished:
            yield finished.pop(told)
            told += 1


LEAST_NODES = 2
BATCH = 5
"""So many schedules go to a process at once."""
MOST_FOUND = 10
"""So many violations are kept by their seeds, from which they can be played again; the others are counted."""


@frozen
class Arena:
    """Where schedules are played: with which settings, with how many nodes at most, and with which flows."""

    settings: Settings
    most_nodes: int
    flows: Flows = Flows.SOMETIMES

    def schedule(self, seed: int, theme: str = "") -> Schedule:
        return random_schedule(seed, self.most_nodes, LEAST_NODES, theme, flows=self.flows)

    def play(self, seed: int) -> Outcome:
        return run(self.schedule(seed), self.settings)


@frozen
class Found:
    """A schedule that broke an invariant."""

    seed: int
    sentence: str


@frozen
class Sums:
    """Of every schedule so far, from the first seed to the one before the next."""

    first_seed: int
    next_seed: int
    events: int = 0
    resets: int = 0
    deletions: int = 0
    violations: int = 0
    longest_isolation_seconds: float = 0.0
    found: tuple[Found, ...] = ()

    @property
    def schedules(self) -> int:
        return self.next_seed - self.first_seed

    @classmethod
    def of(cls, outcome: Outcome) -> Sums:
        """Of this one alone."""
        seed = outcome.schedule.seed
        found = (Found(seed, outcome.violation),) if outcome.violation else ()
        longest = outcome.longest_isolation_seconds
        return cls(seed, seed + 1, outcome.events, outcome.resets, outcome.deletions, len(found), longest, found)

    def followed_by(self, others: Sums) -> Sums:
        """With those of the seeds that come next."""
        return Sums(
            self.first_seed,
            others.next_seed,
            self.events + others.events,
            self.resets + others.resets,
            self.deletions + others.deletions,
            self.violations + others.violations,
            max(self.longest_isolation_seconds, others.longest_isolation_seconds),
            (*self.found, *others.found)[:MOST_FOUND],
        )


def campaign(arena: Arena, begin: Sums, schedules: int, jobs: int) -> Iterator[Sums]:
    """The sums up to here, again and again, until so many schedules have been added to those of the beginning."""
    end = begin.next_seed + schedules
    batches = (range(first, min(first + BATCH, end)) for first in range(begin.next_seed, end, BATCH))
    sums = begin
    for batch in in_order(partial(_played, arena), batches, jobs):
        sums = sums.followed_by(batch)
        yield sums


def _played(arena: Arena, seeds: range) -> Sums:
    return reduce(Sums.followed_by, (Sums.of(arena.play(seed)) for seed in seeds))


LIMIT_BYTES = 64 * 1024
SENTENCE = Form("a sentence", re.compile(".{1,4000}"))


def resumed(path: str, arena: Arena) -> Sums | None:
    """The sums so far, if there is such a file; it must be about the same settings and nodes."""
    if not os.path.lexists(path):
        return None
    found = read(path, _parsed, read_whole(path, LIMIT_BYTES))
    if isinstance(found, Unreadable):
        raise FileError(f"{path}: is no file of a campaign: {found.reason}", "Name another file, or remove this one.")
    of, sums = found
    differing = [_difference(key, of.get(key), value) for key, value in _of(arena).items() if of.get(key) != value]
    if differing:
        message = f"{path}: its sums are of other runs: {'; '.join(differing)}"
        raise UserError(message, "Run it as it was run before, or name another file.")
    return sums


def save(path: str, arena: Arena, sums: Sums) -> None:
    write_whole(path, render({"of": _of(arena), "sums": asdict(sums)}).encode())


def _of(arena: Arena) -> dict[str, Any]:
    """All that a campaign's sums depend on, but for the seeds; as JSON has it."""
    settings = {setting.key: value_of(arena.settings, setting.key) for setting in every_setting()}
    nodes = {"least nodes": LEAST_NODES, "most nodes": arena.most_nodes, "flows": arena.flows.name}
    plain = {key: list(value) if isinstance(value, tuple) else value for key, value in settings.items()}
    return {"version": pp_hostd.__version__, "code": _code(), **nodes, **plain}


def _code() -> str:
    """Of all that is in the package: a version in the making changes from day to day."""
    digest = hashlib.sha256()
    for path in sorted(Path(pp_hostd.__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _difference(key: str, there: Any, here: Any) -> str:
    return f"{key} is {there!a} there and {here!a} here"


def _parsed(data: bytes) -> tuple[dict[str, Any], Sums]:
    whole = document(data, LIMIT_BYTES)
    sums = whole.section("sums")
    numbers = {each.name: _number(sums, each.name) for each in fields(Sums) if each.type == "int"}
    longest = sums.seconds("longest_isolation_seconds", 0, 1e9)
    found = tuple(_found(Fields(each, "found")) for each in sums.elements("found"))
    return whole.section("of").without(), Sums(**numbers, longest_isolation_seconds=longest, found=found)


def _found(each: Fields) -> Found:
    return Found(_number(each, "seed"), each.text("sentence", SENTENCE))


def _number(sums: Fields, key: str) -> int:
    value = sums.anything(key)
    if type(value) is not int or value < 0:
        raise Refused(f"{key} is not a whole number from 0 on")
    return value
