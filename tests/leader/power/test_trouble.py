"""BMCs and operators that fail: people hear of it in time, the flow goes on when they are back, and nothing is lost."""

from __future__ import annotations

import pytest

from pp_hostd.leader.remedies.poison_pill.steps import Condemn
from pp_hostd.leader.remedies.power_cycle.steps import SwitchOff, SwitchOn
from pp_hostd.leader.steps.machines import Clear, DeleteMachine
from pp_hostd.leader.steps.nodes import DeleteNode
from pp_hostd.model.keys import AGENT
from pp_hostd.model.step import Written
from tests.leader.power.powered import HOST, KEY, Bmc, PoweredWorld
from tests.leader.virtual_host import PEERS

TEN_MINUTES = 600.0
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"


@pytest.mark.parametrize(
    ("bmc", "told"),
    [(Bmc.UNREACHABLE, "no answer from 192.0.2.9"), (Bmc.LIES, "still on"), (Bmc.UNATTENDED, "still on")],
)
def test_a_host_that_does_not_go_off_is_told_of_after_the_deadline_and_goes_on_once_it_does(
    bmc: Bmc, told: str
) -> None:
    world = PoweredWorld()
    world.bmc = bmc
    world.request()
    world.run(lambda: bool(world.steps(SwitchOff)))
    world.spend(world.settings.power.off_timeout_seconds - 20)
    assert not any(next_action.refused for next_action in world.driver.next_actions)
    assert told in world.held(TEN_MINUTES)
    assert all(next_action.refused for next_action in world.driver.next_actions)
    world.bmc = Bmc.WORKS
    world.run(world.is_well)
    assert world.restored()


def test_an_operator_that_is_down_while_a_host_is_off_lets_it_on_when_it_is_back() -> None:
    world = PoweredWorld()
    world.request()
    world.run(lambda: bool(world.steps(DeleteNode)))
    world.bmc = Bmc.UNATTENDED
    world.spend(TEN_MINUTES)
    assert not world.powered
    world.bmc = Bmc.WORKS
    world.run(world.is_well)


def never_on(world: PoweredWorld) -> PoweredWorld:
    world.bmc = Bmc.ONE_WAY
    world.request()
    world.run(lambda: bool(world.steps(SwitchOn)))
    world.spend(world.settings.power.on_timeout_seconds + 30)
    return world


@pytest.mark.parametrize("enrolled", [True, False])
def test_the_machine_of_a_host_that_never_comes_back_is_deleted_for_its_owner_to_make_another(enrolled: bool) -> None:
    world = never_on(PoweredWorld(enrolled=enrolled))
    assert [step.machine_key for step in world.steps(DeleteMachine) if isinstance(step, DeleteMachine)] == [
        world.machine_key
    ]
    world.spend(30)
    assert world.driver.next_actions == ()
    assert not [name for name in world.api.objects["config maps"] if name.startswith("backup-")]


@pytest.mark.parametrize(
    ("labels", "owners", "external", "told"),
    [
        ({"machine.openshift.io/cluster-api-machine-role": "master"}, True, False, "control-plane machine"),
        ({"cluster.x-k8s.io/control-plane": ""}, True, False, "control-plane machine"),
        ({}, False, False, "no controller owns it"),
        ({}, True, True, "externally provisioned"),
    ],
)
def test_some_machines_are_never_deleted(labels: dict[str, str], owners: bool, external: bool, told: str) -> None:
    world = PoweredWorld()
    change = {"labels": labels} if owners else {"labels": labels, "ownerReferences": None}
    world.api.patch("machines", world.machine_key, {"metadata": change})
    for name in (HOST, *PEERS[:2]):
        world.api.patch("nodes", name, {"metadata": {"labels": {CONTROL_PLANE: ""}}})
    world.change_host(spec={"externallyProvisioned": external})
    never_on(world)
    assert not world.steps(DeleteMachine)
    assert told in world.next_action()
    world.bmc = Bmc.WORKS
    world.run(world.is_well)


def test_a_host_that_somebody_else_keeps_off_is_not_taken_for_dead() -> None:
    world = PoweredWorld()
    world.annotate_host("reboot.metal3.io/maintenance", "")
    world.request()
    world.run(lambda: bool(world.steps(SwitchOn)))
    world.spend(world.settings.power.on_timeout_seconds + 30)
    assert "reboot.metal3.io/maintenance" in world.next_action()
    assert not world.steps(DeleteMachine)
    world.annotate_host("reboot.metal3.io/maintenance", None)
    world.run(world.is_well)


def test_a_flow_that_is_switched_off_in_the_middle_is_finished() -> None:
    world = PoweredWorld()
    world.request()
    world.run(lambda: bool(world.steps(SwitchOff)))
    world.with_settings(cycle=False)
    world.run(world.is_well)
    assert not world.steps(Condemn)
    assert world.restored()


def test_a_request_that_is_taken_back_while_it_goes_off_ends_with_the_host_on() -> None:
    world = PoweredWorld()
    world.request()
    world.run(lambda: bool(world.steps(SwitchOff)))
    world.lift()
    world.run(world.is_well)
    assert not world.steps(DeleteNode, Clear)


# Falling back, where a setting allows it.


def test_a_host_that_can_not_be_switched_off_resets_itself_instead_and_is_not_asked_to_do_both() -> None:
    world = PoweredWorld()
    world.with_settings(fallback=True)
    world.bmc = Bmc.UNREACHABLE
    world.request()
    world.run(lambda: bool(world.steps(Condemn)))
    assert world.host.request is None
    world.run(world.is_well)
    assert world.steps(DeleteNode)
    assert world.restored()


