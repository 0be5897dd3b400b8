"""Power really goes, and the Node goes only then; whatever fails on the way, all ends with the host on."""

from __future__ import annotations

import time
from typing import Callable

import pytest

from pp_hostd.kube.resources import BARE_METAL_HOSTS, NODES, OPENSHIFT_MACHINES, PODS
from tests.bmc.operator import DETACHED, PAUSED
from tests.bmc.operator import REBOOT as BARE
from tests.bmc.rig import HOST, KEY, MACHINE, NODE, PLACE, Rig
from tests.bmc.simulator import PASSWORD
from tests.harness.eventually import eventually

END_SECONDS = 90
AFTER_BACK_OFF_SECONDS = 240
"""The operator waits longer and longer after each failure."""


def uid(rig: Rig) -> str:
    node = rig.find(NODES, NODE)
    return "" if node is None else str(node["metadata"]["uid"])


def test_a_machine_that_is_asked_for_is_switched_off_freed_and_switched_on_again(rig: Rig) -> None:
    rig.add_pod("web-0")
    pid, node = rig.pid, uid(rig)
    since = time.monotonic()
    rig.ask()
    rig.await_dead_before_deletion()
    eventually(rig.is_well, "all is well again", END_SECONDS)
    print(f"from the request to the Node that is back: {time.monotonic() - since:.1f} s")
    assert rig.pid != pid and uid(rig) != node
    assert rig.find(PODS, "web-0", PLACE) is None
    assert "deleting its Node" in rig.told()


STAGES: dict[str, Callable[[Rig], bool]] = {
    "switched off": lambda rig: rig.is_kept_off(),
    "backed up": lambda rig: rig.has_backup(),
    "deleted": lambda rig: rig.find(NODES, NODE) is None,
    "request taken": lambda rig: not rig.is_asked_for(),
    "switched on": lambda rig: not rig.is_asked_for() and not rig.is_kept_off(),
    "node back": lambda rig: not rig.is_kept_off() and rig.find(NODES, NODE) is not None and not rig.is_asked_for(),
}


@pytest.mark.parametrize("stage", STAGES)
def test_a_leader_that_is_killed_after_any_write_is_followed_by_one_that_ends_it_well(rig: Rig, stage: str) -> None:
    pid = rig.pid
    rig.ask()
    eventually(lambda: STAGES[stage](rig), stage, END_SECONDS, every_seconds=0.002)
    rig.supervisor.kill("pp-leader")
    rig.start_leader()
    eventually(rig.is_well, "all is well again", END_SECONDS)
    assert rig.pid not in (0, pid)


@pytest.mark.parametrize("stage", ["switched off", "backed up", "switched on"])
def test_a_leader_that_stands_still_finds_that_another_has_finished_and_does_nothing_twice(
    rig: Rig, stage: str
) -> None:
    before = rig.times_on
    with rig.second_leader():
        rig.ask()
        eventually(lambda: STAGES[stage](rig), stage, END_SECONDS, every_seconds=0.002)
        with rig.standing_still():
            eventually(rig.is_well, "all is well again", END_SECONDS)
            # A leader that has not seen the host turn off, nor finds it in the backup, switches it off once more.
            assert rig.times_on - before in ((1, 2) if stage == "switched off" else (1,))
            before = rig.times_on
    rig.ask()  # the first has to do it, all alone
    eventually(lambda: rig.times_on == before + 1 and rig.is_well(), "all is well again", END_SECONDS)
    assert rig.times_on == before + 1


def still_on(rig: Rig) -> None:
    eventually(lambda: "still on" in rig.told(), "people hear of it", 60)
    assert rig.pid and rig.find(NODES, NODE) is not None


def test_a_bmc_that_is_unreachable_is_told_of_and_nothing_is_freed_until_it_is_back(rig: Rig) -> None:
    rig.supervisor.kill("ipmi_sim")
    eventually(lambda: rig.host()["status"]["operationalStatus"] == "error", "the operator says so")
    rig.ask()
    still_on(rig)
    assert "power management error" in rig.told()
    rig.start_bmc()
    rig.await_dead_before_deletion(AFTER_BACK_OFF_SECONDS)
    eventually(rig.is_well, "all is well again", END_SECONDS)


