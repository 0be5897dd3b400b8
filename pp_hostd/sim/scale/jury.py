"""The proposal of docs/scale.md: a host first asks a short list of peers, which follows from roster and name."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

PEERS_PER_DOUBLING = 8


def jurors(nodes: int) -> int:
    """How many peers the list of a host has: O(log n), and never more than there are."""
    return min(nodes - 1, PEERS_PER_DOUBLING * math.ceil(math.log2(nodes)))


def jury(version: int, host: str, nodes: Sequence[str]) -> tuple[str, ...]:
    """The host itself and its jurors: the same list wherever it is computed from the same version of the roster."""
    others = [name for name in nodes if name != host]
    drawn = sorted(others, key=lambda name: hashlib.sha256(f"{version} {host} {name}".encode()).digest())
    return (host, *drawn[: jurors(len(nodes))])
