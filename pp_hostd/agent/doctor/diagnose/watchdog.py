"""The watchdog: what it is, how long it waits, how it stops, and who else has it. Nobody has opened it for this."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pp_hostd.agent.act.watchdog_device import HAS_MAGIC_CLOSE, SOFTDOG_IDENTITY, Seen, same_device
from pp_hostd.agent.doctor.facts import (
    DaemonFacts,
    Facts,
    Line,
    NotKnown,
    Properties,
    SystemdFacts,
    failure,
    not_checked,
    ok,
    warning,
)
from pp_hostd.model.promise import WatchdogKind
from pp_hostd.model.settings import Settings

DEVICE, IDENTITY, TIMEOUT, CLOSING, HOLDERS = (
    "watchdog-device",
    "watchdog-identity",
    "watchdog-timeout",
    "watchdog-stopping",
    "watchdog-holders",
)
DEFAULT_OF_SYSTEMD = "/dev/watchdog0"
ARM = "It is known once the daemon has armed it: pp-hostd status"
HARDWARE = "Use the board's own watchdog, if it has one: load its driver (iTCO_wdt, ipmi_watchdog, sp5100_tco, ...)."


def watchdog(facts: Facts) -> Iterator[Line]:
    seen, settings, armed = facts.watchdog, facts.settings, facts.report.get("armed")
    if isinstance(seen, NotKnown) or settings is None:
        why = seen.why if isinstance(seen, NotKnown) else "the configuration names no device"
        yield not_checked(DEVICE, why, "Correct the configuration first.")
        return
    yield _device(seen, facts.other_watchdogs)
    if seen.exists:
        yield _identity(seen, armed)
        yield _timeout(seen, settings, armed)
        yield _stopping(seen, armed)
        yield _holders(facts, seen)


def _device(seen: Seen, others: Any) -> Line:
    if seen.exists:
        return ok(DEVICE, f"{seen.device} is there{f' ({seen.state})' if seen.state else ''}")
    there = f" There are others: {', '.join(others)}; set watchdog.device." if others else ""
    fallback = "the agent would try softdog, and else reset by software alone, which the leader refuses by default"
    return failure(DEVICE, f"{seen.device} does not exist; {fallback}", f"{HARDWARE}{there}")


def _identity(seen: Seen, armed: Any) -> Line:
    kind = (armed or {}).get("kind")
    if seen.identity == SOFTDOG_IDENTITY or kind == WatchdogKind.SOFTDOG.value:
        return warning(IDENTITY, "softdog: the kernel resets the host, so a kernel that hangs hard does not", HARDWARE)
    if kind == WatchdogKind.SOFTWARE_ONLY.value:
        return failure(IDENTITY, "the daemon could use no watchdog: software alone resets this host", HARDWARE)
    if seen.identity:
        return ok(IDENTITY, f"{seen.identity}{f', driver {seen.driver}' if seen.driver else ''}")
    if kind:
        return ok(IDENTITY, f"armed by the daemon as {kind}; sysfs does not name its driver")
    return not_checked(IDENTITY, "sysfs does not show the device, and opening it would arm it", ARM)


def _timeout(seen: Seen, settings: Settings, armed: Any) -> Line:
    wanted = settings.watchdog.timeout_seconds
    least, most = seen.min_timeout_seconds, seen.max_timeout_seconds
    limits = f" (it takes {least or 1} to {most or 'any number of'} s)" if least or most else ""
    if wanted < (least or 0) or wanted > (most or wanted):
        return failure(
            TIMEOUT, f"{wanted} s is configured{limits}", "Set watchdog.timeout_seconds to what the device takes."
        )
    real = armed["timeout_seconds"] if armed else seen.timeout_seconds
    if real is None:
        return not_checked(TIMEOUT, f"{wanted} s is configured; the device shows its own only when armed", ARM)
    if armed and real != wanted:
        said = f"{wanted} s is configured, and the device keeps {real:g} s{limits}: the promise goes by that"
        return warning(TIMEOUT, said, "Set watchdog.timeout_seconds to it, so that everybody counts with the same.")
    now = "as read back from the armed device" if armed else f"it stands at {real} s and is set when it is armed"
    return ok(TIMEOUT, f"{wanted} s{limits}, {now}")


def _stopping(seen: Seen, armed: Any) -> Line:
    if seen.nowayout:
        said = "nowayout: once armed it can't be stopped before the next boot, nor can the agent that feeds it"
        return warning(CLOSING, said, "Load its driver with nowayout=0, unless that is wanted.")
    if seen.options is not None and not seen.options & HAS_MAGIC_CLOSE:
        said = "no magic close: it stops whenever its holder ends, so it would not outlast a crash of the agent"
        return failure(CLOSING, said, HARDWARE)
    if seen.options is not None:
        return ok(CLOSING, "magic close: it stops when told to, and outlasts a crash of its holder")
    if armed and armed["kind"] == WatchdogKind.HARDWARE.value:
        return ok(CLOSING, "the daemon has found a magic close, or it would not use it")
    return not_checked(CLOSING, "this kernel's sysfs does not show magic close", ARM)


def _holders(facts: Facts, seen: Seen) -> Line:
    """The daemon may hold it, and for it systemd, which keeps the descriptor over a restart."""
    manager = facts.systemd.manager if isinstance(facts.systemd, SystemdFacts) else {}
    if _systemd_feeds(manager, seen.device):
        seconds = manager["RuntimeWatchdogUSec"]
        return failure(
            HOLDERS,
            f"systemd feeds this device itself (RuntimeWatchdogSec={seconds}); only one may: the agent finds it busy",
            "Set RuntimeWatchdogSec=0 in /etc/systemd/system.conf.d/ and do systemctl daemon-reexec; or give systemd "
            "another device (WatchdogDevice=).",
        )
    pid = facts.daemon.pid if isinstance(facts.daemon, DaemonFacts) else 0
    ours = {f"(pid {pid})"} | ({"(pid 1)"} if facts.report.get("armed") else set())
    strangers = [each for each in seen.holders if f"(pid {each.rpartition('(pid ')[2]}" not in ours]
    if strangers:
        said = f"{', '.join(strangers)} holds {seen.device}, and only one process may feed it"
        return failure(HOLDERS, said, "Stop and disable that program, or give it another device.")
    if seen.holders:
        return ok(HOLDERS, f"only the agent has it: {', '.join(seen.holders)}")
    return ok(HOLDERS, "nobody has it open, as far as this user may see")


def _systemd_feeds(manager: Properties, device: str) -> bool:
    feeds = manager.get("RuntimeWatchdogUSec", "0") not in ("0", "")  # "infinity" is the device's own timeout
    return feeds and same_device(manager.get("WatchdogDevice") or DEFAULT_OF_SYSTEMD, device)
