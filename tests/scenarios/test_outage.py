"""A control plane that fails resets nobody, for as long as more than half of all nodes are there to say so."""

from __future__ import annotations

import pytest

from tests.harness.bed.host import Host
from tests.harness.bed.relay import Mode
from tests.scenarios.stage import SELF_TIMEOUT_SECONDS, Stage, now, outlive, reset_within, says, shows

OUTAGE_SECONDS = 3 * SELF_TIMEOUT_SECONDS


def outage(stage: Stage, hosts: list[Host], dead: int) -> list[Host]:
    """A long one that swallows packets, in which so many hosts die; the rest, still up."""
    stage.bed.set_api(Mode.SWALLOW)
    outlive(hosts, OUTAGE_SECONDS / 2)
    for host in hosts[:dead]:
        host.kill()
    outlive(hosts[dead:], OUTAGE_SECONDS / 2)
    for host in hosts[dead:]:
        shows(host, "the control plane is out, not this host, which stays up")
    return hosts[dead:]


@pytest.mark.parametrize("n", [2, 3, 4, 5, 12])
def test_a_long_outage_resets_nobody_before_half_of_all_hosts_are_dead(stage: Stage, n: int) -> None:
    may_die = n - (n // 2 + 1)  # rule 3: 2(E + 1) > n, the host itself counted
    last, *others = outage(stage, stage.hosts(n), may_die)
    last.kill()
    since_at = now()
    for host in others:
        reset_within(host, since_at)
        says(host, "no peer confirms that it is healthy")


def test_hosts_go_on_as_before_when_a_long_outage_ends(real_stage: Stage) -> None:
    survivors = outage(real_stage, real_stage.hosts(3), dead=1)
    real_stage.bed.set_api(Mode.PASS)
    for host in survivors:
        shows(host, "healthy: its machine is not condemned")
    outlive(survivors, 0)
