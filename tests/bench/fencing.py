"""The costs of NodeRemedyConfigurations while nothing changes, and how soon a flow begins after a threshold."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timezone

from pp_hostd.kube.resources import CONFIG_MAPS, NODE_FENCES, NODE_REMEDY_CONFIGURATIONS, NODES
from pp_hostd.leader.remedies.node_fence.fence import fence_name
from pp_hostd.model.keys import NAMESPACE
from pp_hostd.model.moment import render_moment
from tests.bench.figure import Figure
from tests.bench.leader import IDLE_SECONDS, leading
from tests.bench.observing import POOLS
from tests.harness.bed.contents import Contents
from tests.harness.bed.host import Host
from tests.harness.embedded import EmbeddedCluster
from tests.harness.eventually import eventually
from tests.scenarios.leading import LeaderStage

COUNT = 1000
HOSTS, SAMPLES = 6, 5
PERIOD_SECONDS = 12
"""So long that what was found for one sample is too old for the next."""


def fencing() -> Iterator[Figure]:
    yield from _idle()
    yield from _begins()


def _idle() -> Iterator[Figure]:
    """Each configuration selects a part of the Nodes, by two thresholds."""
    with EmbeddedCluster.start() as cluster, leading(str(cluster.kubeconfig()), COUNT) as leader:
        with closing(Contents(cluster, "node")) as contents:
            _configure(contents)
        time.sleep(IDLE_SECONDS / 6)  # until all have their status
        cpu, requests, since = leader.cpu_seconds(), leader.requests(), time.monotonic()
        time.sleep(IDLE_SECONDS)
        seconds = time.monotonic() - since
        of = f"fencing: {COUNT:,} nodes, {POOLS} configurations, idle"
        yield Figure(f"{of}, CPU", 100 * (leader.cpu_seconds() - cpu) / seconds, "% of one", at_most=5)
        yield Figure(f"{of}, requests", (leader.requests() - requests) * 60 / seconds, "a minute")


def _configure(contents: Contents) -> None:
    """Until the leader has written how many Nodes each selects."""
    names = [f"pool-{number}" for number in range(POOLS)]
    for name in names:
        thresholds = [_threshold("Ready", "Unknown", 120), _threshold("KernelDeadlock", "True", 300)]
        spec = {"nodeSelector": f"pool={name}", "thresholdConfigs": thresholds}
        contents.create(NODE_REMEDY_CONFIGURATIONS, {"metadata": {"name": name}, "spec": spec})

    def selected() -> list[int]:
        found = (contents.find(NODE_REMEDY_CONFIGURATIONS, name) or {} for name in names)
        return [each.get("status", {}).get("selectedNodes", 0) for each in found]

    eventually(lambda: selected() == [COUNT // POOLS] * POOLS, "each configuration selects its Nodes", 120)


def _threshold(condition: str, status: str, seconds: int) -> dict[str, str]:
    period = f"{seconds}s"
    return {"nodeConditionType": condition, "nodeConditionStatus": status, "nodeConditionPeriod": period}


def _begins() -> Iterator[Figure]:
    """Where agents run. The host is off, and so is one of those that the leader asks about it."""
    with EmbeddedCluster.start() as cluster, LeaderStage.on(cluster, HOSTS) as stage:
        *_, silent, victim = stage.begin()
        for host in (silent, victim):
            host.kill()
        numbers = {"config.properties": "max_non_responsive=100%\n"}
        contents = stage.contents
        contents.create(CONFIG_MAPS, {"metadata": {"name": "fence-cluster-config"}, "data": numbers}, NAMESPACE)
        by_hand = max(_late(stage, victim, by_hand=True) for _ in range(SAMPLES))
        spec = {"thresholdConfigs": [_threshold("Ready", "Unknown", PERIOD_SECONDS)]}
        contents.create(NODE_REMEDY_CONFIGURATIONS, {"metadata": {"name": "all"}, "spec": spec})
        late = max(_late(stage, victim) for _ in range(SAMPLES))
    yield Figure("fencing: NodeFence by hand to first method, most", by_hand, "s")
    yield Figure("fencing: threshold to first method, most", late, "s", at_most=2)


def _late(stage: LeaderStage, victim: Host, by_hand: bool = False) -> float:
    """From when the node is to be fenced until its Node is unschedulable, which is the first method."""
    name = fence_name(victim.name)
    _report(stage, victim, "True")
    time.sleep(PERIOD_SECONDS)
    _report(stage, victim, "Unknown")
    since = time.monotonic()
    if by_hand:
        stage.contents.create(NODE_FENCES, {"metadata": {"name": name}, "node": victim.name})
    else:
        since += PERIOD_SECONDS
    eventually(lambda: _is_cordoned(stage, victim), "the first method has begun", 60)
    seconds = time.monotonic() - since
    stage.contents.delete(NODE_FENCES, name)
    eventually(lambda: not _is_cordoned(stage, victim), "it is given back", 60)
    return seconds


def _is_cordoned(stage: LeaderStage, host: Host) -> bool:
    return bool((stage.node(host) or {}).get("spec", {}).get("unschedulable"))


def _report(stage: LeaderStage, host: Host, ready: str) -> None:
    since = render_moment(datetime.now(timezone.utc))
    condition = {"type": "Ready", "status": ready, "lastTransitionTime": since}
    change = {"conditions": [condition], "nodeInfo": {"bootID": host.boot_id}}
    stage.contents.patch(NODES, host.name, {"status": change}, "status")
