"""Health checks that ask again while the host still boots: one power cycle for each fault."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pp_hostd.leader.remedies.power_cycle.steps import SwitchOff, SwitchOn
from pp_hostd.leader.requests.health_checks.definitions import default_check
from pp_hostd.leader.steps.machines import Clear, DeleteMachine
from pp_hostd.leader.steps.nodes import DeleteNode, DropBackup, Recreate, StoreBackup
from pp_hostd.leader.steps.workloads import FreeWorkloads
from pp_hostd.model.condemnation import NotRequested
from pp_hostd.model.keys import BACKUP_KEY, BOOTING, backup_name
from tests.leader.power.powered import HOST, SETTINGS, PoweredWorld
from tests.leader.virtual_cluster import SINCE


class AskedAgain(PoweredWorld):
    """A health check that calls a machine unhealthy while its Node is missing or not Ready, and so annotates it."""

    after_seconds, asked_at, asks = 0.0, 0.0, False
    boot_seconds = 150.0

    def _starts(self) -> None:
        if self.now >= self.switched_at + self.boot_seconds:
            super()._starts()

    def live(self) -> None:
        super().live()
        if self.asks and self.now >= self.asked_at + self.after_seconds and not self._is_healthy():
            self.asked_at = self.now
            if isinstance(self.condemnation(), NotRequested):
                self.request()

    def begin(self, after_seconds: float) -> None:
        self.request()
        self.asks, self.after_seconds, self.asked_at = True, after_seconds, self.now

    def _is_healthy(self) -> bool:
        return self.api.get("nodes", HOST) is not None and self.node(HOST).ready


@pytest.mark.parametrize("enrolled", [True, False])
@pytest.mark.parametrize("after_seconds", [0.0, 5.0, 60.0])
def test_a_request_that_is_repeated_until_the_node_is_ready_begins_one_power_cycle(
    after_seconds: float, enrolled: bool
) -> None:
    world = AskedAgain(enrolled=enrolled)
    world.begin(after_seconds)
    world.run(lambda: world.is_well() and world.uncondemned() and not world.driver.next_actions)
    world.spend(300)
    assert world.boot == 2
    assert len(world.steps(SwitchOff)) == len(world.steps(DropBackup)) == 1
    assert world.restored()


def test_a_request_beside_the_claim_of_a_health_check_begins_no_second_power_cycle() -> None:
    """Somebody else requests the machine that a NodeHealthCheck has had remediated, and for which no object waits."""
    world = AskedAgain()
    world.wallclock_ahead_seconds = int(SINCE.timestamp()) - 1000
    spec = {**default_check()["spec"], "maxUnhealthy": "100%"}
    world.api.put("nodehealthchecks", "all", {"metadata": {"name": "all", "generation": 1}, "spec": spec})
    silent = {"type": "Ready", "status": "Unknown", "lastTransitionTime": "2020-01-01T00:00:00Z"}
    world.api.patch("nodes", HOST, {"status": {"conditions": [silent]}})
    world.run(lambda: bool(world.steps(SwitchOn)) and world.host.powered_on is True, seconds=2000)
    world.spend(10)
    world.request()
    world.run(lambda: world.running and not any(each.node for each in world.driver.next_actions))
    assert isinstance(world.condemnation(), NotRequested)
    assert len(world.steps(SwitchOff)) == len(world.steps(DropBackup)) == 1


@pytest.mark.parametrize("after", [DeleteNode, SwitchOn], ids=["before its workloads are free", "while it boots"])
def test_a_leader_that_has_not_listed_the_hosts_yet_waits_and_begins_no_second_power_cycle(after: type) -> None:
    world = AskedAgain()
    world.begin(0.0)
    world.run(lambda: bool(world.steps(after)))
    world.api.hosts_are_late = "baremetalhosts have not been listed yet"
    world.a_term("a")
    world.spend(5)
    world.api.hosts_are_late = ""
    world.run(lambda: world.is_well() and world.uncondemned() and not world.driver.next_actions)
    assert len(world.steps(SwitchOff)) == len(world.steps(DropBackup)) == 1
    assert isinstance(world.steps(FreeWorkloads, Recreate)[0], FreeWorkloads)
    assert world.restored()


def test_a_request_that_was_made_meanwhile_is_taken_off_before_the_backup_is_dropped() -> None:
    world = PoweredWorld()
    world.request()
    world.run(lambda: bool(world.steps(SwitchOn)))
    world.request()
    world.run(lambda: world.is_well() and not world.driver.next_actions)
    assert [type(step) for step in world.steps(Clear, DropBackup)] == [Clear, Clear, DropBackup]
    assert world.uncondemned() and world.boot == 2


def test_what_is_requested_once_the_node_was_ready_is_another_fault() -> None:
    world = PoweredWorld()
    world.a_power_cycle()
    world.a_power_cycle()
    assert world.boot == 3


def test_the_machine_of_a_host_that_does_not_become_ready_in_time_is_deleted_if_it_is_requested_again() -> None:
    world = AskedAgain()
    world.sick = True
    world.begin(0.0)
    world.run(lambda: bool(world.steps(DeleteMachine)), seconds=2000)
    assert len(world.steps(SwitchOff)) == 1
    assert world.now >= world.at(SwitchOn) + world.settings.power.on_timeout_seconds


def test_a_machine_that_must_be_kept_is_power_cycled_once_for_each_timeout() -> None:
    world = AskedAgain()
    world.api.patch("machines", world.machine_key, {"metadata": {"ownerReferences": None}})
    world.sick = True
    world.begin(0.0)
    world.run(lambda: len(world.steps(SwitchOff)) == 3, seconds=4000)
    assert not world.steps(DeleteMachine)
    assert world.at(SwitchOff) >= 1000 + 2 * world.settings.power.on_timeout_seconds
    world.sick = False
    world.run(lambda: world.is_well() and world.uncondemned() and not world.driver.next_actions, seconds=2000)


def test_a_node_that_does_not_become_ready_and_that_nobody_requests_is_left_to_its_health_check() -> None:
    world = PoweredWorld()
    world.sick = True
    world.request()
    world.run(lambda: bool(world.steps(DropBackup)), seconds=2000)
    assert world.now >= world.at(SwitchOn) + world.settings.power.on_timeout_seconds
    world.spend(60)
    assert not world.steps(DeleteMachine) and not world.driver.next_actions


def test_a_backup_that_arrives_when_its_power_cycle_is_over_keeps_no_request_from_being_heeded() -> None:
    world = PoweredWorld()
    world.a_power_cycle()
    (late,) = (step for step in world.steps(StoreBackup) if isinstance(step, StoreBackup))
    world.config_map(backup_name(HOST), {BACKUP_KEY: late.backup.render()})
    world.request()
    world.run(lambda: world.boot == 3 and world.is_well() and not world.driver.next_actions)
    assert world.restored()


# A Node without a backup. Until its kubelet has started, one that is kept says what the boot before said, and one that
# was recreated says nothing.


class Kept(AskedAgain):
    """Power that reads off ends the wait for peers that never acknowledge; by default the strategy keeps the Node."""

    def __init__(self, strategy: str = "resources") -> None:
        super().__init__(replace(SETTINGS, leader=replace(SETTINGS.leader, strategy=strategy)))
        self.with_settings(fallback=True)
        self.annotate_machine(self.machine_key, **{"pp-hostd.io/flow": "poison-pill"})
        for peer in self.peers.values():
            peer.reachable = False
        self._becomes_ready()

    def is_awaited(self) -> bool:
        return self.host.booting is not None

    def is_over(self) -> bool:
        return self.is_well() and not self.is_awaited() and not self.driver.next_actions


@pytest.mark.parametrize("strategy", ["resources", "node-delete"])
def test_a_request_that_is_made_while_a_host_without_a_backup_boots_begins_no_second_power_cycle(strategy: str) -> None:
    world = Kept(strategy)
    world.request()
    world.run(lambda: world.is_awaited() and world.host.powered_on is True, seconds=2000)
    world.a_term("a")  # whose leader has seen nothing of this
    world.request()
    world.spend(100)
    assert not world.running and "begins no second power cycle" in world.next_action(HOST)
    world.run(world.is_over, seconds=2000)
    assert world.uncondemned()
    assert len(world.steps(SwitchOff)) == 1 and not world.steps(DeleteMachine)
    assert len(world.steps(DeleteNode)) == (strategy == "node-delete")


def test_the_host_of_a_kept_node_is_forgotten_once_it_is_back_though_nobody_requests_it() -> None:
    world = Kept()
    world.request()
    world.run(world.is_over, seconds=2000)
    world.annotate_machine(world.machine_key, **{"pp-hostd.io/flow": None})
    world.a_power_cycle()
    assert len(world.steps(SwitchOff)) == 2


@pytest.mark.parametrize("owned", [True, False])
def test_the_host_of_a_kept_node_that_does_not_come_back_is_given_up_in_time(owned: bool) -> None:
    world = Kept()
    if not owned:
        world.api.patch("machines", world.machine_key, {"metadata": {"ownerReferences": None}})
    world.boot_seconds = 10_000
    world.request()
    world.run(world.is_awaited, seconds=2000)
    world.request()
    given_up = DeleteMachine if owned else SwitchOff
    before = len(world.steps(given_up))
    world.run(lambda: len(world.steps(given_up)) > before, seconds=4000)
    assert world.now >= world.at(SwitchOn) + world.settings.power.on_timeout_seconds


def test_the_host_of_a_kept_node_whose_machine_is_gone_is_forgotten() -> None:
    world = Kept()
    world.request()
    world.run(world.is_awaited, seconds=2000)
    world.api.put("machines", world.machine_key, None)
    world.run(lambda: not world.is_awaited(), seconds=60)


def test_a_mark_that_nobody_can_read_keeps_no_request_from_being_heeded() -> None:
    world = PoweredWorld()
    world.annotate_host(BOOTING, "{")
    world.a_power_cycle()
    assert len(world.steps(SwitchOff)) == 1
