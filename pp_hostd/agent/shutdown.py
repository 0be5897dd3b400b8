"""How a shutdown of the system ends: by the agent, or by systemd and, if that hangs, the watchdog (rule 8). Pure."""

from __future__ import annotations

from pp_hostd.model.boot_commitments import BootCommitments
from pp_hostd.model.evidence import HostContext
from pp_hostd.model.promise import Armed, WatchdogKind

WITHDRAW_SECONDS = 5.0
"""From the order on: who has not withdrawn by then ends the kernel, as it was ordered to end."""

POWER_OFF_SECONDS = 300
"""The watchdog's timeout for the rest of a power-off, once the agent has fed it for the last time."""


def kept_promise(host_context: HostContext, commitments: BootCommitments) -> Armed | None:
    """The promise that a host keeps while it powers off; None if it has none, or no watchdog that keeps it alone."""
    stored = commitments.stored
    if not host_context.powering_off or not isinstance(stored, Armed) or stored.watchdog is WatchdogKind.SOFTWARE_ONLY:
        return None
    return stored


def is_last_feeding(host_context: HostContext, commitments: BootCommitments) -> bool:
    """Whether all that is left for the agent of a host that powers off is to lengthen the watchdog's timeout, which
    feeds it, and to end: the longer one is promised, and stored before it is used (rule 5)."""
    promise = kept_promise(host_context, commitments)
    return promise is not None and not commitments.pending and promise.watchdog_timeout_seconds >= POWER_OFF_SECONDS


def is_kernel_to_end(commitments: BootCommitments, ordered_at: float, now: float) -> bool:
    """Whether a promise still stands, or may stand, that nobody could withdraw in time: a shutdown always ends."""
    return (bool(commitments.promises) or not commitments.looked) and now >= ordered_at + WITHDRAW_SECONDS
