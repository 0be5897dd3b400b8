"""Pauses between attempts that fail, and when an exchange with the API is not worth a connection. No clock, no I/O."""

from __future__ import annotations

import os

from pp_hostd.frozen import frozen
from pp_hostd.kube.outcome import Outcome

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.25, 8.0


class Backoff:
    """Counts failures in a row. Each pause is shortened at random by up to a half, so that hosts get out of step."""

    def __init__(self) -> None:
        self.failures = 0

    def after_failure(self) -> float:
        """Counts one more failure, and returns how many seconds to pause now."""
        pause_seconds = min(FIRST_PAUSE_SECONDS * 2.0 ** min(self.failures, 16), LONGEST_PAUSE_SECONDS)
        self.failures += 1
        return pause_seconds * (0.5 + os.urandom(1)[0] / 510)

    def reset(self) -> None:
        """Something succeeded: the next pause is short again."""
        self.failures = 0


FAILURES_BEFORE_REST = 3


@frozen
class Unanswered:
    """How an exchange ended that brought no answer from any server, or only that the server itself is ill (5xx)."""

    outcome: Outcome
    sentence: str


class Rest:
    """While no server answers, exchanges that may rest fail as the last one did, except for one after each pause.

    A host reads for its peers: in an outage the questions of n hosts would be n connections of each.
    """

    def __init__(self) -> None:
        self._backoff = Backoff()
        self._last: Unanswered | None = None
        self._until = 0.0

    def answered(self) -> None:
        """A server answered, and was not ill."""
        self._backoff.reset()
        self._last = None

    def unanswered(self, failure: Unanswered, now: float) -> None:
        """An exchange ended so."""
        self._last = failure
        self._until = now + self._backoff.after_failure()

    def refused(self, now: float) -> Unanswered | None:
        """Returns the failure that stands for another attempt; None if one may be made now."""
        if self._last is None or self._backoff.failures < FAILURES_BEFORE_REST:
            return None
        if now < self._until:
            return self._last
        self._until = now + LONGEST_PAUSE_SECONDS  # of many that wait for the end of a pause, one goes on
        return None
