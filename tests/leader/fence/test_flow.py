"""A flow from its NodeFence to its end: what each method does, what is freed, and by which proof."""

from __future__ import annotations

from typing import Any

import pytest

from pp_hostd.fencing.call import AgentCall, AgentReply
from pp_hostd.leader.plan.view import Electorates, Target, View
from pp_hostd.leader.remedies.node_fence import NODE_FENCE
from pp_hostd.leader.remedies.node_fence.memory import LEAST_SILENT_SECONDS
from pp_hostd.leader.remedies.node_fence.steps import NoteBoot
from pp_hostd.leader.steps.nodes import MarkFreeing
from pp_hostd.leader.steps.workloads import FreeWorkloads
from pp_hostd.model.node import Node, parse_node
from pp_hostd.sim.fences import EDITS
from tests.leader.fence.fence_world import IPMI, MOMENT, SAN, FenceWorld
from tests.leader.health.checked import FOREIGN
from tests.leader.virtual_host import HOST


def a_world(**cluster: str) -> FenceWorld:
    world = FenceWorld()
    world.by_ipmi()
    world.configure_cluster(**{"grace_timeout": "30s", "boot_timeout": "120s", **cluster})
    return world


def test_a_host_that_is_cut_off_is_switched_off_freed_and_switched_on_again() -> None:
    world = a_world()
    world.cut_off()
    world.fence()
    world.run(world.free)
    assert not world.power, "its workloads are freed while it is off"
    world.run(lambda: world.power)
    assert world.node(HOST).node.unschedulable
    world.run(lambda: world.is_at("Recovery", "Final"))
    world.run(lambda: world.found() is None)
    assert not world.marks(world.api.get("nodes", HOST) or {})
    assert not world.node(HOST).node.unschedulable


def test_nothing_is_freed_before_the_kubelet_was_silent_for_two_periods() -> None:
    world = a_world(grace_timeout="0s")
    world.cut_off()
    world.fence()
    world.run(lambda: not world.power)
    off_at = world.now
    world.run(world.free)
    assert world.now >= min(off_at, 1000.0) + LEAST_SILENT_SECONDS


def test_a_node_that_is_well_before_anything_ran_loses_its_fence() -> None:
    world = a_world()
    world.fence()
    world.run(lambda: world.found() is None)
    assert not world.calls
    assert not world.node(HOST).node.unschedulable


@pytest.mark.parametrize("claim", EDITS, ids=str)
def test_a_fence_that_no_leader_has_begun_begins_at_its_beginning_whatever_it_claims(claim: dict[str, Any]) -> None:
    """There the limits hold it, this one among them: a new leader begins nothing yet."""
    world = a_world()
    world.cut_off()
    world.fence(**claim)
    world.spend(world.settings.leader.start_grace_seconds - 1)
    assert "this leader has just begun" in world.next_action()
    assert not world.calls
    world.run(lambda: world.is_at("Isolation", "Done"))


def test_a_node_that_becomes_well_after_its_isolation_is_recovered_without_a_power_cycle() -> None:
    world = a_world()
    world.cut_off()
    world.fence()
    world.run(lambda: world.is_at("Isolation", "Done"))
    assert world.node(HOST).node.unschedulable
    world.come_back()
    world.run(lambda: world.is_at("Recovery", "Final"))
    world.run(lambda: world.found() is None)
    assert not world.calls
    assert not world.node(HOST).node.unschedulable
    assert not world.steps(FreeWorkloads)


def test_a_host_that_is_well_is_not_switched_off_because_the_watch_is_late() -> None:
    world = a_world(grace_timeout="10s")
    world.cut_off()
    world.fence()
    world.run(lambda: world.is_at("Isolation", "Done"))
    world.watch_is_late = True
    world.reached = True
    world.come_back()
    world.spend(60)
    assert "not yet, its Node is Ready, and the watch of Nodes is late" in world.next_action()
    world.watch_is_late = False
    world.run(lambda: world.is_at("Recovery", "Final"))
    assert ("fence_ipmilan", "off") not in world.calls


def test_an_off_that_is_accepted_and_never_done_frees_nothing_and_ends_in_an_error() -> None:
    world = a_world(giveup_retries="1")
    world.mode = "lies"
    world.cut_off()
    world.fence()
    world.run(lambda: "gave up" in world.next_action(), 3600)
    assert world.pods[HOST] == 2
    fence = world.found()
    assert fence is not None
    assert fence.progress.gave_up
    assert "its status is on" in fence.progress.reason
    assert fence.progress.restarts == 1
    assert ("fence_ipmilan", "on") not in world.calls
    assert world.node(HOST).node.unschedulable, "the cordon stays"


def test_a_bmc_that_does_not_answer_frees_nothing() -> None:
    world = a_world(giveup_retries="0")
    world.mode = "silent"
    world.cut_off()
    world.fence()
    world.run(lambda: "gave up" in world.next_action(), 3600)
    assert "Connection timed out" in world.next_action()
    assert world.pods[HOST] == 2


