"""How soon the pod of a worker whose link is pulled runs elsewhere, with its volume, on a whole site with defaults."""

from __future__ import annotations

import time
from collections.abc import Iterator

from pp_hostd.kube.resources import NODE_HEALTH_CHECKS
from pp_hostd.leader.requests.health_checks.definitions import DEFAULT_NAME, default_check
from pp_hostd.model.settings import Settings
from tests.bench.agent import DEFAULTS
from tests.bench.figure import Figure
from tests.harness.bed.bed import REPOSITORY
from tests.harness.eventually import eventually
from tests.scenarios.endtoend.site import Site
from tests.scenarios.endtoend.timeline import Timeline

POD = "web-0"


def pulled_link() -> Iterator[Figure]:
    """Nobody asks: the health check that `pp-leader install --health-check` makes notices it."""
    with Site.on_real_parts(DEFAULTS) as site:
        site.begin()
        site.contents.create(NODE_HEALTH_CHECKS, default_check())
        time.sleep(Settings().leader.start_grace_seconds)
        eventually(lambda: _healthy(site) == len(site.bed.hosts), "all hosts are healthy", 60)
        (lost,) = site.hosts_of(POD)
        timeline = Timeline(site, [lost], "its link is pulled, and nobody does anything about it")
        site.bed.set_carrier(lost.name, False)

        def elsewhere() -> bool:
            timeline.look()
            return site.workload.node_of(POD) not in ("", lost.name)

        eventually(elsewhere, f"{POD} runs elsewhere", 120)
        timeline.look()  # it may have come just after the last look
        ran_at = timeline.at(f"Volume of {POD}: attached to {site.workload.node_of(POD)}")
        print(timeline.text(), end="")
        timeline.keep(REPOSITORY / "build" / "timeline-defaults.txt")
        yield Figure("link pulled until the pod runs elsewhere", ran_at - timeline.since_at, "s", at_most=60)


def _healthy(site: Site) -> int:
    check = site.contents.find(NODE_HEALTH_CHECKS, DEFAULT_NAME) or {}
    return int(check.get("status", {}).get("currentHealthy") or 0)
