"""Evidence counts for the boot, the definition and the time that it is of: what is older, or of others, frees nothing.

The virtual host raises FreedWhileRunning if its workloads are freed while it runs.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from pp_hostd.fencing.call import AgentCall, AgentReply
from pp_hostd.kube.resources import NODE_FENCES, NODE_REMEDY_CONFIGURATIONS
from pp_hostd.leader.remedies.node_fence.fence import fence_name
from pp_hostd.leader.steps.nodes import MarkFreeing
from pp_hostd.leader.steps.own_objects import HandOver, SpendBudget
from pp_hostd.leader.steps.workloads import FreeWorkloads
from pp_hostd.model.condemnation import Confirmation, NotRequested
from pp_hostd.model.control import Maintenance, Pause
from pp_hostd.model.keys import CONFIRMED_DEAD
from pp_hostd.model.moment import render_moment
from pp_hostd.model.promise import Withdrawn
from tests.leader.fence.fence_world import IPMI, SAN, FenceWorld
from tests.leader.fence.test_flow import a_world
from tests.leader.fence.test_methods_run import REPAIR, TERMINATE
from tests.leader.virtual_cluster import SINCE
from tests.leader.virtual_host import HOST

PAUSE = {"paused": Pause("anna", SINCE, "a look first").render()}


def a_word(boot: str = "boot-1") -> dict[str, str]:
    return {CONFIRMED_DEAD: Confirmation("anna", SINCE, boot).render()}


# Of another boot


def test_a_dump_of_an_earlier_boot_is_no_proof() -> None:
    """The host crashed, booted, and was well for an hour; then its network fails."""
    world = a_world(grace_timeout="1h", kdump="true")
    world.dumps = {"10.0.0.1": world.now}
    world.boot = world.booted = 2
    world.report(HOST, "True")
    world.spend(3600.0)
    world.cut_off()
    world.fence()
    world.spend(600.0)
    assert world.pods[HOST] == 2


def test_a_persons_word_about_an_earlier_boot_is_void() -> None:
    """Somebody has switched the host on since, and it is cut off again."""
    world = a_world(grace_timeout="300s")
    world.configure("mark-unschedulable", "confirm", "mark-schedulable")
    world.cut_off()
    world.fence()
    world.run(lambda: world.is_at("Isolation", "Done"))
    world.switch(False)
    world.annotate_node(HOST, **a_word())
    world.spend(10.0)
    world.boot_seconds = 20.0
    world.switch(True)
    world.booted = world.boot
    world.spend(25.0)
    world.cut_off()
    world.spend(900.0)
    assert world.pods[HOST] == 2
    assert "waits for a person" in world.next_action()


@pytest.mark.parametrize("by", ["abort", "retry"])
def test_a_marker_whose_proof_is_contradicted_frees_nothing_later(by: str) -> None:
    """A Node without a Machine, so that nobody can lift a condemnation of it."""
    world = FenceWorld(machines="openshift")
    world.by_ipmi()
    world.configure_cluster(grace_timeout="0s", boot_timeout="120s", step_retries="0", giveup_retries="0")
    world.api.put("machines", "machines/x", None)
    world.cut_off()
    world.fence()
    world.run(lambda: bool(world.steps(MarkFreeing)))
    world.boot_seconds = 5.0
    world.switch(True)
    world.booted = world.boot
    world.come_back()
    world.live()
    world.spend(30.0)
    assert world.node(HOST).node.freeing is None
    if by == "abort":
        world.api.put(NODE_FENCES.plural, fence_name(HOST), None)
    else:
        world.retry()
    world.spend(60.0)
    assert world.pods[HOST] == 2


def test_an_aborted_flow_that_has_begun_to_free_frees_nothing_more_without_a_machine() -> None:
    world = FenceWorld(machines="openshift")
    world.by_ipmi()
    world.configure_cluster(grace_timeout="0s")
    world.api.put("machines", "machines/x", None)
    world.cut_off()
    world.fence()
    world.run(lambda: world.node(HOST).node.freeing is not None)
    world.api.put(NODE_FENCES.plural, fence_name(HOST), None)
    world.spend(300.0)
    assert world.pods[HOST] == 2


# Of another definition


class CannotStart(FenceWorld):
    """The agent's file can't be read, so that Python ends with the code that means "off"."""

    async def run_agent(self, call: AgentCall) -> AgentReply:
        self.calls.append((call.agent, dict(call.parameters)["action"]))
        return AgentReply(2, "python3: can't open file '/usr/sbin/fence_ipmilan': Permission denied", "")


def test_an_agent_that_can_not_start_says_nothing() -> None:
    world = CannotStart()
    world.by_ipmi()
    world.configure_cluster(grace_timeout="0s", giveup_retries="0")
    world.cut_off()
    world.fence()
    world.run(lambda: "gave up" in world.next_action(), 3600)
    assert "could not switch it off" in world.next_action()
    assert world.pods[HOST] == 2


def test_a_plug_that_is_corrected_after_its_method_has_run_is_asked_itself() -> None:
    world = a_world(grace_timeout="0s", giveup_retries="0")
    world.mode = "wrong plug"
    world.cut_off()
    world.fence()
    world.run(lambda: ("fence_ipmilan", "off") in world.calls)
    world.spend(3.0)
    world.mode = "obeys"
    mended = {**IPMI, "ip": "192.0.2.99", "fences": "none", "action": "reboot"}
    world.configure("mark-unschedulable", "ipmi", "mark-schedulable", ipmi=mended)
    calls = len(world.calls)
    world.spend(200.0)
    assert ("fence_ipmilan", "off") in world.calls[calls:]
    assert world.pods[HOST] == 2, "it says of itself that it fences nothing"


def edited_remedy(world: FenceWorld, **more: Any) -> None:
    configuration = world.api.get(NODE_REMEDY_CONFIGURATIONS.plural, "workers")
    assert configuration is not None
    configuration["spec"]["remedyConfigs"][0].update(more)
    world.api.put(NODE_REMEDY_CONFIGURATIONS.plural, "workers", configuration)


def test_a_job_proves_only_what_its_remedy_said_when_it_was_made() -> None:
    world = a_world(grace_timeout="0s")
    world.cut_off()
    remedy = {"name": "repair", "period": "3m", "clean-resource": True}
    world.threshold("Ready", "Unknown", remedy1=remedy, remedyConfigs=[REPAIR])
    world.run(lambda: bool(world.jobs()))
    edited_remedy(world, fences="power")
    world.spend(30.0)
    assert len(world.jobs()) == 1, "it may still run, so no other one begins"
    world.end_job()
    world.run(lambda: len(world.jobs()) == 2)
    assert world.pods[HOST] == 2


def test_a_job_that_somebody_else_has_made_proves_nothing() -> None:
    world = a_world(grace_timeout="0s", executor="job", agent_image="example.com/agents:1")
    world.cut_off()
    world.fence()
    world.run(lambda: bool(world.jobs()))
    key = list(world.api.objects["jobs"])[-1]
    metadata = {"name": key.rpartition("/")[2], "namespace": "pp-hostd"}
    complete = {"conditions": [{"type": "Complete", "status": "True"}]}
    world.api.put("jobs", key, None)
    world.api.put("jobs", key, {"metadata": metadata, "spec": {"template": {}}, "status": complete})
    world.spend(30.0)
    assert world.pods[HOST] == 2
    assert len(world.jobs()) == 2, "the method has failed, and is tried again"


@pytest.mark.parametrize(("age_seconds", "frees"), [(60, True), (600, False)])
def test_a_job_that_has_been_complete_for_long_proves_nothing(age_seconds: int, frees: bool) -> None:
    world = a_world(grace_timeout="0s")
    world.cut_off()
    remedy = {"name": "terminate", "clean-resource": True}
    world.threshold("Ready", "Unknown", remedy1=remedy, remedyConfigs=[TERMINATE])
    world.run(lambda: bool(world.jobs()))
    world.switch(False)
    key = list(world.api.objects["jobs"])[-1]
    since = render_moment(SINCE - timedelta(seconds=age_seconds))
    complete = {"type": "Complete", "status": "True", "lastTransitionTime": since}
    world.api.patch("jobs", key, {"status": {"conditions": [complete]}})
    world.spend(50.0)
    assert world.free() is frees
    assert len(world.jobs()) == (1 if frees else 2)


# Of another time


def test_a_proof_that_a_pause_has_made_old_is_found_anew() -> None:
    """A person gives the storage back during the pause."""
    world = a_world(grace_timeout="0s", giveup_retries="0")
    world.configure("san-off", "confirm", "", san_off={**SAN, "action": "off"})
    world.report(HOST, "False")
    world.fence()
    world.run(lambda: not world.port)
    world.order(PAUSE)
    world.spend(3600.0)
    assert not world.steps(FreeWorkloads)
    world.port = True
    calls = len(world.calls)
    world.order({})
    world.run(lambda: bool(world.steps(FreeWorkloads)))
    assert ("fence_brocade", "off") in world.calls[calls:]
    assert not world.port


def test_a_kubelet_that_renews_seldom_is_silent_later() -> None:
    """Every 30 s, as it does with a Lease of two minutes. The plug is another host's."""
    world = a_world(giveup_retries="0", step_retries="0", grace_timeout="0s")
    world.renews_slowly(120)
    world.mode = "wrong plug"
    world.report(HOST, "False")
    world.fence()
    world.spend(600.0)
    assert world.pods[HOST] == 2


