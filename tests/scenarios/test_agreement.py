"""The simulator agrees with the daemons: bad days that both play end in the same writes and the same verdicts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from pp_hostd.config import load
from pp_hostd.model.settings import Settings
from pp_hostd.sim.mutant import Change, Mutant, taken_out
from pp_hostd.sim.schedule import CALM_SECONDS, Schedule, Trouble
from pp_hostd.sim.world import LEADERS
from tests.harness.bed.cluster_bed import ClusterBed
from tests.harness.embedded import EmbeddedCluster
from tests.scenarios.enacted import enacted
from tests.scenarios.leading import LEADING, LeaderStage
from tests.scenarios.simulated import simulated

NODES = 5
X = ("node-5",)
"""No leader runs there."""
EVERYBODY = tuple(f"node-{number}" for number in range(1, NODES + 1))
ALL_BUT_ONE = EVERYBODY[1:]
"""Without X they are still the majority."""
BEGIN = CALM_SECONDS + 1.0
LONG_SECONDS = 60.0
SETTLED_SECONDS = 60.0
OTHER_SEED = 2
SHORT = {"agent.self_timeout_seconds": 10.0, "watchdog.timeout_seconds": 4}
"""The days below are as long as these need."""


def day(healed: float, *troubles: Trouble) -> Schedule:
    """Returns a day; seconds count from the first trouble. At `healed`, lasting troubles end and down hosts boot."""
    moved = [replace(each, at=BEGIN + each.at, seconds=each.seconds or LONG_SECONDS) for each in troubles]
    return Schedule(1, NODES, tuple(moved), BEGIN + healed, BEGIN + healed + SETTLED_SECONDS)


DAYS = {
    "cut-off": day(24, Trouble(0, "cut off", X), Trouble(0.5, "request", X)),
    "reads-its-condemnation": day(7, Trouble(0, "request", X)),
    "accused-by-peers": day(24, Trouble(0, "cut off from API", X), Trouble(0.5, "request", X)),
    "absolved": day(14, Trouble(0, "cut off", X), Trouble(0.5, "request", X), Trouble(3, "absolve", X)),
    "outage": day(14, Trouble(0, "API stops", part=1.0), Trouble(18, "request", X)),
    "majority-without-api": day(
        40, Trouble(0, "split", ALL_BUT_ONE), Trouble(1, "request", X), Trouble(36, "power fails", X)
    ),
    "back-before-it-is-freed": day(5, Trouble(0, "power fails", X), Trouble(0.5, "request", X)),
    "leaders-killed": day(
        40, Trouble(0, "cut off", X), Trouble(0.5, "request", X), *[Trouble(4, "leader is killed")] * LEADERS
    ),
    "withdrawn": day(15, Trouble(0, "agent stops", X, seconds=0.5), Trouble(2, "request", X)),
    "switch-is-dead": day(15, *(Trouble(0, "cut off", (name,)) for name in EVERYBODY)),
}
"""Chance decides nothing in them that an account holds."""
CONDEMNS_FIRST = Change(
    "pp_hostd.leader.remedies.poison_pill.plan:_condemned",
    "if not node.tainted or not node.unschedulable:",
    "if own and not (node.tainted and node.unschedulable):",
)


@pytest.fixture(scope="module")
def stage() -> Iterator[LeaderStage]:
    """As many hosts and leaders as the simulator has, with machines of the same kind."""
    settings = {**LEADING, **SHORT, "api.machines": "openshift"}
    with EmbeddedCluster.start() as cluster, ClusterBed.start(cluster, NODES, settings=settings) as bed:
        stage = LeaderStage(bed, list(bed.hosts)[:LEADERS])
        try:
            yield stage
        finally:
            stage.close()


@pytest.fixture(scope="module")
def settings(stage: LeaderStage) -> Settings:
    """Those that the hosts read."""
    host = next(iter(stage.bed.hosts.values()))
    return load(str(host.etc / "pp-hostd.toml")).settings


@pytest.mark.parametrize("name", DAYS)
def test_both_write_the_same_and_come_to_the_same_verdicts(stage: LeaderStage, settings: Settings, name: str) -> None:
    expected, cues = simulated(DAYS[name], settings)
    found = enacted(stage, DAYS[name], cues)
    assert found.writes == expected.writes
    assert found.verdicts == expected.verdicts


@pytest.mark.parametrize("name", DAYS)
def test_chance_changes_nothing(settings: Settings, name: str) -> None:
    known, _ = simulated(DAYS[name], settings)
    assert simulated(replace(DAYS[name], seed=OTHER_SEED), settings)[0] == known


def test_another_order_of_writes_makes_another_account(settings: Settings) -> None:
    known, _ = simulated(DAYS["absolved"], settings)
    with taken_out(Mutant("cordoned before it is condemned", 9, "", (CONDEMNS_FIRST,))):
        assert simulated(DAYS["absolved"], settings)[0].writes != known.writes
