"""One rig for each set of definitions: our own small ones, and the published."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bmc.rig import Rig
from tests.harness.controlplane import DEFINITIONS
from tests.harness.eventually import eventually
from tests.harness.published import published


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each set of definitions has a worker of its own, if there are several."""
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            item.add_marker(pytest.mark.xdist_group(str(item.callspec.params.get("shared_rig"))))


@pytest.fixture(scope="session", params=["own", "published"])
def shared_rig(request: pytest.FixtureRequest) -> Iterator[Rig]:
    with Rig.on(published() if request.param == "published" else DEFINITIONS) as rig:
        yield rig


@pytest.fixture
def rig(shared_rig: Rig) -> Rig:
    """All is well."""
    shared_rig.set_wires("works")
    eventually(shared_rig.is_well, "all is well before the case begins", 60)
    shared_rig.forget()
    return shared_rig