# Limits that hold in the middle


def test_a_host_whose_request_was_carried_out_by_a_persons_word_is_not_reset_again() -> None:
    """`confirm-dead` makes a request, too."""
    world = a_world(grace_timeout="0s")
    world.configure("mark-unschedulable", "confirm", "mark-schedulable")
    world.cut_off()
    world.fence()
    world.run(lambda: "waits for a person" in world.next_action())
    world.switch(False)
    world.request()
    world.annotate_node(HOST, **a_word())
    world.run(world.free)
    world.switch(True)
    world.run(lambda: world.is_at("Recovery", "Final"))
    assert isinstance(world.condemnation(), NotRequested)


@pytest.mark.parametrize("how", ["broken", "deleted"])
def test_a_ladder_that_is_broken_or_gone_becomes_no_power_cycle(how: str) -> None:
    world = a_world(grace_timeout="300s")
    world.cut_off()
    world.threshold("Ready", "Unknown", remedy1={"name": "repair"}, remedyConfigs=[REPAIR])
    world.run(lambda: bool(world.jobs()))
    configuration = world.api.get(NODE_REMEDY_CONFIGURATIONS.plural, "workers")
    assert configuration is not None
    configuration["spec"]["thresholdConfigs"][0]["nodeConditionPeriod"] = "five"
    world.api.put(NODE_REMEDY_CONFIGURATIONS.plural, "workers", configuration if how == "broken" else None)
    world.end_job()
    world.spend(1200.0)
    assert not world.calls
    assert "pp-leader fence abort x" in world.next_action()


