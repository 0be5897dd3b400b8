"""Hosts that are not switched off, or whose power is not believed: nothing is written to them, and people hear why."""

from __future__ import annotations

from typing import Any

import pytest

from pp_hostd.leader.remedies.power_cycle.steps import SwitchOff, SwitchOn
from pp_hostd.leader.steps.nodes import DeleteNode
from pp_hostd.leader.steps.own_objects import HandOver
from pp_hostd.model.keys import DETACHED_HOST, PAUSED_HOST, PAUSED_MACHINE, SKIP_REMEDIATION
from pp_hostd.model.step import Written
from tests.leader.power.powered import HOST, HOST_NAME, KEY, Bmc, PoweredWorld

HOST_TROUBLES: list[tuple[dict[str, Any], str]] = [
    ({"metadata": {"annotations": {PAUSED_HOST: ""}}}, PAUSED_HOST),
    ({"metadata": {"annotations": {DETACHED_HOST: "{}"}}}, DETACHED_HOST),
    ({"metadata": {"deletionTimestamp": "2026-03-01T00:00:00Z", "finalizers": ["metal3.io/host"]}}, "being deleted"),
    ({"spec": {"disablePowerOff": True}}, "spec.disablePowerOff"),
    ({"spec": {"online": False}}, "spec.online is false"),
    ({"status": {"provisioning": {"state": "inspecting"}}}, "its state is inspecting"),
    ({"status": {"poweredOn": None}}, "has not reported yet"),
    ({"spec": {"consumerRef": {"kind": "Machine", "namespace": "machines", "name": "b"}}}, "machines/b"),
    ({"metadata": {"annotations": {KEY: '{"mode":"hard"}'}}}, "Somebody else uses that annotation"),
    ({"metadata": {"annotations": {KEY: ""}}}, "Somebody else uses that annotation"),
]


@pytest.mark.parametrize(("change", "told"), HOST_TROUBLES, ids=[told for _, told in HOST_TROUBLES])
def test_a_host_that_can_not_be_relied_on_is_refused_with_the_reason(change: dict[str, Any], told: str) -> None:
    world = PoweredWorld()
    world.bmc = Bmc.UNATTENDED
    world.change_host(**change)
    world.request()
    assert told in world.held()
    assert all(next_action.refused for next_action in world.driver.next_actions)
    assert world.steps() == []


@pytest.mark.parametrize("key", [PAUSED_MACHINE, SKIP_REMEDIATION])
def test_the_host_of_a_machine_whose_owner_wants_no_remediation_is_not_switched_off(key: str) -> None:
    world = PoweredWorld()
    world.annotate_machine(world.machine_key, **{key: ""})
    world.request()
    assert key in world.held()
    assert not world.steps(SwitchOff)


def test_the_host_of_a_node_with_finalizers_is_not_switched_off() -> None:
    world = PoweredWorld()
    world.api.patch("nodes", HOST, {"metadata": {"finalizers": ["example.com/guard"]}})
    world.request()
    assert "its Node has finalizers, which block a deletion (example.com/guard)" in world.held()
    assert world.steps() == []


@pytest.mark.parametrize(("change", "told"), HOST_TROUBLES[:4], ids=[told for _, told in HOST_TROUBLES[:4]])
def test_power_that_reads_off_is_no_proof_once_nobody_looks_after_it(change: dict[str, Any], told: str) -> None:
    world = PoweredWorld()
    world.request()
    world.run(lambda: bool(world.steps(SwitchOff)))
    world.bmc = Bmc.UNATTENDED
    world.change_host(status={"poweredOn": False}, **change)  # which is not true
    assert told in world.held()
    assert not world.steps(DeleteNode)


