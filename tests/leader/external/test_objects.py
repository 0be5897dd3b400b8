"""Remediation objects of every kind: begun, carried out by the flow that they name, tried again, escalated, let go."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pp_hostd.leader.remedies.poison_pill.steps import Condemn
from pp_hostd.leader.remedies.power_cycle.steps import SwitchOff
from pp_hostd.leader.requests.remediation_objects.remediation import (
    KINDS,
    METAL3,
    POISON_PILL,
    PROPOSED,
    Phase,
    RemediationKind,
)
from pp_hostd.leader.requests.remediation_objects.steps import HandToOwner, SetFinalizer
from pp_hostd.leader.steps.machines import DeleteMachine
from pp_hostd.leader.steps.nodes import DeleteNode
from tests.leader.external.asked import AskedWorld
from tests.leader.power.powered import HOST_NAME, Bmc

EACH = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.name))
BY_POWER = pytest.mark.parametrize("kind", [METAL3, PROPOSED], ids=lambda kind: str(kind.name))


@EACH
def test_an_object_has_its_machine_remedied_and_waits_for_the_health_check_to_delete_it(kind: RemediationKind) -> None:
    world = AskedWorld()
    world.make(kind)
    world.run(lambda: world.phase(kind) is Phase.WAITING and world.is_well() and not world.finalizers(kind))
    assert bool(world.steps(SwitchOff)) == (kind is not POISON_PILL)
    assert bool(world.steps(Condemn)) == (kind is POISON_PILL)
    assert len(world.steps(DeleteNode)) == 1
    assert "lastRemediated" in world.status(kind)
    assert world.status(kind)["phase"] == kind.words[Phase.WAITING]
    world.spend(1000)
    assert len(world.steps(DeleteNode)) == 1  # the node is well: nobody resets it again
    world.delete(kind)
    world.run(lambda: world.is_gone(kind) and not world.driver.next_actions)


def test_the_condition_of_our_own_kind_tells_how_it_fares() -> None:
    world = AskedWorld()
    world.make(POISON_PILL)
    world.run(lambda: bool(world.steps(Condemn)))
    (condition,) = world.status(POISON_PILL)["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "Running")
    world.run(lambda: world.phase(POISON_PILL) is Phase.WAITING and not world.finalizers(POISON_PILL))
    (condition,) = world.status(POISON_PILL)["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("Remediated", "True", "Succeeded")


@EACH
def test_a_node_that_is_not_well_in_time_is_remedied_again_up_to_the_limit(kind: RemediationKind) -> None:
    world = AskedWorld("cluster-api")
    world.sick = True
    world.make(kind)
    world.run(lambda: world.phase(kind) is Phase.DELETING, seconds=4000)
    assert len(world.steps(DeleteNode)) == 2  # one attempt, and one retry
    assert world.status(kind)["retryCount"] == 1


@pytest.mark.parametrize("kind", [POISON_PILL, METAL3], ids=lambda kind: str(kind.name))
def test_after_the_last_attempt_the_owner_is_told_by_both_lists_of_conditions(kind: RemediationKind) -> None:
    world = AskedWorld("cluster-api")
    deprecated = {"v1beta1": {"conditions": [{"type": "Ready", "status": "True"}]}}
    world.api.patch("machines", world.machine_key, {"status": {"deprecated": deprecated}})
    world.sick = True
    world.make(kind)
    world.run(lambda: bool(world.steps(HandToOwner)) and not world.finalizers(kind), seconds=4000)
    status = (world.api.get("machines", world.machine_key) or {})["status"]
    for conditions in (status["conditions"], status["deprecated"]["v1beta1"]["conditions"]):
        (found,) = [each for each in conditions if each["type"] == "OwnerRemediated"]
        assert (found["status"], found["reason"]) == ("False", "WaitingForRemediation")
    assert len(status["deprecated"]["v1beta1"]["conditions"]) == 2
    world.spend(1000)
    assert len(world.steps(HandToOwner)) == 1
    assert not world.steps(DeleteMachine)


@pytest.mark.parametrize(("kind", "machines"), [(PROPOSED, "cluster-api"), (METAL3, "openshift")])
def test_where_the_object_or_the_owner_wants_it_so_the_machine_is_deleted(kind: RemediationKind, machines: str) -> None:
    world = AskedWorld(machines)
    world.sick = True
    world.make(kind)
    world.run(lambda: bool(world.steps(DeleteMachine)), seconds=4000)
    assert not world.steps(HandToOwner)
    world.run(lambda: not world.finalizers(kind))  # and then it goes with its owner
    world.spend(60)
    assert not any(next_action.refused for next_action in world.driver.next_actions)


def test_a_machine_that_nobody_would_make_again_is_kept_and_the_object_fails_with_the_reason() -> None:
    world = AskedWorld()
    world.api.patch("machines", world.machine_key, {"metadata": {"ownerReferences": None}})
    world.sick = True
    world.make(METAL3)
    world.run(lambda: world.phase(METAL3) is Phase.FAILED and not world.finalizers(METAL3), seconds=4000)
    assert not world.steps(DeleteMachine)
    assert world.uncondemned()


@BY_POWER
def test_a_host_that_is_meant_to_be_off_fails_and_nothing_is_written_to_it(kind: RemediationKind) -> None:
    world = AskedWorld()
    world.bmc = Bmc.UNATTENDED
    world.change_host(spec={"online": False})
    before = world.api.get("hosts", HOST_NAME)
    world.make(kind)
    world.run(lambda: world.phase(kind) is Phase.FAILED)
    world.spend(60)
    assert world.api.get("hosts", HOST_NAME) == before
    assert world.uncondemned()


def test_a_host_that_does_not_go_off_in_the_time_of_its_object_is_told_of() -> None:
    world = AskedWorld()
    world.bmc = Bmc.UNREACHABLE
    world.make(PROPOSED)
    world.spend(150)
    assert "not carried out within 120 s" in world.told(PROPOSED)
    assert any(next_action.refused for next_action in world.driver.next_actions if next_action.of)


def test_waiting_for_the_budget_counts_against_no_timeout() -> None:
    world = AskedWorld()
    world.settings = replace(world.settings, leader=replace(world.settings.leader, resets_per_hour="0"))
    world.a_term("a")
    world.make(PROPOSED)
    world.spend(150)
    assert "leader.resets_per_hour allows 0" in world.told(PROPOSED)
    assert not any(next_action.refused for next_action in world.driver.next_actions)
    world.settings = replace(world.settings, leader=replace(world.settings.leader, resets_per_hour="1"))
    world.bmc = Bmc.UNREACHABLE
    world.a_term("a")
    world.spend(150)
    assert "not carried out within 120 s" in world.told(PROPOSED)


def test_an_object_whose_machine_has_no_node_yet_is_not_stuck() -> None:
    world = AskedWorld()
    world.api.patch("machines", world.machine_key, {"status": {"nodeRef": None}})
    world.delete_node("x")
    world.make(METAL3)
    world.run(lambda: world.phase(METAL3) is Phase.WAITING)
    assert world.boot == 2


# One at a time.


@pytest.mark.parametrize(("first", "second"), [(POISON_PILL, METAL3), (METAL3, PROPOSED), (PROPOSED, POISON_PILL)])
def test_of_two_objects_for_one_machine_one_runs_and_the_other_says_why_it_waits(
    first: RemediationKind, second: RemediationKind
) -> None:
    world = AskedWorld()
    world.make(first)
    world.run(lambda: world.phase(first) is Phase.RUNNING and not world.uncondemned())
    world.make(second)
    world.spend(5)
    assert "waits its turn" in world.told(second) and first.name in world.told(second)
    world.run(lambda: world.phase(first) is Phase.WAITING and world.is_well() and not world.finalizers(first))
    assert len(world.steps(DeleteNode)) == 1


def test_an_object_waits_while_an_annotation_has_asked_before_it() -> None:
    world = AskedWorld()
    world.request()
    world.run(lambda: bool(world.steps(SwitchOff)))
    world.make(POISON_PILL)
    world.spend(5)
    assert "annotation requests its remediation already" in world.told(POISON_PILL)
    (condition,) = world.status(POISON_PILL)["conditions"]
    assert condition["reason"] == "WaitsItsTurn"


def test_a_claim_of_an_object_that_is_gone_keeps_nobody_waiting() -> None:
    world = AskedWorld()
    world.make(METAL3)
    world.run(lambda: world.phase(METAL3) is Phase.RUNNING and not world.uncondemned())
    world.api.put(METAL3.name, world.machine_key, None)  # by force
    world.run(lambda: world.is_well())
    world.make(POISON_PILL)
    world.run(lambda: world.phase(POISON_PILL) is Phase.WAITING)


# Bad input.

BAD: list[tuple[RemediationKind, dict[str, Any], str]] = [
    (METAL3, {"strategy": {"type": "Pray"}}, "only Reboot is known"),
    (METAL3, {"strategy": {"type": "Reboot", "retryLimit": -1}}, "retryLimit"),
    (METAL3, {"strategy": {"type": "Reboot", "timeout": "-5m"}}, "timeout"),
    (METAL3, {"strategy": {"type": "Reboot", "timeout": "99999h"}}, "timeout"),
    (METAL3, {"strategy": {"type": "Reboot", "timeoutSeconds": 0}}, "timeoutSeconds"),
    (METAL3, {"strategy": "Reboot"}, "strategy"),
    (PROPOSED, {"strategy": "shout"}, "only escalate is known"),
    (PROPOSED, {"strategy": "escalate", "powerOffTimeoutSeconds": 10**12}, "powerOffTimeoutSeconds"),
    (POISON_PILL, {"timeoutSeconds": "soon"}, "timeoutSeconds"),
]


@pytest.mark.parametrize(("kind", "spec", "told"), BAD, ids=[str(spec)[:50] for _, spec, _ in BAD])
def test_a_spec_that_makes_no_sense_fails_with_the_reason_and_nothing_else_happens(
    kind: RemediationKind, spec: dict[str, Any], told: str
) -> None:
    world = AskedWorld()
    world.make(kind, spec)
    world.run(lambda: world.phase(kind) is Phase.FAILED)
    if kind.conditions:
        (condition,) = world.status(kind)["conditions"]
        assert told in condition["message"]
    world.spend(60)
    assert world.uncondemned() and not world.steps(SetFinalizer)


@EACH
def test_an_object_for_a_machine_that_is_not_there_is_refused_with_what_to_do(kind: RemediationKind) -> None:
    world = AskedWorld()
    world.make(kind, uid="another")
    world.spend(30)
    assert "was made for another Machine" in world.told(kind)
    world.api.put("machines", world.machine_key, None)
    world.spend(30)
    assert "there is no Machine machines/x" in world.told(kind)
    assert not world.steps()


@EACH
def test_a_status_that_somebody_has_edited_is_refused(kind: RemediationKind) -> None:
    world = AskedWorld()
    world.make(kind)
    world.api.patch(kind.name, world.machine_key, {"status": {"phase": "Dancing"}})
    world.spend(30)
    assert "Dancing" in world.told(kind)
    assert not world.steps()


def test_objects_that_need_power_are_refused_where_that_flow_is_off() -> None:
    world = AskedWorld()
    world.with_settings(cycle=False)
    world.make(METAL3)
    world.spend(30)
    assert "power.cycle" in world.told(METAL3)
    assert not world.steps()


def test_a_machine_that_can_not_be_helped_says_so_on_its_object() -> None:
    world = AskedWorld()
    world.withdraws()
    world.make(POISON_PILL)
    world.spend(60)
    assert "withdrawn its promise" in world.told(POISON_PILL)
    (condition,) = world.status(POISON_PILL)["conditions"]
    assert condition["reason"] == "Refused"
