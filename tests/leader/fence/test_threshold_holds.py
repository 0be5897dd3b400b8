"""Others who have a say about a Node hold its fencing back: pauses, maintenance, other remedies, whoever deletes it."""

from __future__ import annotations

from datetime import timedelta
from typing import Callable

import pytest

from pp_hostd.leader.requests.thresholds.steps import CreateFence
from pp_hostd.model.control import Maintenance
from pp_hostd.model.keys import (
    CONFIRMED_DEAD,
    CORDONED,
    PAUSED_MACHINE,
    PAUSED_NODE,
    REQUESTED_AGAIN,
    SKIP_REMEDIATION,
    backup_name,
)
from pp_hostd.model.promise import Withdrawn
from pp_hostd.model.settings import Leader, Settings
from tests.leader.fence.configured import ConfiguredWorld
from tests.leader.test_paused_cluster import make_cluster, settle
from tests.leader.virtual_cluster import SINCE
from tests.leader.virtual_host import HOST, PEERS

SINCE_LONG = 1000.0


def lead_paused(world: ConfiguredWorld) -> None:
    world.order({"paused": '{"v":1,"who":"eve","when":"2026-03-01T00:00:00Z","why":"upgrade"}'})


def in_maintenance(world: ConfiguredWorld) -> None:
    order = Maintenance("eve", SINCE, "new disk", SINCE + timedelta(hours=1))
    world.state(Withdrawn("boot-1", order))


def tainted(world: ConfiguredWorld) -> None:
    taint = {"key": "pp-hostd.io/condemned", "effect": "NoExecute", "value": "7"}
    world.api.patch("nodes", HOST, {"spec": {"taints": [taint]}})


def annotated(key: str, value: str = "") -> Callable[[ConfiguredWorld], None]:
    return lambda world: world.annotate_node(HOST, **{key: value})


def machine_annotated(key: str) -> Callable[[ConfiguredWorld], None]:
    return lambda world: world.annotate_machine(world.machine_key, **{key: ""})


def deleted(world: ConfiguredWorld) -> None:
    metadata = {"deletionTimestamp": world.moment(), "finalizers": ["example.com/keep"]}
    world.api.patch("nodes", HOST, {"metadata": metadata})


def backed_up(world: ConfiguredWorld) -> None:
    world.config_map(backup_name(HOST), {})


def of_cluster(pause: str) -> Callable[[ConfiguredWorld], None]:
    def settled(world: ConfiguredWorld) -> None:
        make_cluster(world, pause)
        settle(world)

    return settled


HELD: dict[str, tuple[str, Callable[[ConfiguredWorld], None]]] = {
    "leader": ("node", lead_paused),
    "node": ("node", annotated(PAUSED_NODE)),
    "maintenance": ("node", in_maintenance),
    "deleted": ("node", deleted),
    "condemned": ("openshift", lambda world: world.condemn()),
    "requested": ("openshift", lambda world: world.request()),
    "taint": ("openshift", tainted),
    "cordon": ("openshift", annotated(CORDONED, "7")),
    "confirmed": ("openshift", annotated(CONFIRMED_DEAD, "?")),
    "requested again": ("openshift", annotated(REQUESTED_AGAIN, "7")),
    "backup": ("node", backed_up),
    "machine": ("openshift", machine_annotated(PAUSED_MACHINE)),
    "machine skipped": ("openshift", machine_annotated(SKIP_REMEDIATION)),
    "cluster by annotation": ("openshift", of_cluster("annotation")),
    "cluster by field": ("openshift", of_cluster("spec.paused")),
    "cluster that is missing": ("openshift", settle),
    "configuration": ("node", lambda world: world.pause_configuration()),
}


FREE: dict[str, tuple[str, Callable[[ConfiguredWorld], None]]] = {
    "nothing": ("openshift", lambda _: None),
    "withdrawn": ("openshift", lambda world: world.withdraws()),
    "cluster": ("openshift", of_cluster("")),
    "another machine": ("openshift", lambda world: world.request(f"machines/{PEERS[0]}")),
    "no machine": ("openshift", annotated("machine.openshift.io/machine", "?")),
}


@pytest.mark.parametrize(
    ("machines", "hold", "created"),
    [*((*each, 0) for each in HELD.values()), *((*each, 1) for each in FREE.values())],
    ids=[*HELD, *FREE],
)
def test_nothing_is_created_while_somebody_else_has_a_say(
    machines: str, hold: Callable[[ConfiguredWorld], None], created: int
) -> None:
    world = ConfiguredWorld(machines)
    world.configure()
    hold(world)
    world.reports(HOST, "False", seconds_ago=SINCE_LONG)
    world.driver.turn()
    assert sum(isinstance(step, CreateFence) for _, step, _ in world.under_way) == created


def test_it_goes_on_once_the_hold_is_over() -> None:
    world = ConfiguredWorld()
    world.configure()
    world.annotate_node(HOST, **{PAUSED_NODE: ""})
    world.reports(HOST, "False", seconds_ago=SINCE_LONG)
    world.spend(300.0)
    assert not world.fences()
    world.annotate_node(HOST, **{PAUSED_NODE: None})
    world.run(lambda: world.fenced() == [HOST], seconds=1.0)


def test_a_dry_run_creates_nothing() -> None:
    world = ConfiguredWorld(settings=Settings(leader=Leader(mode="dry-run")))
    world.configure()
    world.reports(HOST, "False", seconds_ago=SINCE_LONG)
    world.spend(60.0)
    assert not world.fences()