@pytest.mark.parametrize(
    ("provider", "annotation", "told"),
    [
        ("baremetalhost:///metal/gone/uid", None, "there is no BareMetalHost metal/gone"),
        ("baremetalhost:///metal/x/another-uid", None, "its host was replaced"),
        ("baremetalhost:///elsewhere/x", None, "there is no BareMetalHost elsewhere/x"),
        ("baremetalhost:///metal", None, "spec.providerID"),
        ("metal3://no-such-uid", None, "there is no BareMetalHost of uid no-such-uid"),
        (None, "not a name", "metal3.io/BareMetalHost"),
    ],
)
def test_a_machine_whose_host_is_not_found_is_refused(provider: str | None, annotation: str | None, told: str) -> None:
    world = PoweredWorld()
    world.stands_on(provider, annotation)
    world.request()
    assert told in world.held()
    assert world.steps() == []


def test_a_host_that_two_machines_claim_is_touched_for_neither() -> None:
    world = PoweredWorld()
    world.api.patch("machines", "machines/b", {"spec": {"providerID": "metal3://metal/x/b"}})
    world.request()
    world.request("machines/b")
    assert "claimed by machines/b too" in world.held()
    assert "claimed by machines/x too" in world.next_action("b")
    assert world.steps() == []


def test_a_host_that_is_kept_off_for_another_machine_is_not_let_on() -> None:
    world = PoweredWorld()
    world.request()
    world.run(lambda: not world.powered)
    world.stands_on("baremetalhost:///metal/other")
    world.api.patch("machines", "machines/b", {"spec": {"providerID": "baremetalhost:///metal/x/host-x"}})
    world.request("machines/b")
    world.bmc = Bmc.UNATTENDED
    world.spend(5)
    assert "is kept off for Machine machines/x" in world.next_action("b")
    assert not world.steps(DeleteNode)


@pytest.mark.parametrize("asked", [True, False])
def test_what_was_switched_off_for_a_machine_that_was_made_anew_proves_nothing_for_that_one(asked: bool) -> None:
    world = PoweredWorld(enrolled=False)
    world.request()
    world.run(lambda: not world.powered)
    world.api.patch("machines", world.machine_key, {"metadata": {"uid": "another"}})
    if not asked:
        world.lift()
    world.run(lambda: bool(world.steps(SwitchOn)))
    assert not world.steps(DeleteNode)
    world.run(lambda: world.is_well() and world.uncondemned())


def test_what_the_watch_tells_late_is_read_once_more_before_a_node_is_deleted() -> None:
    world = PoweredWorld(enrolled=False)
    world.request()
    world.run(lambda: world.host.powered_on is False)
    watch, off = world.api.watch_of("hosts"), world.api.get("hosts", HOST_NAME)
    assert off is not None
    seen, world.bmc = watch.keep(off), Bmc.UNATTENDED
    world.annotate_host(KEY, None)
    world.switch(True)
    world.running = True
    world.change_host(status={"poweredOn": True})
    watch.show(seen)
    world.spend(30)
    assert not world.steps(DeleteNode)


def test_a_node_that_names_another_machine_is_not_deleted() -> None:
    world = PoweredWorld()
    world.annotate_node(HOST, **{"machine.openshift.io/machine": "machines/b"})
    world.request()
    assert (
        "names machines/b" in "; ".join(next_action.sentence for next_action in world.driver.next_actions)
        or world.held()
    )
    assert not world.steps(DeleteNode, SwitchOff)


def test_a_host_that_is_off_already_proves_nothing_and_is_switched_off_once_it_is_on() -> None:
    world = PoweredWorld()
    world.bmc = Bmc.UNATTENDED
    world.change_host(status={"poweredOn": False})  # a stale reading: it is on
    world.request()
    assert "not by our request" in world.held()
    world.bmc = Bmc.WORKS
    world.run(world.is_well)
    assert world.boot == 2


def test_a_leader_does_not_switch_its_own_host_off() -> None:
    world = PoweredWorld()
    world.a_term(HOST)
    world.request()
    world.run(lambda: bool(world.steps(HandOver)))
    assert not world.steps(SwitchOff)


def test_a_pause_holds_the_switching_off_and_not_the_restoring() -> None:
    world = PoweredWorld()
    world.request()
    world.run(lambda: bool(world.steps(DeleteNode)))
    world.order({"paused": '{"v":1,"who":"eve","when":"2026-03-01T00:00:00Z","why":"works"}'})
    world.run(world.is_well)
    world.request()
    assert "paused by eve" in world.held()
    assert len(world.steps(SwitchOff)) == 1


