"""The cost of health checks for a leader of a large cluster while nothing changes but the Nodes' heartbeats."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from pp_hostd.leader.requests.health_checks.definitions import default_check
from pp_hostd.model.settings import Settings
from tests.bench.figure import Figure
from tests.leader.virtual_host import World

NODES, CHECKS = 5000, 10
REPORTS_PER_SECOND = NODES / 300
"""A kubelet writes the status of its Node every 5 minutes, if nothing in it changes."""
LOOKED_AT = 300
READY = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-03-01T00:00:00Z"}


def judging_cost() -> Iterator[Figure]:
    """Each report wakes the leader, which reads it and plans."""
    names = tuple(f"node-{number:04}" for number in range(1, NODES))
    world = World("node", Settings(), peers=names)
    for name in names:
        world.api.patch("nodes", name, {"status": {"conditions": [READY]}})
    for number in range(CHECKS):
        made = default_check()
        world.api.put("nodehealthchecks", f"check-{number}", {**made, "metadata": {"name": f"check-{number}"}})
    world.spend(60.0)
    watch = world.api.watch_of("nodes")
    reports = [
        watch.keep(_heard_again(world.api.objects["nodes"][name], number))
        for number, name in enumerate(names[:LOOKED_AT])
    ]
    began = time.process_time()
    for report in reports:
        watch.show(report)
        world.driver.turn()
    seconds = (time.process_time() - began) / LOOKED_AT
    turn = f"turn after a report of one Node: {NODES:,} Nodes, {CHECKS} health checks"
    yield Figure(turn, seconds * 1000, "ms")
    yield Figure("the same at the rate of their reports", 100 * seconds * REPORTS_PER_SECOND, "% of a core", at_most=5)


def _heard_again(node: dict[str, Any], number: int) -> dict[str, Any]:
    """The Node with a new heartbeat: nothing else has changed."""
    heard = f"2026-03-01T00:00:{number % 60:02}Z"
    conditions = [{**each, "lastHeartbeatTime": heard} for each in node["status"]["conditions"]]
    return {**node, "status": {**node["status"], "conditions": conditions}}
