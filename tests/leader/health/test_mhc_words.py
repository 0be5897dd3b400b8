"""MachineHealthChecks tell people and other programs in the words of Cluster API's own controller."""

from __future__ import annotations

from pp_hostd.leader.requests.machine_health_checks.facts import MachineFacts, parse_machine_facts
from pp_hostd.model.keys import PAUSED_MACHINE
from tests.leader.health.mhc_world import MachinesWorld, new_world
from tests.leader.virtual_host import HOST


def worded(world: MachinesWorld, of_type: str) -> list[str]:
    """The messages of the host's condition, the newer list's first."""
    facts = parse_machine_facts(world.found_machine())
    assert isinstance(facts, MachineFacts)
    return [said[2] for each in facts.lists if (said := each.said(of_type)) is not None]


def test_a_machine_is_told_why_it_is_unhealthy() -> None:
    world = new_world()
    world.check_machines()
    world.silent()
    world.spend(60.0)
    newer, older = worded(world, "HealthCheckSucceeded")
    assert newer == f"Health check failed:\n  * {older}"
    assert older.startswith("Condition Ready on Node is reporting status Unknown with reason ")
    assert worded(world, "OwnerRemediated") == ["Waiting for remediation", ""]
    world.patch_machine(HOST, {"metadata": {"annotations": {"cluster.x-k8s.io/remediate-machine": ""}}})
    world.spend(60.0)
    assert worded(world, "HealthCheckSucceeded") == [
        "Health check failed: marked for remediation via cluster.x-k8s.io/remediate-machine annotation",
        "Marked for remediation via remediate-machine annotation",
    ]


def test_each_pause_is_told() -> None:
    world = new_world()
    world.cluster(paused=True)
    world.check_machines(metadata={"annotations": {PAUSED_MACHINE: ""}})
    world.spend(60.0)
    both = "Cluster spec.paused is set to true, MachineHealthCheck has the cluster.x-k8s.io/paused annotation"
    assert world.found().lists[0].said("Paused") == ("True", "Paused", both)
