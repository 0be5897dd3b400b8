"""A control plane that fails resets nobody, for as long as more than half of all nodes are there to say so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.harness.bed.host import Host
from tests.harness.bed.relay import Mode
from tests.harness.cluster import Cluster
from tests.harness.embedded import EmbeddedCluster
from tests.scenarios.stage import Stage, now, outlive, reset_within, says, shows

SELF_TIMEOUT_SECONDS, WATCHDOG_SECONDS = 30.0, 6
DEAD_SECONDS = SELF_TIMEOUT_SECONDS + 2 * WATCHDOG_SECONDS
PATIENT: dict[str, Any] = {
    "peers__round_seconds": 2.5,
    "agent__self_timeout_seconds": SELF_TIMEOUT_SECONDS,
    "watchdog__timeout_seconds": WATCHDOG_SECONDS,
}
"""Of a bare majority everybody must answer everybody in time, also where one machine runs them all and is busy."""
SIZES = (2, 3, 4, 5, 12)
OUTAGE_SECONDS = 1.5 * SELF_TIMEOUT_SECONDS


@pytest.fixture(scope="module")
def patient() -> Iterator[Stage]:
    with EmbeddedCluster.start() as cluster, Stage.on(cluster, max(SIZES), **PATIENT) as stage:
        yield stage


@pytest.fixture(scope="module")
def real_patient(real_cluster: Cluster) -> Iterator[Stage]:
    with Stage.on(real_cluster, 3, **PATIENT) as stage:
        yield stage


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


@pytest.mark.parametrize("n", SIZES)
def test_a_long_outage_resets_nobody_before_half_of_all_hosts_are_dead(patient: Stage, n: int) -> None:
    may_die = n - (n // 2 + 1)  # rule 3: 2(E + 1) > n, the host itself counted
    last, *others = outage(patient, patient.hosts(n), may_die)
    last.kill()
    since_at = now()
    for host in others:
        reset_within(host, since_at, DEAD_SECONDS)
        says(host, "no peer confirms that it is healthy")


def test_hosts_go_on_as_before_when_a_long_outage_ends(real_patient: Stage) -> None:
    survivors = outage(real_patient, real_patient.hosts(3), dead=1)
    real_patient.bed.set_api(Mode.PASS)
    for host in survivors:
        shows(host, "healthy: its machine is not condemned")
    outlive(survivors, 0)
