"""From facts to lines: what was found, whether that is well, and what to do. No I/O."""

from __future__ import annotations

from collections.abc import Iterator

from pp_hostd.agent.doctor.diagnose.access import access
from pp_hostd.agent.doctor.diagnose.configuration import configuration
from pp_hostd.agent.doctor.diagnose.daemon import daemon
from pp_hostd.agent.doctor.diagnose.expiry import expiries
from pp_hostd.agent.doctor.diagnose.kernel import kernel
from pp_hostd.agent.doctor.diagnose.links import links
from pp_hostd.agent.doctor.diagnose.peers import peers
from pp_hostd.agent.doctor.diagnose.rivals import rivals
from pp_hostd.agent.doctor.diagnose.roster import roster
from pp_hostd.agent.doctor.diagnose.systemd import systemd
from pp_hostd.agent.doctor.diagnose.watchdog import watchdog
from pp_hostd.agent.doctor.facts import Facts
from pp_hostd.agent.doctor.line import Line


def diagnose(facts: Facts) -> Iterator[Line]:
    """Every line, in the order in which a person would go about it."""
    yield from configuration(facts)
    yield from daemon(facts)
    yield from watchdog(facts)
    yield from rivals(facts)
    yield from kernel(facts)
    yield from systemd(facts)
    yield from access(facts)
    yield from expiries(facts)
    yield from roster(facts)
    yield from links(facts)
    yield from peers(facts)
