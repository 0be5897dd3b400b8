"""Whether a host can be reached: how often it is tried, and when its silence is confirmed. Pure.

An attempt opens a connection to the host's peer port and sends nothing. A kernel that takes or refuses the connection
is reached. So an agent that restarts is never silent; only a host is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

ATTEMPT_SECONDS = 1.0
"""A connection that nobody has taken or refused by then was met with silence."""
ATTEMPTS = 3
"""So often is a host tried before a host or leader says that it is silent: one lost packet is no silence."""
ATTEMPT_GAP_SECONDS = 0.3
"""The time from the start of one attempt to the start of the next."""
SILENT_AFTER_SECONDS = (ATTEMPTS - 1) * ATTEMPT_GAP_SECONDS + ATTEMPT_SECONDS
ASKED = 3
"""So many other hosts does the leader ask whether they reach a suspect."""

Finding = Optional[bool]
"""True: reached. False: silent. None: nobody knows, since the attempt or its report failed."""


def confirmed(own: Finding, others: Sequence[Finding]) -> bool:
    """Whether a suspect is silent beyond doubt: to the leader, and to each of the others that has answered.

    `others` has one finding for each host that was asked. If hosts were asked, at least one must have answered: else
    it may be the leader that is cut off. In a cluster of up to three nodes nobody is left to ask, beside the leader's
    host and the one that suspects, and `others` is empty.
    """
    heard = [finding for finding in others if finding is not None]
    return own is False and not any(heard) and (bool(heard) or not others)