def test_the_power_of_another_host_proves_nothing_while_the_kubelet_lives() -> None:
    """DiskPressure, say: its kubelet lives, and the plug in the configuration is another host's."""
    world = a_world(giveup_retries="0", step_retries="0", grace_timeout="0s")
    world.mode = "wrong plug"
    world.report(HOST, "False")
    world.fence()
    world.run(lambda: "gave up" in world.next_action(), 3600)
    assert world.pods[HOST] == 2
    assert "see that the method switches this very host" in world.next_action()


@pytest.mark.parametrize("another_leads", [False, True])
def test_a_device_that_called_a_living_host_dead_is_not_believed_once_the_host_is_cut_off(another_leads: bool) -> None:
    world = refuted()
    world.cut_off()
    if another_leads:
        world.a_term("b")
    before = len(world.calls)
    world.run(lambda: "gave up" in world.next_action(), 3600)
    assert world.pods[HOST] == 2
    assert world.calls[before:] == [], "nor does the leader switch another host off again"
    assert "called this host dead which was heard since" in world.next_action()


def test_a_device_is_believed_again_by_a_persons_word() -> None:
    world = refuted()
    world.cut_off()
    world.run(lambda: "gave up" in world.next_action(), 3600)
    world.mode = "obeys"
    world.retry()
    world.run(world.free)
    assert not world.power


def refuted() -> FenceWorld:
    """Its method has switched another host off."""
    world = a_world(giveup_retries="1", grace_timeout="0s")
    world.mode = "wrong plug"
    world.report(HOST, "False")
    world.fence()

    def is_refuted() -> bool:
        fence = world.found()
        return fence is not None and fence.progress.refuted == ("ipmi",)

    world.run(is_refuted)
    return world


def test_a_storage_fence_gives_nothing_back_to_the_boot_whose_workloads_were_freed() -> None:
    world = a_world(grace_timeout="0s")
    world.configure(
        "san-off", "ipmi", "san-on mark-schedulable",
        ipmi={**IPMI, "action": "reboot"}, san_off={**SAN, "action": "off"}, san_on={**SAN, "action": "on"},
    )  # fmt: skip
    world.cut_off()
    world.fence()
    world.run(world.free)
    assert not world.port
    world.run(lambda: world.power)
    assert not world.port
    world.come_back()
    world.run(lambda: world.is_at("Recovery", "Final"))
    assert world.port


def test_a_new_leader_resumes_wherever_the_old_one_died() -> None:
    steps = 0
    while True:
        world = a_world(grace_timeout="0s")
        world.cut_off()
        world.fence()
        world.spend(600.0, lambda world=world, steps=steps: len(world.done) >= steps)  # type: ignore[misc]
        over = world.is_at("Recovery", "Final")
        world.a_term("b")
        world.api.new_leader()
        world.run(lambda world=world: world.is_at("Recovery", "Final"))  # type: ignore[misc]
        assert world.boot == 2, f"it was switched off and on once, after {steps} steps"
        assert world.calls.count(("fence_ipmilan", "on")) == 1
        assert world.free()
        if over:
            break
        steps += 1
    assert steps > 20


def test_a_storage_fence_keeps_new_pods_away_and_evicts_none() -> None:
    """By its taint Kubernetes itself would evict those on other storage, too."""
    world = a_world(grace_timeout="0s")
    world.configure("san-off", "", "", san_off={**SAN, "action": "off"})
    world.cut_off()
    world.fence()
    world.run(lambda: world.is_at("Isolation", "Done"))
    node = parse_node(world.api.get("nodes", HOST))
    assert isinstance(node, Node)
    assert (node.unschedulable, node.tainted) == (True, False)


def test_a_boot_that_only_its_agent_has_stated_does_not_get_the_storage_back_either() -> None:
    """The host has booted again by itself before its workloads were freed, and its kubelet reports that later."""
    world = a_world(grace_timeout="0s", boot_timeout="60s", giveup_retries="0")
    world.configure(
        "san-off", "", "san-on mark-schedulable",
        san_off={**SAN, "action": "off"}, san_on={**SAN, "action": "on"},
    )  # fmt: skip
    world.cut_off()
    world.fence()
    world.run(lambda: not world.port)
    world.boot = 2
    world.state(world.a_promise())
    world.run(lambda: world.is_at("Isolation", "Done"))
    world.come_back()
    world.run(lambda: "gave up" in world.next_action(), 3600)
    assert not world.port
    assert "has not booted since its workloads were freed" in world.next_action()


class FailsLate(FenceWorld):
    """The first off is done, and the agent can't say so."""

    async def run_agent(self, call: AgentCall) -> AgentReply:
        first = ("fence_ipmilan", "off") not in self.calls
        reply = await super().run_agent(call)
        fails = first and dict(call.parameters)["action"] == "off"
        return AgentReply(1, "Lost connection", "") if fails else reply


