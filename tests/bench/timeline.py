"""How long a remediation takes with the default settings: a hundred real hosts, two of them with real leaders."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from pp_hostd.model.settings import Settings
from pp_hostd.service.journal import Message
from pp_hostd.timing import computed_wait_seconds
from tests.bench.agent import DEFAULTS
from tests.bench.figure import Figure
from tests.harness.bed.cluster_bed import ClusterBed
from tests.harness.bed.host import Host
from tests.harness.bed.record import Event
from tests.harness.embedded import EmbeddedCluster
from tests.scenarios.leading import LEADERS, LeaderStage, now

HOSTS = 100
BOOTED_AT_ONCE = 10
SETTINGS = Settings()
WAIT_SECONDS = computed_wait_seconds(SETTINGS)
WITHOUT_EVIDENCE_SECONDS = WAIT_SECONDS + 5
WITH_EVIDENCE_SECONDS = 20
LONG_SECONDS = 120
"""Far beyond any target: a miss is measured, too."""


def remediation() -> Iterator[Figure]:
    """Each with all that its host and the leaders said, in seconds since the request."""
    with _stage() as stage:
        *_, cut_off, sick = stage.begin()
        time.sleep(SETTINGS.leader.start_grace_seconds)
        seconds = _remedied(stage, sick)  # it says that it resets, and does
        yield Figure(f"request to deletion, evidence, {HOSTS} agents", seconds, "s", at_most=WITH_EVIDENCE_SECONDS)
        stage.bed.set_carrier(cut_off.name, up=False)
        seconds = _remedied(stage, cut_off)
        assert seconds >= WAIT_SECONDS, "freed before the wait was over"
        yield Figure(f"request to deletion, cut off, {HOSTS} agents", seconds, "s", at_most=WITHOUT_EVIDENCE_SECONDS)


@contextmanager
def _stage() -> Iterator[LeaderStage]:
    with EmbeddedCluster.start() as cluster, ClusterBed.start(cluster, HOSTS, settings=DEFAULTS) as bed:
        names = list(bed.hosts)
        for first in range(0, HOSTS, BOOTED_AT_ONCE):
            bed.boot(*names[first : first + BOOTED_AT_ONCE])
        stage = LeaderStage(bed)
        try:
            yield stage
        finally:
            stage.close()


def _remedied(stage: LeaderStage, host: Host) -> float:
    """From the request to the deletion of its Node; what happened until it was given back is printed."""
    uid, since_at = stage.uid(host), now()
    stage.request(host)
    stage.freed(host, uid, LONG_SECONDS)
    seconds = now() - since_at
    stage.given_back(host)
    _print(stage, host, since_at, seconds)
    return seconds


def _print(stage: LeaderStage, host: Host, since_at: float, deleted_seconds: float) -> None:
    told = [(0.0, "bench", f"requests {host.name}'s remediation"), (deleted_seconds, "bench", "finds its Node deleted")]
    for leader in LEADERS:
        told += _told(f"leader on {leader}", since_at, _next_actions(stage.bed.hosts[leader]))
    told += _told(host.name, since_at, host.events("journal", "down"))
    for seconds, who, line in sorted(told):
        print(f"  {seconds:7.3f} s  {who:<19} {line}", flush=True)


def _next_actions(host: Host) -> list[Event]:
    events = host.events("journal")
    return [event for event in events if event["fields"].get("MESSAGE_ID") == Message.COURSE.value]


def _told(who: str, since_at: float, events: list[Event]) -> list[tuple[float, str, str]]:
    recent = [event for event in events if event["at"] >= since_at]
    return [(event["at"] - since_at, who, event.get("line") or "is reset") for event in recent]
