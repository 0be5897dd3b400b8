"""The one sentence that every misfortune is held to: the host is either protected and up, or reset in the bound."""

from __future__ import annotations

import enum
import time

from tests.machines.bed import BOUND_SECONDS, Bed
from tests.machines.guest import Guest


class Fate(enum.Enum):
    """The fate of a guest, by QEMU's events."""

    RESET = "reset in the bound"
    PROTECTED = "up, and reset in the bound once it was condemned"


def protected_or_reset(bed: Bed, guest: Guest, since: float) -> Fate:
    """Judged by QEMU alone: if it outlives the bound, then a condemnation must still end it in the bound."""
    try:
        guest.await_reset(since, since + BOUND_SECONDS - time.time())
        return Fate.RESET
    except TimeoutError:
        condemned_at = time.time()
        bed.condemn(guest)
        guest.await_reset(condemned_at, BOUND_SECONDS)
        return Fate.PROTECTED
