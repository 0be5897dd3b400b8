"""Every way an exchange with the API can fail, as one small set of typed outcomes."""

from __future__ import annotations

import enum

from pp_hostd.model.step import Written


class Outcome(enum.Enum):
    """The outcome of an exchange that did not succeed. The value is the word people see."""

    UNREACHABLE = "unreachable"
    TIMED_OUT = "timed out"
    TLS_REFUSED = "refused by TLS"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not found"
    CONFLICT = "conflict"
    GONE = "gone"
    THROTTLED = "throttled"
    INVALID = "invalid request"
    SERVER_ERROR = "server error"
    GARBAGE = "garbage"


class Garbage(Exception):
    """A reply that makes no sense; the message says in which way."""


class ApiError(Exception):
    """One failed exchange: its outcome, and a sentence that says what happened, to what, and where.

    `may_be_done` is True when a write left this host and no answer says how it ended: the server may have carried
    it out. A caller that keeps a promise in the cluster must then satisfy both cases (design, section 4, rule 5).
    """

    def __init__(
        self,
        outcome: Outcome,
        sentence: str,
        *,
        status: int | None = None,
        reason: str = "",
        retry_after_seconds: float | None = None,
        may_be_done: bool = False,
    ) -> None:
        super().__init__(sentence)
        self.outcome = outcome
        self.sentence = sentence
        self.status = status
        self.reason = reason
        self.retry_after_seconds = retry_after_seconds
        self.may_be_done = may_be_done

    def __repr__(self) -> str:
        return f"ApiError({self.outcome.name}, {self.sentence!r})"


def is_missing(error: ApiError) -> bool:
    """Whether the API itself says that there is no such object."""
    return error.outcome is Outcome.NOT_FOUND and error.reason == "NotFound"


def is_unserved(error: ApiError) -> bool:
    """Whether nothing is served under that path: it says nothing about any object."""
    return error.outcome is Outcome.NOT_FOUND and not is_missing(error)


def written_by(error: ApiError) -> Written:
    """The outcome of a conditional write that ended so."""
    if error.may_be_done:
        return Written.UNKNOWN
    # The API refuses the uid of another incarnation so in a merge patch, where others call it a conflict.
    foreign = error.outcome is Outcome.INVALID and "metadata.uid" in error.sentence
    if error.outcome is Outcome.CONFLICT or foreign or is_missing(error):
        return Written.CONFLICT
    return Written.NOT_DONE