def test_a_wrong_password_is_the_same(rig: Rig) -> None:
    rig.set_access(password="wrong")
    eventually(lambda: rig.host()["status"]["operationalStatus"] == "error", "the operator says so")
    rig.ask()
    eventually(rig.is_kept_off, "it is asked to go off")
    assert rig.pid and rig.find(NODES, NODE) is not None
    rig.set_access(password=PASSWORD)
    rig.await_dead_before_deletion(AFTER_BACK_OFF_SECONDS)
    eventually(rig.is_well, "all is well again", END_SECONDS)


def test_a_power_off_that_is_accepted_and_never_done_frees_nothing(rig: Rig) -> None:
    rig.set_wires("dead")
    node = uid(rig)
    rig.ask()
    still_on(rig)
    assert uid(rig) == node
    rig.set_wires("works")
    rig.await_dead_before_deletion()
    eventually(rig.is_well, "all is well again", END_SECONDS)


def test_an_operator_that_is_away_behind_its_webhook_is_told_of_and_finds_its_work_when_it_is_back(rig: Rig) -> None:
    rig.supervisor.kill("operator")
    rig.ask()
    eventually(lambda: "failed calling webhook" in rig.told(), "people hear what is refused", END_SECONDS)
    assert not rig.is_kept_off() and rig.pid and rig.find(NODES, NODE) is not None
    rig.start_operator()
    rig.await_dead_before_deletion()
    eventually(rig.is_well, "all is well again", END_SECONDS)


@pytest.mark.parametrize("value", ["", '{"mode": "hard"}'])
def test_a_reboot_that_somebody_else_asks_the_operator_for_is_left_to_it(rig: Rig, value: str) -> None:
    before, node = rig.times_on, uid(rig)
    rig.patch(BARE_METAL_HOSTS, HOST, {"metadata": {"annotations": {BARE: value}}}, PLACE)
    eventually(lambda: rig.times_on == before + 1, "it was off, and is on again", END_SECONDS)
    assert BARE not in (rig.host()["metadata"].get("annotations") or {})
    eventually(rig.is_well, "all is well", END_SECONDS)
    assert uid(rig) == node


@pytest.mark.parametrize("mark", [PAUSED, DETACHED])
def test_a_host_that_the_operator_leaves_alone_is_not_switched_off(rig: Rig, mark: str) -> None:
    rig.patch(BARE_METAL_HOSTS, HOST, {"metadata": {"annotations": {mark: "{}"}}}, PLACE)
    rig.ask()
    eventually(lambda: mark in rig.told(), "people hear of it")
    assert not rig.is_kept_off() and rig.pid
    rig.patch(BARE_METAL_HOSTS, HOST, {"metadata": {"annotations": {mark: None}}}, PLACE)
    rig.await_dead_before_deletion()
    eventually(rig.is_well, "all is well again", END_SECONDS)


def test_a_host_that_is_off_already_is_not_taken_for_switched_off(rig: Rig) -> None:
    rig.patch(BARE_METAL_HOSTS, HOST, {"spec": {"online": False}}, PLACE)
    eventually(lambda: rig.host()["status"]["poweredOn"] is False, "it is off")
    rig.ask()
    eventually(lambda: "spec.online is false" in rig.told(), "people hear of it")
    assert KEY not in (rig.host()["metadata"].get("annotations") or {})
    assert rig.find(NODES, NODE) is not None
    rig.patch(BARE_METAL_HOSTS, HOST, {"spec": {"online": True}}, PLACE)
    rig.await_dead_before_deletion()
    eventually(rig.is_well, "all is well again", END_SECONDS)


def test_the_machine_of_a_host_that_never_comes_on_again_is_deleted(rig: Rig) -> None:
    """The last case: there is no machine after it."""
    rig.set_wires("one way")
    rig.ask()
    rig.await_dead_before_deletion()
    eventually(lambda: rig.find(OPENSHIFT_MACHINES, MACHINE, PLACE) is None, "the Machine is deleted", END_SECONDS)
    eventually(lambda: not rig.has_backup() and not rig.is_kept_off(), "nothing is left", END_SECONDS)
    assert "for its owner to make another" in rig.told()
