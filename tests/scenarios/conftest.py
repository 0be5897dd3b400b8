"""The stages of the scenarios: one on the embedded API, one on a real control plane, one for each kind of machines."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import pytest

from tests.harness.cluster import Cluster
from tests.harness.controlplane import RealCluster
from tests.harness.embedded import EmbeddedCluster
from tests.scenarios.leading import LeaderStage
from tests.scenarios.stage import Stage

MOST_HOSTS = 12
LAST_LINES = 12


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Show beside a failure what the hosts last said, and the programs of a real control plane."""
    report = yield
    for used in getattr(item, "funcargs", {}).values():
        if report.failed and isinstance(used, (Stage, LeaderStage)):
            for host in used.bed.hosts.values():
                if host.boots:
                    report.sections.append((f"{host.name}'s journal", "\n".join(host.journal()[-LAST_LINES:])))
            cluster = used.contents.cluster
            if isinstance(cluster, RealCluster):
                report.sections += [(f"{name}'s log", tail) for name, tail in cluster.supervisor.log_tails().items()]
    return report


@pytest.fixture(scope="module")
def embedded_stage() -> Iterator[Stage]:
    with EmbeddedCluster.start() as cluster, Stage.on(cluster, MOST_HOSTS) as stage:
        yield stage


@pytest.fixture(scope="module")
def real_stage(real_cluster: Cluster) -> Iterator[Stage]:
    with Stage.on(real_cluster, 3) as stage:
        yield stage


@pytest.fixture
def stage(embedded_stage: Stage) -> Stage:
    """On the embedded API."""
    return embedded_stage


@pytest.fixture(params=["embedded", "real"])
def any_stage(request: pytest.FixtureRequest) -> Stage:
    """On the embedded API, and on a real control plane: at most 3 hosts."""
    chosen: Stage = request.getfixturevalue(f"{request.param}_stage")
    return chosen


@pytest.fixture(scope="module", params=["openshift", "cluster-api"])
def machine_stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    """For each kind of machines that are not the Node itself."""
    with EmbeddedCluster.start() as cluster, Stage.on(cluster, 3, request.param) as stage:
        yield stage


@pytest.fixture(scope="module")
def leader_stage() -> Iterator[LeaderStage]:
    """Five hosts, two of them with leaders, on the embedded API."""
    with EmbeddedCluster.start() as cluster, LeaderStage.on(cluster) as stage:
        yield stage


@pytest.fixture(scope="module", params=["node", "openshift", "cluster-api"])
def real_leader_stage(request: pytest.FixtureRequest, real_cluster: Cluster) -> Iterator[LeaderStage]:
    """The same on a real control plane, with the rights that `pp-leader install` gives."""
    with LeaderStage.on(real_cluster, machines=request.param) as stage:
        yield stage
