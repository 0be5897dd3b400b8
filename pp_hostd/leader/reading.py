"""What a remedy or a requester reads for itself: its watches, and how the plan gets to see what they show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable

from pp_hostd.leader.caches import Watch
from pp_hostd.leader.steps.port import Kind


@dataclass
class Reading:
    """The watches of one kind of objects. `part` is what they show now: the plan finds it in Observed by its type."""

    kind: Kind
    watches: tuple[Watch, ...]
    part: Callable[[], object]
