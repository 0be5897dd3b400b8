"""The true origin of a host's proofs, and when it began: the simulation checks the agent's own word against it."""

from __future__ import annotations

import math

from pp_hostd.model.memory import Memory, Source
from pp_hostd.sim.time import Clock

A_MOMENT = 0.02


class Truth:
    """Begins with what a restarted agent takes up."""

    def __init__(self, clock: Clock, memory: Memory) -> None:
        self._clock = clock
        self._proven_at = self._asking_since = -math.inf if memory.proof is None else memory.proof.at
        self._asks = memory.inquiry is not None
        if memory.inquiry is not None:
            self._asking_since = memory.inquiry.started_at

    def proven(self, began_at: float) -> None:
        """An exchange that began then has shown that its machine is not condemned."""
        self._proven_at = max(self._proven_at, began_at)

    def asks(self) -> None:
        """It asks peers: now an inquiry begins, or goes on."""
        if not self._asks:
            self._asks, self._asking_since = True, self._clock()

    def judged(self, memory: Memory) -> None:
        self._asks = self._asks and memory.inquiry is not None

    def unproven_seconds(self, memory: Memory) -> float:
        """Since what gave its last proof began."""
        return self._clock() - self._began_at(memory)

    def too_late_seconds(self, memory: Memory) -> float:
        """By how much its proof is dated later than what gave it began (rule 1)."""
        late_seconds = -math.inf if memory.proof is None else memory.proof.at - self._began_at(memory)
        return late_seconds if late_seconds > A_MOMENT else 0.0

    def _began_at(self, memory: Memory) -> float:
        outage = memory.proof is not None and memory.proof.source is Source.OUTAGE
        return self._asking_since if outage else self._proven_at
