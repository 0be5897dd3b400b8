"""The outcome of a write that is conditional on what was read."""

from __future__ import annotations

import enum


class Written(enum.Enum):
    """The outcome of a conditional write."""

    DONE = "done"
    CONFLICT = "conflict"
    NOT_DONE = "not done"
    UNKNOWN = "unknown"
