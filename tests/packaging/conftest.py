"""The packages; a guest to install them in; and the site that an administrator would make of both."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.packaging.guest import CHECKOUT, Guest, booted
from tests.packaging.site import Site, prepared


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Show beside a failure what the guest's journal last said."""
    report = yield
    guest = getattr(item, "funcargs", {}).get("guest")
    if report.failed and isinstance(guest, Guest):
        report.sections.append(("the guest's journal", guest.run("journalctl", "--lines=60", check=False).stdout))
    return report


@pytest.fixture(scope="session")
def rpms() -> Path:
    """The directory that `make test-packages` has built them into: inside a test there is no time for it."""
    return CHECKOUT / "build" / "rpms"


@pytest.fixture
def guest(rpms: Path) -> Iterator[Guest]:
    with booted(rpms) as guest:
        yield guest


@pytest.fixture
def site(guest: Guest) -> Iterator[Site]:
    """Installed and configured; nothing is enabled yet."""
    with prepared(guest) as site:
        site.install("pp-hostd-0.1.0-1.bundled", "pp-leader-0.1.0-1.bundled")
        site.configure()
        yield site
