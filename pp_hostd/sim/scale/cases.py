"""What happens to the cluster in the hour: who is cut off from the rest, whether the API works, from when to when."""

from __future__ import annotations

import enum
from typing import Callable

from pp_hostd.frozen import frozen

BEGIN = 60.0
"""By then everybody is well, and somebody leads."""
MINUTE = 60.0


class ControlPlane(enum.Enum):
    """Whether the API works while it lasts."""

    WORKS = "works"
    REFUSES = "refuses connections"


@frozen
class Case:
    """`apart` is how many of so many nodes have a way to each other alone, not to the API and the other nodes."""

    name: str
    about: str
    seconds: float
    apart: Callable[[int], int]
    control_plane: ControlPlane

    @property
    def end(self) -> float:
        return BEGIN + self.seconds


def _rack(nodes: int) -> int:
    return max(1, min(40, nodes * 8 // 100))


RACK = Case("rack", "one rack loses its uplink for 20 minutes", 20 * MINUTE, _rack, ControlPlane.WORKS)
OUTAGE = Case("outage", "the control plane is down for 10 minutes", 10 * MINUTE, lambda _: 0, ControlPlane.REFUSES)
SPLIT = Case("split", "half of the nodes are cut off for 10 minutes", 10 * MINUTE, lambda n: n // 2, ControlPlane.WORKS)
CASES = (RACK, OUTAGE, SPLIT)
