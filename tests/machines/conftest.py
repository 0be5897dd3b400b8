"""A bed for each worker of the run; what a failed case leaves is kept in build/machines, and the failure says where."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness.controlplane import RealCluster
from tests.harness.embedded import EmbeddedCluster
from tests.machines.bed import Bed
from tests.machines.package import REPOSITORY

KEPT = REPOSITORY / "build" / "machines"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    report = yield
    for used in getattr(item, "funcargs", {}).values():
        if report.failed and isinstance(used, Bed):
            used.keep_logs(KEPT / item.name)
            report.sections.append(("the machines' logs", str(KEPT / item.name)))
    return report


@pytest.fixture(scope="session")
def small_bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    with EmbeddedCluster.start() as cluster:
        yield from _bed(cluster, tmp_path_factory.mktemp("guests"))


@pytest.fixture(scope="session")
def whole_bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    with RealCluster.start(controllers=True) as cluster:
        yield from _bed(cluster, tmp_path_factory.mktemp("guests"))


def _bed(cluster: EmbeddedCluster | RealCluster, directory: Path) -> Iterator[Bed]:
    bed = Bed(cluster, directory)
    try:
        yield bed
    finally:
        bed.close()


@pytest.fixture
def bed(small_bed: Bed) -> Iterator[Bed]:
    """On the embedded API; nothing runs there when a case begins."""
    yield small_bed
    small_bed.dismiss()


@pytest.fixture
def real_bed(whole_bed: Bed) -> Iterator[Bed]:
    """On a real control plane with its controllers."""
    yield whole_bed
    whole_bed.dismiss()