def test_without_the_setting_it_waits_for_its_bmc() -> None:
    world = PoweredWorld()
    world.bmc = Bmc.UNREACHABLE
    world.request()
    world.held(TEN_MINUTES)
    assert not world.steps(Condemn)


def test_a_host_that_has_promised_nothing_can_not_fall_back() -> None:
    world = PoweredWorld(enrolled=False)
    world.with_settings(fallback=True)
    world.bmc = Bmc.UNREACHABLE
    world.request()
    assert "still on" in world.held(TEN_MINUTES)
    assert not world.steps(Condemn)


def test_a_host_that_should_reset_itself_and_can_not_is_power_cycled_instead() -> None:
    world = PoweredWorld()
    world.with_settings(fallback=True)
    world.annotate_machine(world.machine_key, **{"pp-hostd.io/flow": "poison-pill"})
    world.withdraws()
    world.request()
    world.run(world.is_well)
    assert world.steps(SwitchOff) and not world.steps(Condemn)


def test_power_that_reads_off_ends_the_wait_for_peers_that_never_acknowledge() -> None:
    world = PoweredWorld()
    world.with_settings(fallback=True)
    world.annotate_machine(world.machine_key, **{"pp-hostd.io/flow": "poison-pill"})
    for peer in world.peers.values():
        peer.reachable = False
    world.request()
    world.run(lambda: bool(world.steps(Condemn)))
    world.run(lambda: world.is_well() and not world.driver.next_actions, seconds=2000)
    assert world.steps(SwitchOff) and world.steps(DeleteNode)
    assert world.host.request is None and KEY not in str(world.api.get("hosts", "metal/x"))
    assert world.next_action(HOST) == ""


# An operator whose webhook refuses every write.


class Refusing(PoweredWorld):
    """Behind a webhook that nobody answers: every write to a BareMetalHost fails. `tried` is when."""

    def __init__(self, *, enrolled: bool = True) -> None:
        self.tried: list[float] = []
        self.refusing = True
        super().__init__(enrolled=enrolled)

    def carry_out(self) -> None:
        if self.refusing and isinstance(self.under_way[0][1], (SwitchOff, SwitchOn)):
            self.tried.append(self.now)
            self.fail(Written.NOT_DONE, "failed calling webhook")
        else:
            super().carry_out()


def test_a_write_that_is_refused_is_tried_less_and_less_often_and_says_what_is_refused() -> None:
    world = Refusing(enrolled=False)
    world.request()
    world.spend(TEN_MINUTES)
    assert 5 < len(world.tried) < 40
    (next_action,) = world.driver.next_actions
    assert next_action.refused and "failed calling webhook" in next_action.sentence
    world.refusing = False
    world.run(world.is_well)


def test_the_time_to_switch_a_host_off_counts_from_the_first_attempt() -> None:
    world = Refusing()
    world.with_settings(fallback=True)
    world.request()
    world.run(lambda: bool(world.tried))
    world.run(lambda: bool(world.steps(Condemn)))
    assert world.now - world.tried[0] < world.settings.power.off_timeout_seconds + 60
    world.run(world.is_well)


def test_the_operators_own_pause_after_failures_is_told() -> None:
    world = PoweredWorld()
    world.bmc = Bmc.UNATTENDED
    error = {"operationalStatus": "error", "errorType": "power management error", "errorMessage": "no answer"}
    world.change_host(status={**error, "errorCount": 8})
    world.request()
    assert "failure 8; it tries again within about 256 min" in world.held(TEN_MINUTES)


def test_the_host_of_a_control_plane_node_that_somebody_has_deleted_is_not_switched_off() -> None:
    """With it the API would go, and nobody could switch it on again."""
    world = PoweredWorld()
    world.api.patch("nodes", HOST, {"metadata": {"labels": {CONTROL_PLANE: ""}}})
    world.request()
    world.spend(TEN_MINUTES)
    world.delete_node(HOST)
    world.spend(TEN_MINUTES)
    assert "one more of 1 control-plane nodes would leave no quorum" in world.next_action(HOST)
    assert world.powered and not world.steps(SwitchOff)


def test_a_control_plane_machine_without_a_node_is_not_switched_off_either() -> None:
    world = PoweredWorld(enrolled=False)
    world.delete_node(HOST)
    labels = {"cluster.x-k8s.io/control-plane": ""}
    world.api.patch("machines", world.machine_key, {"metadata": {"labels": labels}, "status": {"nodeRef": None}})
    world.request()
    world.spend(TEN_MINUTES)
    assert any("would leave no quorum" in each.sentence for each in world.driver.next_actions)
    assert world.powered


def test_a_control_plane_host_that_somebody_keeps_off_counts_against_the_quorum() -> None:
    world = PoweredWorld()
    for name in (HOST, *PEERS[:2]):
        world.api.patch("nodes", name, {"metadata": {"labels": {CONTROL_PLANE: ""}}})
    world.change_host(spec={"online": False})
    world.switch(False)
    world.annotate_node(PEERS[1], **{AGENT: world.a_promise(machine_uid=f"machine-{PEERS[1]}").render()})
    world.request(f"machines/{PEERS[1]}")
    world.spend(TEN_MINUTES)
    assert "one more of 3 control-plane nodes would leave no quorum" in world.next_action(PEERS[1])
    world.change_host(spec={"online": True})
    world.run(lambda: bool(world.steps(Condemn)))
