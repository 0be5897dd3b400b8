"""When the suspects are written to the host's own Node: if they change, and not too often. Pure."""

from __future__ import annotations

import math

from pp_hostd.model.suspicion import Suspicion

GAP_SECONDS = 2.0
"""From one write to the next, at least. After failures in a row the gap doubles, up to LONGEST_GAP_SECONDS."""
LONGEST_GAP_SECONDS = 60.0
AGAIN_SECONDS = 60.0
"""So often a suspicion that lasts is looked at on the Node, which may be another one by now."""


class Posting:
    """The text on the Node, as far as it is known. A new run does not know what an earlier run left there."""

    def __init__(self) -> None:
        self._posted: Suspicion | None = None
        self._is_known = False
        self._failures = 0
        self._not_before_at = -math.inf
        self._again_at = math.inf

    def is_due(self, wanted: Suspicion | None, now: float) -> bool:
        """Whether the Node is to be brought up to this now; None: no suspicion is to stand there."""
        lasts = wanted is not None and now >= self._again_at
        return now >= self._not_before_at and (not self._is_known or wanted != self._posted or lasts)

    def ended(self, wanted: Suspicion | None, failed: bool, now: float) -> None:
        """The attempt has ended. If it failed, nobody knows what stands on the Node."""
        self._posted, self._is_known = wanted, not failed
        self._failures = min(self._failures + 1, 16) if failed else 0
        self._not_before_at = now + min(GAP_SECONDS * 2**self._failures, LONGEST_GAP_SECONDS)
        self._again_at = now + AGAIN_SECONDS
