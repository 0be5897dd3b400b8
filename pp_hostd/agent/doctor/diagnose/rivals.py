"""Other programs on this host that reset hosts, or feed watchdogs."""

from __future__ import annotations

from collections.abc import Iterator

from pp_hostd.agent.doctor.facts import Facts, NotKnown
from pp_hostd.agent.doctor.line import Line, not_checked, ok, warning

CHECK = "other-agents"


def rivals(facts: Facts) -> Iterator[Line]:
    if isinstance(facts.rivals, NotKnown):
        yield not_checked(CHECK, facts.rivals.why, "Look for sbd, watchdog, watchdogd, wdmd: systemctl list-units")
        return
    for rival in facts.rivals:
        yield warning(
            CHECK,
            f"{rival.program} runs (pid {rival.pid}): it resets hosts, or feeds watchdogs, by rules of its own",
            "Two that fence one host get in each other's way: disable it, unless it has another device and you know "
            "why it is there.",
        )
    if not facts.rivals:
        yield ok(CHECK, "no other program is seen that fences this host or feeds a watchdog")