def test_no_more_hosts_are_switched_off_at_once_than_allowed() -> None:
    world = PoweredWorld()
    for name in ("a", "b", "c", "d"):
        world.api.put(
            "hosts",
            f"metal/{name}",
            {
                "metadata": {"name": name, "namespace": "metal", "uid": f"host-{name}"},
                "spec": {"online": True},
                "status": {"poweredOn": True, "provisioning": {"state": "provisioned"}},
            },
        )
        world.api.patch("machines", f"machines/{name}", {"spec": {"providerID": f"baremetalhost:///metal/{name}"}})
        world.request(f"machines/{name}")
    world.request()
    world.a_term("leader-host")
    world.bmc = Bmc.UNATTENDED
    world.spend(60)
    assert len(world.steps(SwitchOff)) == world.settings.leader.max_at_once
    assert "leader.max_at_once" in "; ".join(next_action.sentence for next_action in world.driver.next_actions)


def test_a_request_that_is_taken_back_in_time_switches_nothing_off() -> None:
    world = PoweredWorld()
    world.request()
    world.lift()
    world.spend(60)
    assert world.steps() == []


def test_a_host_of_which_nothing_else_is_known_any_more_is_let_on_again_and_tried_with_a_pause() -> None:
    world = PoweredWorld(enrolled=False)
    world.delete_node(HOST)
    world.api.patch("machines", world.machine_key, {"status": {"nodeRef": None}})
    world.request()
    world.run(lambda: not world.powered)
    world.api.put("machines", world.machine_key, None)
    world.run(lambda: bool(world.under_way))
    world.fail(Written.NOT_DONE)
    world.driver.turn()
    assert [next_action.of for next_action in world.driver.next_actions] == [f"BareMetalHost {HOST_NAME}"]
    assert not world.under_way
    world.run(lambda: world.powered)


def test_a_host_of_a_machine_that_is_gone_is_let_on_again() -> None:
    world = PoweredWorld()
    world.request()
    world.run(lambda: bool(world.steps(SwitchOff)))
    world.run(lambda: not world.powered)
    world.api.put("machines", world.machine_key, None)
    world.run(lambda: world.powered)
    assert [step.host for step in world.steps(SwitchOn) if isinstance(step, SwitchOn)] == [HOST_NAME]


ACTUATORS_KEY = "reboot.metal3.io/capbm-requested-power-off"
MARKS = ["powered-off-for-remediation", "node-annotations-backup", "node-labels-backup", "power-on-will-timeout-at"]


def the_actuator_acts(world: PoweredWorld, mark: str) -> None:
    if mark == ACTUATORS_KEY:
        world.annotate_host(mark, '{"mode":"hard","force":false}')
    else:
        world.annotate_machine(world.machine_key, **{f"remediation.metal3.io/{mark}": ""})


@pytest.mark.parametrize("mark", [ACTUATORS_KEY, *MARKS])
def test_a_machine_that_openshifts_own_actuator_works_on_is_left_to_it(mark: str) -> None:
    world = PoweredWorld()
    world.bmc = Bmc.UNATTENDED
    the_actuator_acts(world, mark)
    world.request()
    told = world.held()
    assert mark in told and "power.cycle" in told and "machine-api-controllers" in told
    assert world.steps() == []


@pytest.mark.parametrize("mark", [ACTUATORS_KEY, *MARKS])
def test_what_was_begun_is_left_to_the_actuator_if_that_begins_too(mark: str) -> None:
    world = PoweredWorld()
    world.bmc = Bmc.UNATTENDED
    world.request()
    world.run(lambda: bool(world.steps(SwitchOff)))
    the_actuator_acts(world, mark)
    world.switch(False)
    world.change_host(status={"poweredOn": False})
    world.run(lambda: bool(world.steps(SwitchOn)))
    assert mark in world.held()
    assert world.host.request is None and not world.steps(DeleteNode)
