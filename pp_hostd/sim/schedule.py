"""What goes wrong on a bad day: troubles in the order of time, and the cluster that they come to."""

from __future__ import annotations

from pp_hostd.frozen import frozen
from pp_hostd.sim.cluster import PLAIN, Cluster

CALM_SECONDS = 12.0
"""Before the first trouble: everybody is well by then."""
TROUBLED_SECONDS = 85.0
HEALED_AT = 95.0
"""From here on nothing is wrong any more, but what was broken must be mended by those who live there."""
END_AT = 180.0
MESSAGES = 24
"""Of so many that come next one is spoiled, if it is a single message: its number is this part of them."""


@frozen
class Trouble:
    """What happens to whom; `seconds` is how long it lasts, `part` how bad it is (from 0 to 1)."""

    at: float
    what: str
    who: tuple[str, ...] = ()
    seconds: float = 0.0
    part: float = 0.0

    def __str__(self) -> str:
        details = [", ".join(self.who), f"{self.seconds:.1f} s" if self.seconds else "", f"{self.part:.2f}"]
        return f"{self.at:7.2f} {self.what} ({'; '.join(filter(None, details))})"


@frozen
class Schedule:
    """`seed` also decides what chance does on the way: delays, losses, dice. The `spared` must not reset themselves."""

    seed: int
    nodes: int
    troubles: tuple[Trouble, ...]
    healed_at: float = HEALED_AT
    end_at: float = END_AT
    cluster: Cluster = PLAIN
    spared: tuple[str, ...] = ()
