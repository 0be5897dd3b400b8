"""The figures of health checks that a leader serves to Prometheus."""

from __future__ import annotations

from typing import Any, Callable

import pytest

from pp_hostd.leader.requests.machine_health_checks.conditions import Spelling
from pp_hostd.model.keys import PAUSED_MACHINE
from pp_hostd.service.metric import render
from tests.leader.health.checked import CheckedWorld
from tests.leader.health.mhc_objects import ALL, CLUSTER_API, OPENSHIFT, TEMPLATE, V1BETA2
from tests.leader.health.mhc_world import OTHERS, kept, new_world
from tests.leader.virtual_host import HOST, PEERS

OF_NODES = 'kind="NodeHealthCheck",namespace="",check="workers"'
OF_MACHINES = 'kind="MachineHealthCheck",namespace="machines",check="workers"'
IN_EACH = pytest.mark.parametrize("spelling", ALL, ids=lambda each: each.value)


def figures(world: CheckedWorld) -> str:
    return render(world.metrics.metrics(world.observed()))


def has(world: CheckedWorld, name: str, labels: str, figure: int) -> None:
    assert f"pp_leader_health_check_{name}{{{labels}}} {figure}\n" in figures(world)


def test_each_check_counts_its_nodes_and_says_whether_it_is_blocked() -> None:
    world = CheckedWorld()
    world.check()
    world.spend(5.0)
    has(world, "nodes", f'{OF_NODES},state="healthy"', 5)
    has(world, "blocked", OF_NODES, 0)
    has(world, "short_circuits_total", OF_NODES, 0)
    for name in (HOST, *PEERS[:2]):
        world.reports(name, "Unknown", seconds_ago=100)
    world.spend(60.0)
    has(world, "nodes", f'{OF_NODES},state="expected"', 5)
    has(world, "nodes", f'{OF_NODES},state="healthy"', 2)
    has(world, "blocked", OF_NODES, 1)
    has(world, "short_circuits_total", OF_NODES, 1)
    has(world, "remediations_total", OF_NODES, 0)


@pytest.mark.parametrize("template", [None, {**TEMPLATE, "namespace": "machines"}])
def test_what_a_check_has_remediated_is_counted_once(template: Any) -> None:
    world = new_world(OPENSHIFT, on=False)
    world.template()
    world.check(**({} if template is None else {"remediationTemplate": template}))
    kept(world)
    world.reports(HOST, "Unknown", seconds_ago=100)
    world.spend(120.0)
    has(world, "remediations_total", OF_NODES, 1)


@IN_EACH
def test_a_machine_health_check_counts_the_same(spelling: Spelling) -> None:
    world = new_world(spelling)
    world.check_machines(most=1)
    world.spend(5.0)
    has(world, "nodes", f'{OF_MACHINES},state="expected"', 5)
    has(world, "nodes", f'{OF_MACHINES},state="healthy"', 5)
    has(world, "blocked", OF_MACHINES, 0)
    kept(world)
    world.silent(HOST, *PEERS[:1])
    world.spend(60.0)
    has(world, "nodes", f'{OF_MACHINES},state="healthy"', 3)
    has(world, "blocked", OF_MACHINES, 1)
    has(world, "short_circuits_total", OF_MACHINES, 1)
    has(world, "remediations_total", OF_MACHINES, 0)


EXTERNAL = {"annotations": {"machine.openshift.io/remediation-strategy": "external-baremetal"}}
WAYS: dict[str, tuple[Spelling, dict[str, Any]]] = {
    **{f"by template, {each.value}": (each, {"template": TEMPLATE}) for each in ALL},
    **{f"by its owner, {each.value}": (each, {}) for each in CLUSTER_API},
    "by annotation": (OPENSHIFT, {"metadata": EXTERNAL}),
    "by deletion": (OPENSHIFT, {}),
}


@pytest.mark.parametrize(("spelling", "spec"), WAYS.values(), ids=WAYS)
def test_every_way_to_remediate_a_machine_is_counted_once(spelling: Spelling, spec: dict[str, Any]) -> None:
    world = new_world(spelling)
    world.template()
    world.check_machines(**spec)
    world.spend(5.0)
    if "template" in spec:
        kept(world)
    world.silent()
    world.spend(120.0)
    has(world, "remediations_total", OF_MACHINES, 1)


PAUSES: dict[str, Callable[[Any], None]] = {
    "its annotation": lambda world: world.check_machines(metadata={"annotations": {PAUSED_MACHINE: ""}}),
    "its Cluster": lambda world: world.cluster(paused=True),
}


@pytest.mark.parametrize("pauses", PAUSES.values(), ids=PAUSES)
def test_a_machine_health_check_that_is_paused_is_blocked(pauses: Callable[[Any], None]) -> None:
    world = new_world(V1BETA2)
    world.check_machines()
    world.spend(5.0)
    status = world.body()["status"]
    pauses(world)
    world.api.patch("machinehealthchecks", "machines/workers", {"status": status})
    world.spend(5.0)
    has(world, "blocked", OF_MACHINES, 1)


@IN_EACH
def test_a_machine_health_check_of_another_controller_has_no_figures(spelling: Spelling) -> None:
    world = new_world(spelling)
    world.check_machines(metadata=OTHERS)
    world.api.patch("machinehealthchecks", "machines/workers", {"status": {"expectedMachines": 5}})
    world.spend(5.0)
    assert "MachineHealthCheck" not in figures(world)
