"""The things that the daemons' own coroutines await in the simulated world, and how those coroutines are run.

`run` begins each thing that is awaited, and resumes the coroutine with the reply.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from functools import partial
from typing import Any, Callable, Protocol

from pp_hostd.frozen import frozen, replace
from pp_hostd.kube.outcome import ApiError, Outcome
from pp_hostd.leader.steps.api import Json
from pp_hostd.leader.steps.port import Exchange
from pp_hostd.model.answer import Answer
from pp_hostd.model.step import Written
from pp_hostd.peers.message import Question
from pp_hostd.sim.api import Client, Failed, Reply, Serve

CALL_SECONDS = 5.0
Resume = Callable[[Reply], None]
Answered = Callable[[Answer], None]
AskPeer = Callable[[str, Question, Answered], None]
"""Carries a question to the agent of the host of that name, and the answer back, if there is one."""


class Awaited(Protocol):
    """Something that takes simulated time."""

    def begin(self, resume: Resume) -> None: ...


Work = Coroutine[Awaited, Reply, Any]


@frozen
class Call:
    """One exchange with the API; ApiError is raised if it fails."""

    client: Client
    serve: Serve
    seconds: float = CALL_SECONDS

    def begin(self, resume: Resume) -> None:
        self.client.call(self.serve, resume, self.seconds)

    def __await__(self) -> Generator[Awaited, Reply, Any]:
        reply = yield self
        if isinstance(reply, Failed):
            raise _error(reply)
        return reply


@frozen
class Sleep:
    """Some time that passes."""

    client: Client
    seconds: float

    def begin(self, resume: Resume) -> None:
        self.client.process.later(self.seconds, partial(resume, None))

    def __await__(self) -> Generator[Awaited, Reply, None]:
        yield self


@frozen
class Started:
    """Something that says by itself when it is over, and with what."""

    start: Callable[[Resume], object]

    def begin(self, resume: Resume) -> None:
        self.start(resume)

    def __await__(self) -> Generator[Awaited, Reply, Any]:
        return (yield self)


@frozen
class Within:
    """An exchange, each call of which ends by the deadline."""

    client: Client
    seconds: float
    exchange: Exchange

    def __await__(self) -> Generator[Awaited, Reply, Json]:
        clock, reply = self.client.process.clock, None
        until_at, exchange = clock() + self.seconds, self.exchange().__await__()
        while True:
            try:
                awaited = exchange.send(reply)
            except StopIteration as done:
                found: Json = done.value
                return found
            assert isinstance(awaited, Call), awaited
            reply = yield replace(awaited, seconds=min(awaited.seconds, until_at - clock()))


def run(work: Work, ended: Callable[[Any], None], is_wanted: Callable[[], bool], reply: Reply = None) -> None:
    """Run the work on, until it ends or nobody wants it any more."""
    if not is_wanted():
        work.close()
        return
    try:
        awaited = work.send(reply)
    except StopIteration as done:
        ended(done.value)
        return
    awaited.begin(lambda answer: run(work, ended, is_wanted, answer))


def _error(failed: Failed) -> ApiError:
    if failed.missing:
        return ApiError(Outcome.NOT_FOUND, failed.sentence, reason="NotFound")
    if failed.unserved:
        return ApiError(Outcome.NOT_FOUND, failed.sentence)
    if failed.written is Written.CONFLICT:
        return ApiError(Outcome.CONFLICT, failed.sentence)
    return ApiError(Outcome.TIMED_OUT, failed.sentence, may_be_done=failed.written is Written.UNKNOWN)