def test_nobody_is_switched_off_in_a_storm_that_comes_after_the_isolation() -> None:
    world = a_world(grace_timeout="300s")
    world.cut_off()
    world.fence()
    world.run(lambda: world.is_at("Isolation", "Done"))
    for name in world.peers:
        world.report(name, "Unknown")
    world.spend(600.0)
    assert not world.calls
    assert "max_non_responsive is" in world.next_action()
    for name in world.peers:
        world.report(name, "True")
    world.run(world.free)


def test_a_leader_that_comes_to_lead_on_the_very_host_gives_its_lease_up() -> None:
    world = a_world(grace_timeout="30s")
    world.cut_off()
    world.fence()
    world.run(lambda: world.is_at("Isolation", "Done"))
    world.a_term(HOST)
    world.api.new_leader()
    world.run(lambda: any(isinstance(step, HandOver) for _, step, _ in world.under_way))
    assert not world.calls


@pytest.mark.parametrize("own", [False, True])
def test_no_flow_begins_in_maintenance(own: bool) -> None:
    world = a_world(grace_timeout="0s")
    order = Maintenance("eve", SINCE, "new switch", SINCE + timedelta(hours=1))
    if own:
        world.state(Withdrawn("boot-1", order))
    else:
        world.order({"maintenance": order.render()})
    world.cut_off()
    world.fence()
    world.spend(200.0)
    assert not world.calls
    assert "in maintenance by eve" in world.next_action()


