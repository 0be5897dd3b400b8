"""The daemon: whether it runs, what it complains about, and whether its memory is locked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pp_hostd.agent.doctor.facts import DaemonFacts, Facts, NotKnown, SystemdFacts
from pp_hostd.agent.doctor.line import Line, not_checked, ok, warning

START = "When the rest is well: systemctl enable --now pp-hostd"
LIMIT = "Let the unit have LimitMEMLOCK=infinity: a page that must come from a hung disk hangs the agent."


def daemon(facts: Facts) -> Iterator[Line]:
    found = facts.daemon
    if isinstance(found, NotKnown):
        yield not_checked("daemon", found.why, found.advice or "Run this as root.")
        return
    if not found.pid:
        yield warning("daemon", "it does not run, so this host is not protected", START)
    elif isinstance(found.report, NotKnown):
        yield warning("daemon", found.report.why, found.report.advice or "See: systemctl status pp-hostd")
    else:
        yield ok("daemon", f"runs (pid {found.pid}): {found.report['sentence']}")
        for trouble in found.report["troubles"]:
            yield warning("daemon", str(trouble), "See: journalctl -u pp-hostd; pp-hostd explain")
    yield _locked(found, facts.systemd)


def _locked(found: DaemonFacts, systemd: Any) -> Line:
    if found.pid and found.locked_kib is not None:
        limit = f"limit {found.locked_limit or 'unknown'}"
        if found.locked_kib:
            return ok("memory-lock", f"{found.locked_kib} KiB are locked ({limit})")
        return warning("memory-lock", f"the daemon's memory is not locked ({limit})", LIMIT)
    unit = systemd.units.get("pp-hostd.service", {}) if isinstance(systemd, SystemdFacts) else {}
    limit = unit.get("LimitMEMLOCK", "")
    if limit in ("infinity", "18446744073709551615"):
        return ok("memory-lock", "the unit may lock all of the daemon's memory (LimitMEMLOCK=infinity)")
    if limit:
        return warning("memory-lock", f"the unit may lock {limit} bytes of memory only", LIMIT)
    return not_checked("memory-lock", "the daemon does not run, and systemd shows nothing about its unit", START)
