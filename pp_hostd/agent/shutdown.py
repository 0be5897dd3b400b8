"""When the agent no longer waits in a shutdown of the system, and ends the kernel itself (rule 8). Pure and total."""

from __future__ import annotations

from pp_hostd.model.bond import Bond

WITHDRAW_SECONDS = 5.0
"""From the order on: who has not withdrawn by then ends the kernel, as it was ordered to end."""


def is_kernel_to_end(bond: Bond, ordered_at: float, now: float) -> bool:
    """Whether a promise still stands, or may stand, that nobody could withdraw in time: a shutdown always ends."""
    return (bool(bond.promises) or not bond.looked) and now >= ordered_at + WITHDRAW_SECONDS
