"""The messages of each second and their bytes: HTTP heads and bodies as the daemons write them."""

from __future__ import annotations

import enum

from pp_hostd.frozen import frozen
from pp_hostd.model.settings import Settings

PEER_QUESTION = 374
PEER_ANSWER = 366
"""With names of 24 characters."""
UNANSWERED = 120
"""A question to a peer that nothing reaches: two packets that ask for a connection."""

MACHINE, NODE = 3000, 8000
"""A Machine, and a Node with its list of images, as the API's JSON."""
API_HEADS = 550
"""Both heads of an exchange with the API, by client certificate."""
LOOK = API_HEADS + NODE
STORE = API_HEADS + NODE + 500
ORDERS = API_HEADS + 200
WATCH = API_HEADS


def machine(settings: Settings) -> int:
    """Returns the bytes of a host's machine: in a read of it, and in each event of the watch on the condemned."""
    return NODE if settings.api.machines == "node" else MACHINE


def read_bytes(settings: Settings) -> int:
    return API_HEADS + machine(settings)


HOUR_SECONDS = 3600
SETTLED = 40
"""Before that second the cluster begins to live, which is no part of the hour."""
QUIET_SECONDS = 60
"""The longest period of what a quiet host does: it looks at its Node."""


class Kind(enum.Enum):
    """The things that are counted."""

    SERVED = "requests that the API carries out"
    UNSERVED = "requests that reach its servers while they carry out none"
    PEER = "questions and answers between hosts"
    BYTES = "bytes of all of these"


@frozen
class Rate:
    """Per second: the busiest second, and the mean of the hour."""

    peak: float
    mean: float


class Tally:
    """The counts of each second. A host stands for many: their phases lie in the `spread_seconds` after its own."""

    def __init__(self) -> None:
        self._seconds = {kind: [0.0] * HOUR_SECONDS for kind in Kind}

    def add(self, kind: Kind, at: float, spread_seconds: float, count: float) -> None:
        """So many, at an even pace from then on."""
        seconds, end = self._seconds[kind], at + spread_seconds
        while at < min(end, HOUR_SECONDS):
            second = int(at)
            until = min(end, second + 1.0)
            seconds[second] += count * (until - at) / spread_seconds
            at = until

    def go_on_from(self, second: int) -> None:
        """From then on every second is like those before it, in which nothing happened but what always does."""
        for seconds in self._seconds.values():
            mean = sum(seconds[second - QUIET_SECONDS : second]) / QUIET_SECONDS
            seconds[second:] = [mean] * (HOUR_SECONDS - second)

    def rate(self, kind: Kind) -> Rate:
        seconds = self._seconds[kind][SETTLED:]
        return Rate(max(seconds), sum(seconds) / len(seconds))
