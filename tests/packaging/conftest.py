"""The packages, built once; a guest to install them in; and the site that an administrator would make of both."""

from __future__ import annotations

import subprocess
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.packaging.guest import CHECKOUT, Guest, booted
from tests.packaging.site import Site, prepared

BUILD_SECONDS = 600


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
    """The directory with all of them: two releases with their libraries inside, and one without."""
    for variables in (["BUNDLED=1"], ["BUNDLED=1", "RELEASE=2"], []):
        command = ["make", "--silent", "rpm", *variables]
        subprocess.run(command, cwd=CHECKOUT, check=True, timeout=BUILD_SECONDS, capture_output=True)
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
