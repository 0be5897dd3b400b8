"""`pp-hostd test-reset`: reset this host on a person's order, by the means that a judgement has (rule 8)."""

from __future__ import annotations

import asyncio
import os
import time
from argparse import Namespace

from pp_hostd import config
from pp_hostd.agent.act.reset import SYNC_SECONDS, WATCHDOG_GRACE_SECONDS, Reset, ordered_by
from pp_hostd.agent.act.watchdog import SoftwareOnly, Watchdog, acquire
from pp_hostd.agent.act.watchdog_device import boot_status, query
from pp_hostd.agent.commands.daemon_link import Down, order, report
from pp_hostd.agent.sense.boot import RECORD, boot_id, ending, last_boot
from pp_hostd.agent.state import RUN_DIRECTORY, VAR_DIRECTORY, instance_lock
from pp_hostd.errors import UserError
from pp_hostd.model.settings import Settings
from pp_hostd.service.output import complain, filled, say, who
from pp_hostd.timing import TWO_GAPS

EXIT_STILL_UP, EXIT_NOT_DONE = 1, 2
SOFTWARE_SECONDS = 5.0
"""More than a reset by sysrq or reboot(2) takes."""
NO_WATCHDOG = "there is no watchdog that could do it alone"


def reset_host(arguments: Namespace) -> int:
    settings = config.load(arguments.config).settings
    if not arguments.yes_reset_this_host:
        complain(_explained(settings))
        return EXIT_NOT_DONE
    if os.geteuid() != 0:
        raise UserError("only root may reset this host", "Try the same with sudo.")
    if settings.agent.mode == "dry-run":
        raise UserError("a dry run resets nothing", 'Set agent.mode = "enforce" and restart pp-hostd.')
    try:
        armed = report()["armed"]
    except Down:
        with instance_lock(RUN_DIRECTORY):  # else it hangs, and has the watchdog
            return _by_own_hand(settings, arguments.watchdog_only)
    say(order("test-watchdog" if arguments.watchdog_only else "test-reset", who=who()).sentence)
    return _await_end(armed["timeout_seconds"] if arguments.watchdog_only else 0.0)


def _explained(settings: Settings) -> str:
    seen = query(settings.watchdog.device)
    known = f" ({seen.identity})" if seen.identity else "" if seen.exists else " (which does not exist)"
    paragraphs = (
        "pp-hostd: nothing was done. With --yes-reset-this-host this resets the host at once, as a judgement would:",
        f"1. The watchdog {seen.device}{known} gets its shortest timeout, and is fed no more. The daemon does that if "
        "it runs; else this command opens the watchdog, which arms it.",
        "2. The name of who ordered it is recorded, for the next boot's journal and pp-hostd history.",
        "3. The disks are synced; half a second later the host is rebooted by sysrq, or by reboot(2).",
        "With --watchdog-only software does not reboot the host: the watchdog must, and shows whether it does.",
        "Everything that runs here is killed, as in a power cut, and the promise is not withdrawn. Empty the host "
        "first: kubectl drain NODE",
    )
    return "\n".join(filled(each, 2, 2 * bool(number)) for number, each in enumerate(paragraphs))


def _by_own_hand(settings: Settings, watchdog_only: bool) -> int:
    watchdog = _armed(settings)
    if watchdog_only and isinstance(watchdog, SoftwareOnly):
        raise UserError(NO_WATCHDOG, "; ".join(watchdog.troubles))
    record = ending(boot_id(), ordered_by(who(), watchdog_only)).render()
    reset = _ready(settings)
    say(f"the daemon does not run; armed: {watchdog.identity}, {watchdog.timeout_seconds:g} s; resetting this host")
    if watchdog_only:
        reset.leave_to_watchdog(record)
        _await_end(watchdog.timeout_seconds)
    else:
        reset.begin(watchdog, record, lambda: None)
        time.sleep(SYNC_SECONDS)
    complain(f"pp-hostd: {reset.finish()}")
    return EXIT_STILL_UP


def _armed(settings: Settings) -> Watchdog:
    wanted = settings.watchdog
    watchdog = asyncio.run(acquire(wanted.device, wanted.timeout_seconds, TWO_GAPS.seconds(settings)))
    for trouble in watchdog.troubles:
        complain(f"pp-hostd: {trouble}")
    return watchdog


def _ready(settings: Settings) -> Reset:
    """The means of the reset; what the last boot has left to be told is told, since the next record takes its place."""
    os.makedirs(VAR_DIRECTORY, 0o700, exist_ok=True)
    last = last_boot(VAR_DIRECTORY, boot_id(), boot_status(settings.watchdog.device))
    reset = Reset(os.path.join(VAR_DIRECTORY, RECORD))
    for sentence in filter(None, (last.sentence, last.trouble, *reset.troubles)):
        complain(f"pp-hostd: {sentence}")
    return reset


def _await_end(watchdog_seconds: float) -> int:
    """Nobody is there to see this return, unless the host was not reset."""
    patience_seconds = watchdog_seconds + WATCHDOG_GRACE_SECONDS if watchdog_seconds else SOFTWARE_SECONDS
    began_at = time.monotonic()
    while time.monotonic() < began_at + patience_seconds:
        time.sleep(1)
        if watchdog_seconds:
            waited_seconds = time.monotonic() - began_at
            say(f"not fed for {waited_seconds:.0f} s; the watchdog should reset this host by {watchdog_seconds:g} s")
    failed = "its watchdog has not reset it: do not trust it" if watchdog_seconds else "it was not reset"
    complain(f"pp-hostd: this host is still up after {patience_seconds:g} s: {failed}; see journalctl -u pp-hostd")
    return EXIT_STILL_UP