def test_a_method_that_is_tried_again_first_has_the_device_tell_how_things_stand() -> None:
    world = FailsLate()
    world.by_ipmi()
    world.configure_cluster(grace_timeout="0s")
    world.cut_off()
    world.fence()
    world.run(world.free)
    assert [action for _, action in world.calls] == ["status", "off", "status", "off", "status"]


class ComesBackTooLate(FenceWorld):
    """It becomes Ready just before its BMC switches it off, and the agent can't say that it was done."""

    async def run_agent(self, call: AgentCall) -> AgentReply:
        if dict(call.parameters)["action"] != "off" or ("fence_ipmilan", "off") in self.calls:
            return await super().run_agent(call)
        self.come_back()
        await super().run_agent(call)
        return AgentReply(1, "Lost connection", "")


def test_a_host_that_was_switched_off_is_not_well_though_its_node_is_still_called_ready() -> None:
    world = ComesBackTooLate()
    world.by_ipmi()
    world.configure_cluster(grace_timeout="0s")
    world.cut_off()
    world.fence()
    world.run(lambda: world.is_at("Recovery", "Final"))
    assert world.power
    assert world.free()


def test_nothing_is_freed_if_an_agent_is_heard_after_the_proof_though_its_kubelet_is_not() -> None:
    """Somebody has powered the host on by hand, its agent has opened the gate, and then its network fails."""
    world = a_world(grace_timeout="0s")
    world.cut_off()
    world.fence()
    world.run(lambda: bool(world.steps(NoteBoot)))
    world.switch(True)
    world.back_at = None
    world.state(world.a_promise())
    world.spend(20.0)
    assert not world.steps(MarkFreeing)
    assert world.pods[HOST] == 2


class LosesLease(FenceWorld):
    """The Lease ends while an agent reads the power of the host."""

    async def run_agent(self, call: AgentCall) -> AgentReply:
        reply = await super().run_agent(call)
        self.acting_until_at = self.now
        return reply


def test_a_leader_that_loses_its_lease_while_an_agent_runs_starts_no_other_one() -> None:
    world = LosesLease()
    world.by_ipmi()
    world.configure_cluster(grace_timeout="0s")
    world.cut_off()
    world.fence()
    world.spend(300.0)
    assert world.calls == [("fence_ipmilan", "status")]
    assert world.power


def test_a_kernel_that_has_crashed_frees_its_workloads_while_its_dump_is_saved() -> None:
    world = a_world(kdump="true", kdump_timeout="90s")
    world.cut_off()
    world.fence()
    world.run(lambda: world.is_at("Isolation", "Done"))
    world.crash()
    crashed_at = world.now
    world.run(world.free)
    assert not world.calls, "and nothing is switched off yet"
    world.run(lambda: bool(world.calls))
    assert world.now - crashed_at >= 90.0
    world.run(lambda: world.is_at("Recovery", "Final"))


def test_messages_of_a_kernel_prove_nothing_where_nobody_wants_them_or_the_kubelet_lives() -> None:
    world = a_world(grace_timeout="1h")
    world.configure("mark-unschedulable", "", "")
    world.cut_off()
    world.fence()
    world.dumps = {"10.0.0.1": world.now + 20}
    world.spend(300.0)
    assert world.pods[HOST] == 2
    world.configure_cluster(grace_timeout="1h", kdump="true")
    world.kubelet = True
    world.spend(300.0)
    assert world.pods[HOST] == 2


def test_explain_says_how_far_a_flow_is() -> None:
    world = a_world()
    world.cut_off()
    world.fence()
    world.run(lambda: world.is_at("Isolation", "Done"))
    assert explained(world) == ["NodeFence node-fence-x is running (Isolation Done): a person's request."]
    world.edit(metadata={"deletionTimestamp": MOMENT, "finalizers": ["example.com/keep"]})
    told = "NodeFence node-fence-x is deleted, and a finalizer keeps it. Until it is gone no flow begins."
    assert explained(world) == [told]


def explained(world: FenceWorld) -> list[str]:
    view = View.of_target(world.settings, world.observed(), Electorates(None), world.driver.term, Target(HOST, HOST), 0)
    return NODE_FENCE.explained(view)


def test_a_condition_that_somebody_else_has_written_stays_as_it_is() -> None:
    world = a_world()
    world.cut_off()
    world.fence(conditions=[FOREIGN])
    world.run(lambda: world.is_at("Recovery", "Final"))
    body = world.api.get("nodefences", f"node-fence-{HOST}")
    assert body is not None
    assert FOREIGN in body["conditions"]
    assert {each["type"] for each in body["conditions"]} == {"Fenced", "Recovered", FOREIGN["type"]}