def test_a_flow_whose_isolation_switches_the_host_off_is_counted() -> None:
    world = a_world(grace_timeout="300s")
    described = "\n".join(f"{key}={value}" for key, value in {**IPMI, "action": "reboot"}.items())
    lists = {"config.properties": "isolation=ipmi", "fence-method-ipmi": described}
    world.config_map(f"fence-config-{HOST}", lists)
    world.cut_off()
    world.fence()
    world.run(lambda: world.is_at("Recovery", "Final"), 3600)
    assert len(world.steps(SpendBudget)) == 1


# Methods and their rungs


def test_a_reboot_on_a_ladder_waits_not_between_off_and_on_and_the_next_rung_frees() -> None:
    world = a_world(grace_timeout="0s")
    world.configure(ipmi={**IPMI, "action": "reboot"})
    world.cut_off()
    world.threshold(
        "Ready",
        "Unknown",
        remedy1={"name": "ipmi", "period": "3m"},
        remedy2={"name": "terminate", "clean-resource": True},
        remedyConfigs=[TERMINATE],
    )
    world.run(lambda: not world.power)
    off_at = world.now
    world.run(lambda: world.power)
    assert world.now - off_at < 30.0
    world.back_at = None  # it does not come back
    world.run(lambda: bool(world.jobs()))
    assert world.now - off_at >= 180.0
    world.switch(False)
    world.end_job()
    world.run(world.free)


def test_a_retried_flow_of_a_node_that_is_well_gives_back_what_was_switched_off() -> None:
    world = a_world(grace_timeout="0s", giveup_retries="0", step_retries="0")
    world.configure(
        "net-off", "ipmi", "net-on mark-schedulable",
        net_off={"agent_name": "fence_ifmib", "ip": "192.0.2.1", "action": "off"},
        net_on={"agent_name": "fence_ifmib", "ip": "192.0.2.1", "action": "on"},
        ipmi={**IPMI, "action": "reboot"},
    )  # fmt: skip
    world.cut_off()
    world.fence()
    world.run(lambda: not world.port)
    world.mode = "silent"
    world.run(lambda: "gave up" in world.next_action(), 3600)
    world.mode = "obeys"
    world.come_back()
    world.reached = True
    world.spend(60.0)
    world.retry()
    world.run(lambda: world.is_at("Recovery", "Final"))
    assert world.port


class Talkative(FenceWorld):
    """Its device fails, and tells all that it was given."""

    async def run_agent(self, call: AgentCall) -> AgentReply:
        self.calls.append((call.agent, dict(call.parameters)["action"]))
        return AgentReply(1, f"refused: {dict(call.parameters)}", "")


def test_no_value_of_a_secret_is_shown_whatever_its_parameter_is_called() -> None:
    world = Talkative()
    method = {"agent_name": "fence_ipmilan", "ip": "192.0.2.7", "username_secret": "bmc/password"}
    world.configure("", "ipmi", "", ipmi=method)
    world.configure_cluster(grace_timeout="0s", giveup_retries="0", step_retries="0")
    world.cut_off()
    world.fence()
    world.run(lambda: "gave up" in world.next_action(), 3600)
    assert "refused:" in world.next_action()
    assert "hunter2" not in str(world.api.get(NODE_FENCES.plural, fence_name(HOST))) + world.next_action()
