"""Work shared out among processes, its results in the order of the tasks; whoever stops listening ends them all."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import platform
import signal
from collections.abc import Iterable, Iterator
from multiprocessing.connection import Connection, wait
from typing import Any, Callable, TypeVar

from pp_hostd.errors import UserError

AHEAD = 8
"""So many tasks for each process may be done before the oldest one is: what waits to be told takes memory."""
LOOK_SECONDS = 1.0
_FORK = multiprocessing.get_context("fork")

Task = TypeVar("Task")
Result = TypeVar("Result")


def in_order(work: Callable[[Task], Result], tasks: Iterable[Task], jobs: int) -> Iterator[Result]:
    """What `work` makes of each task, in as many processes."""
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
        gc.freeze()  # what was there before will stay, and is not looked through again and again


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
