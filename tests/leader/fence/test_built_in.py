"""Methods that the leader itself has, and the numbers of the cluster that hold flows back."""

from __future__ import annotations

import pytest

from pp_hostd.leader.remedies.node_fence.draining import DrainPods
from pp_hostd.leader.remedies.node_fence.steps import BeginFence, ProbeStorage
from pp_hostd.leader.steps.workloads import FreeWorkloads
from tests.leader.fence.fence_world import IPMI, FenceWorld
from tests.leader.virtual_host import HOST


def a_world(isolation: str, **cluster: str) -> FenceWorld:
    world = FenceWorld()
    world.configure_cluster(**{"grace_timeout": "0s", "boot_timeout": "120s", "step_retries": "0", **cluster})
    world.configure(isolation, "confirm", "mark-schedulable")
    return world


def isolated(world: FenceWorld) -> bool:
    return world.is_at("Power-Management", "Running")


def passes(world: FenceWorld) -> int:
    return sum(isinstance(step, DrainPods) for _, step in world.done)


def test_a_taint_keeps_workloads_away_and_goes_once_the_node_is_well() -> None:
    world = a_world("taint")
    world.cut_off()
    world.fence()
    world.run(lambda: isolated(world))
    assert world.node(HOST).node.tainted and world.node(HOST).node.unschedulable
    assert world.pods[HOST] == 2, "a taint alone frees nothing"
    world.come_back()
    world.run(lambda: world.is_at("Recovery", "Final"))
    assert not world.node(HOST).node.tainted and not world.node(HOST).node.unschedulable


def test_a_drain_ends_once_the_kubelet_has_ended_the_pods() -> None:
    world = a_world("drain")
    world.report(HOST, "False")
    world.reached = False
    world.fence()
    world.run(lambda: isolated(world))
    assert world.free() and passes(world) == 2


def test_a_drain_waits_for_a_disruption_budget_and_fails_after_its_time() -> None:
    world = a_world("drain", drain_timeout="60s")
    world.report(HOST, "False")
    world.reached = False
    world.protect("the budget web allows no disruption")
    world.fence()
    world.run(lambda: passes(world) > 0)
    began_at = world.now
    world.run(lambda: "2 pods are left: the budget web allows no disruption" in str(world.found()))
    assert world.now - began_at >= 60.0
    assert world.pods[HOST] == 2


def test_a_drain_goes_on_when_the_budget_allows_it() -> None:
    world = a_world("drain")
    world.report(HOST, "False")
    world.reached = False
    world.protect("the budget web allows no disruption")
    world.fence()
    world.run(lambda: passes(world) > 1)
    world.protect("")
    world.run(lambda: isolated(world))
    assert world.free()


def test_pods_that_a_silent_kubelet_does_not_end_stay_when_the_time_of_a_drain_is_over() -> None:
    world = a_world("drain", drain_timeout="60s")
    world.cut_off()
    world.fence()
    world.run(lambda: isolated(world))
    assert world.pods[HOST] == 2, "they are evicted, and nothing proves that they have ended"


def test_a_drain_without_the_right_to_evict_fails() -> None:
    world = a_world("drain", drain_timeout="30s")
    world.refused.add(("evict", "Pod"))
    world.cut_off()
    world.fence()
    world.run(lambda: "no right to evict" in str(world.found()))


def test_a_dump_is_waited_for_and_frees_at_once() -> None:
    world = a_world("kdump mark-unschedulable", kdump="true", kdump_timeout="90s")
    world.cut_off()
    world.fence()
    world.run(lambda: world.is_at("Isolation", "Running"))
    began_at = world.now
    world.spend(30.0)
    world.crash()
    world.run(world.free)
    assert world.now - began_at < 90.0
    world.run(lambda: world.node(HOST).node.unschedulable and not world.is_at("Isolation", "Running"))
    assert world.now - began_at >= 90.0


def test_the_method_kdump_is_refused_where_nobody_listens() -> None:
    world = a_world("kdump")
    world.cut_off()
    world.fence()
    world.spend(30.0)
    assert world.is_at("Isolation", "New")
    assert any("needs kdump=true" in each.sentence for each in world.driver.next_actions)


def begun(world: FenceWorld) -> bool:
    return any(isinstance(step, BeginFence) for _, step in world.done)


def test_no_flow_begins_while_the_storage_does_not_answer() -> None:
    world = a_world("mark-unschedulable", storage_probe="192.0.2.50:3260")
    world.storage_answers = False
    world.cut_off()
    world.fence()
    world.spend(120.0)
    assert not begun(world)
    probes = [step for _, step in world.done if isinstance(step, ProbeStorage)]
    assert len(probes) > 1 and set(probes) == {ProbeStorage("192.0.2.50", 3260)}
    world.storage_answers = True
    world.run(lambda: begun(world))


@pytest.mark.parametrize(("share", "begins"), [("0", False), ("0%", False), ("1", True), ("100%", True)])
def test_so_many_nodes_may_be_silent(share: str, begins: bool) -> None:
    world = a_world("mark-unschedulable", max_non_responsive=share)
    world.cut_off()
    world.fence()
    world.spend(60.0)
    assert begun(world) is begins


def test_pods_are_freed_no_faster_than_the_cluster_wants() -> None:
    world = a_world("ipmi", pods_per_second="0.5")
    world.configure("mark-unschedulable", "ipmi", "mark-schedulable", ipmi={**IPMI, "action": "off"})
    world.cut_off()
    world.fence()
    world.run(world.free)
    (freed,) = {step.per_second for _, step in world.done if isinstance(step, FreeWorkloads)}
    assert freed == 0.5
