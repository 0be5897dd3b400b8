"""One rig for each set of definitions: our own small ones and, where they lie beside this project, the published."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.bmc.rig import REPOSITORY, Rig
from tests.harness.controlplane import DEFINITIONS
from tests.harness.eventually import eventually

PUBLISHED = REPOSITORY.parent / "shared" / "crds"


def definitions(published: Path | None) -> list[dict[str, Any]]:
    """Each by its name, so that a published one takes the place of ours."""
    found = {each["metadata"]["name"]: each for each in DEFINITIONS}
    for path in sorted(published.glob("*.yaml")) if published else ():
        definition = yaml.safe_load(path.read_text())
        definition["spec"].pop("conversion", None)  # nobody converts here
        found[definition["metadata"]["name"]] = definition
    return list(found.values())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each set of definitions has a worker of its own, if there are several."""
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            item.add_marker(pytest.mark.xdist_group(str(item.callspec.params.get("shared_rig"))))


@pytest.fixture(scope="session", params=["own", *(["published"] if PUBLISHED.is_dir() else [])])
def shared_rig(request: pytest.FixtureRequest) -> Iterator[Rig]:
    with Rig.on(definitions(PUBLISHED if request.param == "published" else None)) as rig:
        yield rig


@pytest.fixture
def rig(shared_rig: Rig) -> Rig:
    """All is well."""
    shared_rig.set_wires("works")
    eventually(shared_rig.is_well, "all is well before the case begins", 60)
    shared_rig.forget()
    return shared_rig
