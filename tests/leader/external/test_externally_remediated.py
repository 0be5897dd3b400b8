"""Cluster API's health check marks a Machine as ExternallyRemediated=False: from then on the leader keeps that true."""

from __future__ import annotations

from typing import Any

import pytest

from pp_hostd.leader.remedies.power_cycle.steps import SwitchOff
from pp_hostd.leader.requests.remediation_objects.remediation import KINDS, METAL3, POISON_PILL, Phase, RemediationKind
from pp_hostd.leader.requests.remediation_objects.steps import SetRemediated
from pp_hostd.leader.steps.machines import AskFor
from tests.leader.external.asked import AskedWorld
from tests.leader.power.powered import Bmc

EACH = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.name))
WAITING, SUCCEEDED, FAILED = "False/WaitingForRemediation", "True/Succeeded", "False/RemediationFailed"
LONG_AGO = "2026-01-01T00:00:00Z"
HEALTHY = {"type": "HealthCheckSucceeded", "status": "False", "reason": "NodeNotReady"}
MARK = {
    "type": "ExternallyRemediated",
    "status": "False",
    "reason": "WaitingForRemediation",
    "message": "",
    "lastTransitionTime": LONG_AGO,
}
MARKED = [HEALTHY, MARK]
STATUSES: dict[str, dict[str, Any]] = {
    "v1beta2": {"conditions": MARKED, "deprecated": {"v1beta1": {"conditions": [HEALTHY]}}},
    "v1beta1": {"conditions": [HEALTHY], "v1beta2": {"conditions": MARKED}},
}
IN_EACH = pytest.mark.parametrize("version", STATUSES)


def marked(kind: RemediationKind, version: str = "v1beta2", spec: dict[str, Any] | None = None) -> AskedWorld:
    """As the health check does it: first the object, then the condition."""
    world = AskedWorld("cluster-api")
    world.make(kind, spec)
    world.api.patch("machines", world.machine_key, {"status": STATUSES[version]})
    return world


def conditions(world: AskedWorld) -> list[dict[str, Any]]:
    """In every list of the Machine."""
    status = (world.api.get("machines", world.machine_key) or {})["status"]
    older, newer = status.get("deprecated", {}).get("v1beta1", {}), status.get("v1beta2", {})
    return [each for part in (status, newer, older) for each in part.get("conditions", ())]


def said(world: AskedWorld) -> list[str]:
    found = [each for each in conditions(world) if each["type"] == "ExternallyRemediated"]
    return [f"{each['status']}/{each['reason']}" for each in found]


@EACH
@IN_EACH
def test_it_is_true_once_the_node_is_well_again_and_not_before(kind: RemediationKind, version: str) -> None:
    world = marked(kind, version)
    world.run(lambda: world.phase(kind) is Phase.WAITING)
    assert said(world) == [WAITING]
    world.run(lambda: world.is_well() and not world.finalizers(kind))
    assert said(world) == [SUCCEEDED]
    (found,) = [each for each in conditions(world) if each["type"] == "ExternallyRemediated"]
    assert found["lastTransitionTime"] != LONG_AGO and kind.name in found["message"]
    assert conditions(world).count(HEALTHY) == 2
    world.spend(1000)
    assert len(world.steps(SetRemediated)) == 1


@EACH
def test_a_machine_that_no_health_check_of_cluster_api_has_marked_is_left_as_it_is(kind: RemediationKind) -> None:
    world = AskedWorld("cluster-api")
    world.make(kind)
    world.run(lambda: world.phase(kind) is Phase.WAITING and world.is_well() and not world.finalizers(kind))
    assert said(world) == [] and not world.steps(SetRemediated)


@EACH
def test_it_says_so_when_all_attempts_have_failed(kind: RemediationKind) -> None:
    world = marked(kind)
    world.sick = True
    world.run(lambda: world.phase(kind) is Phase.DELETING, seconds=4000)
    assert said(world) == [WAITING]
    if kind in (POISON_PILL, METAL3):
        world.run(lambda: not world.finalizers(kind))
        assert said(world) == [FAILED]
        (found,) = [each for each in conditions(world) if each["type"] == "ExternallyRemediated"]
        assert found["lastTransitionTime"] == LONG_AGO  # it was False before


def test_an_object_that_can_not_be_carried_out_has_failed() -> None:
    world = marked(METAL3, spec={"strategy": {"type": "Prayer"}})
    world.run(lambda: world.phase(METAL3) is Phase.FAILED and said(world) == [FAILED])


def test_it_goes_with_an_object_that_is_deleted_before_anything_was_done() -> None:
    world = marked(METAL3)
    world.bmc = Bmc.UNATTENDED
    world.sick = True
    world.run(lambda: bool(world.steps(SwitchOff)))
    world.delete(METAL3)
    world.run(lambda: world.is_gone(METAL3))
    assert said(world) == []
    assert HEALTHY in conditions(world)


@EACH
def test_it_is_true_although_the_health_check_was_faster_to_delete_the_object(kind: RemediationKind) -> None:
    world = marked(kind)
    world.run(lambda: world.phase(kind) is Phase.WAITING)
    world.delete(kind)
    world.run(lambda: world.is_gone(kind) and world.is_well())
    assert said(world) == [SUCCEEDED]


def test_it_is_false_again_while_a_node_that_was_well_is_remedied_once_more() -> None:
    world = marked(POISON_PILL)
    world.run(lambda: said(world) == [SUCCEEDED])
    world.sick = True
    world.run(lambda: said(world) == [WAITING], seconds=4000)
    assert world.phase(POISON_PILL) is Phase.RUNNING


def test_an_object_that_failed_does_not_speak_for_the_one_that_has_the_machine() -> None:
    world = marked(POISON_PILL)
    world.run(lambda: bool(world.steps(AskFor)))
    world.make(METAL3, {"strategy": {"type": "Prayer"}})
    world.run(lambda: world.phase(METAL3) is Phase.FAILED)
    assert said(world) == [WAITING]
    world.run(lambda: said(world) == [SUCCEEDED])
    world.spend(1000)
    assert said(world) == [SUCCEEDED] and len(world.steps(SetRemediated)) == 1
