"""A health check that requests again while a freed host is off: one remediation, and the host that comes back lives."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pp_hostd.model.condemnation import NotRequested
from pp_hostd.model.observed import NodeSeen, parse_node_seen
from tests.harness.bed.host import Host
from tests.harness.cluster import Cluster
from tests.harness.embedded import EmbeddedCluster
from tests.harness.eventually import eventually
from tests.scenarios.leading import LeaderStage, now

LONG_SECONDS = 120.0


class HealthCheck:
    """It requests a host's remediation whenever its Node has been missing or not Ready for so long."""

    def __init__(self, stage: LeaderStage, host: Host, after_seconds: float) -> None:
        self._stage, self._host, self._after_seconds = stage, host, after_seconds
        self._ill_since = float("inf")
        self.requests = 0

    def look(self) -> NodeSeen | None:
        """Once; the Node that it has found."""
        found = self._stage.node(self._host)
        seen = None if found is None else parse_node_seen(found, "openshift")
        assert seen is None or isinstance(seen, NodeSeen), seen
        ill = seen is None or not seen.ready
        self._ill_since = min(self._ill_since, now()) if ill else float("inf")
        wants = now() >= self._ill_since + (self._after_seconds if self.requests else 0.0)
        if wants and self._stage.machine(self._host) is NotRequested:
            self._stage.request(self._host)
            self.requests += 1
            self._ill_since = now()
        return seen

    def sees_note(self) -> bool:
        seen = self.look()
        return seen is not None and seen.requested_again

    def is_content(self) -> bool:
        """Whether the Node is Ready, and nobody requests anything any more."""
        seen = self.look()
        return seen is not None and seen.ready and not seen.marked and self._stage.machine(self._host) is NotRequested


@pytest.fixture(scope="module")
def embedded_leaders() -> Iterator[LeaderStage]:
    with EmbeddedCluster.start() as cluster, LeaderStage.on(cluster, machines="openshift") as stage:
        yield stage


@pytest.fixture(scope="module")
def real_leaders(real_cluster: Cluster) -> Iterator[LeaderStage]:
    with LeaderStage.on(real_cluster, machines="openshift") as stage:
        yield stage


@pytest.fixture(params=["embedded", "real"])
def stage(request: pytest.FixtureRequest) -> LeaderStage:
    chosen: LeaderStage = request.getfixturevalue(f"{request.param}_leaders")
    return chosen


@pytest.mark.parametrize("after_seconds", [0.0, 60.0])
def test_a_host_that_is_off_for_long_is_freed_once_and_not_reset_when_it_is_back(
    stage: LeaderStage, after_seconds: float
) -> None:
    *_, host = stage.begin()
    uid, boots = stage.uid(host), host.boots
    check = HealthCheck(stage, host, after_seconds)
    host.kill()
    stage.contents.report(host.name, ready=False)
    eventually(check.sees_note, "the leader notes that it is requested again", LONG_SECONDS)
    freed = stage.uid(host)
    assert freed != uid
    stage.shows("a request in the meantime begins nothing")
    stage.bed.boot(host.name)
    eventually(lambda: check.look() and host.kubelet_started(), "it is back, and its gate open", LONG_SECONDS)
    stage.contents.report(host.name, ready=True)
    eventually(check.is_content, "the request is taken off, and the note", LONG_SECONDS)
    eventually(lambda: stage.is_well(host), "the host is armed, and unmarked")
    assert (stage.uid(host), host.boots, check.requests) == (freed, boots + 1, 2)
