"""The leader's page in Chromium: how long a large cluster takes to draw."""

from __future__ import annotations

import contextlib
import shutil
import statistics
from collections.abc import Iterator

from pp_hostd.errors import UserError
from tests.bench.figure import Figure
from tests.harness.embedded import EmbeddedCluster
from tests.page.browser import Browser
from tests.page.painted import Onlooker, Painted, node

HOSTS = 500
RUNS = 9
DRAW = """
tiles.clear();
document.querySelector('#hosts').replaceChildren();
const before = performance.now();
showHosts(seen.hosts);
document.body.getBoundingClientRect();
return performance.now() - before;
"""
"""Makes all hosts again, and their layout."""


def drawing() -> Iterator[Figure]:
    if shutil.which("chromedriver") is None:
        raise UserError("no chromedriver is installed", "`make test-page` gets it and Chromium (apt: root)")
    names = [f"worker-{number}" for number in range(HOSTS)]
    with (
        EmbeddedCluster.start() as cluster,
        contextlib.closing(Painted(cluster, map(node, names))),
        Browser.running() as browser,
    ):
        browser.open(Onlooker(cluster).url)
        browser.shows(f"All {HOSTS} hosts are protected")
        took = [float(browser.run(DRAW)) for _ in range(RUNS)]
    yield Figure(f"page: {HOSTS} hosts drawn, median", statistics.median(took), "ms", at_most=200)
