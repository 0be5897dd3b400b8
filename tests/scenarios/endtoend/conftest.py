"""One site for all of these tests: each begins with all of it well."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.scenarios.endtoend.site import Site
from tests.scenarios.leading import LEADING


@pytest.fixture(scope="package")
def site() -> Iterator[Site]:
    """It frees slowly, so that a test can act meanwhile."""
    with Site.on_real_parts({**LEADING, "api.machines": "openshift", "leader.deletions_per_second": 2}) as site:
        yield site
