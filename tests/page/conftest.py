"""A browser, and clusters to look at with it."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Callable

import pytest

from tests.harness.embedded import EmbeddedCluster
from tests.page.browser import Browser

Save = Callable[[str], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--pictures", default="", help="the folder for the pictures of the page (docs/images)")


@pytest.fixture(scope="module")
def only_browser() -> Iterator[Browser]:
    with Browser.running() as browser:
        yield browser


@pytest.fixture
def browser(only_browser: Browser) -> Iterator[Browser]:
    """As a desktop has it; and whatever is shown, the page keeps its own rules."""
    only_browser.emulate()
    only_browser.complaints()
    yield only_browser
    only_browser.open("about:blank")
    assert [each for each in only_browser.complaints() if "Failed to load resource" not in each] == []


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster.start() as cluster:
        yield cluster


@pytest.fixture
def save(browser: Browser, request: pytest.FixtureRequest, tmp_path: Path) -> Save:
    """Keeps a small picture of the window under this name."""
    folder = Path(request.config.getoption("--pictures") or tmp_path)

    def save(name: str) -> None:
        small = subprocess.run(
            ["pngquant", "--strip", "64", "-"], input=browser.picture(), capture_output=True, check=True
        )
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = folder / f"{name}.unfinished"
        with contextlib.suppress(FileNotFoundError):
            unfinished.unlink()
        unfinished.write_bytes(small.stdout)
        unfinished.rename(folder / f"{name}.png")

    return save
