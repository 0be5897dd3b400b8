"""The outcome of a judgement. Status, journal, notifications and metrics all render this one value."""

from __future__ import annotations

import enum
from typing import NamedTuple

from pp_hostd.model.memory import Decision, Memory, Proof


class State(enum.Enum):
    """How the host stands; the value is the word people see."""

    WAITING = "waiting"
    HEALTHY = "healthy"
    SUSPECT = "suspect"
    OUTAGE = "control-plane outage"
    CONDEMNED = "condemned"
    RESETTING = "resetting"


class Verdict(NamedTuple):
    """The state, the proof that it rests on, one sentence for people, and what to do now.

    Judged `at`; the watchdog is fed now if `feed`, and at the latest until `feed_until_at` while no newer proof comes.
    `read` and `ask` are to be begun now, `reset` is to be carried out now. The next judgement is due at `wake_at`.
    """

    at: float
    state: State
    sentence: str
    proof: Proof | None
    feed_until_at: float | None
    feed: bool
    read: bool
    ask: tuple[str, ...]
    reset: Decision | None
    wake_at: float

    @property
    def proof_age_seconds(self) -> float | None:
        return None if self.proof is None else self.at - self.proof.at


class Judgement(NamedTuple):
    """A verdict, and what to remember for the next one."""

    verdict: Verdict
    memory: Memory
