"""The owner of a remediation object says what its name means: a Machine or, for medik8s' NodeHealthCheck, a Node."""

from __future__ import annotations

from typing import Any

import pytest

from pp_hostd.leader.requests.remediation_objects.remediation import KINDS, METAL3, POISON_PILL, Phase, RemediationKind
from pp_hostd.leader.requests.remediation_objects.steps import HandToOwner
from pp_hostd.leader.steps.nodes import DeleteNode
from tests.leader.external.asked import AskedWorld
from tests.leader.power.powered import HOST

EACH = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.name))
CHECK = {"apiVersion": "remediation.medik8s.io/v1alpha1", "kind": "NodeHealthCheck", "name": "workers", "uid": "check"}
MACHINE = {"kind": "Machine", "name": HOST, "uid": f"machine-{HOST}"}


def owned(kind: RemediationKind, *owners: dict[str, str], place: str = "medik8s") -> AskedWorld:
    world = AskedWorld("cluster-api")
    world.place = place
    world.make(kind)
    metadata = {"ownerReferences": list(owners) or None}
    world.api.patch(kind.name, world.called, {"metadata": metadata})
    return world


@EACH
def test_the_object_of_a_node_health_check_names_a_node_wherever_its_template_is(kind: RemediationKind) -> None:
    world = owned(kind, CHECK)
    decoy: dict[str, Any] = {"name": HOST, "namespace": "medik8s", "uid": "another"}
    world.api.put("machines", world.called, {"metadata": decoy})
    before = world.api.get("machines", world.called)
    world.run(lambda: world.phase(kind) is Phase.WAITING and world.is_well() and not world.finalizers(kind))
    assert len(world.steps(DeleteNode)) == 1
    assert world.api.get("machines", world.called) == before
    world.delete(kind)
    world.run(lambda: world.is_gone(kind) and not world.driver.next_actions)


@EACH
def test_the_object_finds_its_machine_while_its_node_is_missing(kind: RemediationKind) -> None:
    world = owned(kind, CHECK)
    world.run(lambda: bool(world.steps(DeleteNode)))
    world.driver.turn()
    assert world.api.get("nodes", HOST) is None and "there is no Machine" not in world.told(kind)
    world.delete(kind)
    world.run(lambda: world.is_gone(kind) and world.is_well())
    assert world.restored()


def test_a_node_that_is_not_well_after_all_attempts_has_its_machine_handed_to_its_owner() -> None:
    world = owned(METAL3, CHECK)
    world.sick = True
    world.run(lambda: bool(world.steps(HandToOwner)), seconds=4000)
    (step,) = world.steps(HandToOwner)
    assert isinstance(step, HandToOwner) and step.machine_key == world.machine_key


def test_a_node_that_does_not_exist_is_said_so() -> None:
    world = owned(METAL3, CHECK)
    world.api.patch(METAL3.name, world.called, {"metadata": {"name": "nowhere"}})
    world.spend(60)
    assert "there is no Machine of Node nowhere" in world.told(METAL3)
    assert not world.steps()


def test_of_several_owners_the_machine_counts() -> None:
    world = owned(POISON_PILL, CHECK, {**MACHINE, "uid": "another"}, place="machines")
    world.spend(60)
    assert "it was made for another Machine machines/x (uid another)" in world.told(POISON_PILL)


@EACH
@pytest.mark.parametrize(
    ("owners", "told"),
    [((), "nobody owns it"), (({"kind": "Deployment", "name": HOST, "uid": "any"},), "it is owned by a Deployment")],
)
def test_an_object_of_anybody_else_is_refused(
    kind: RemediationKind, owners: tuple[dict[str, str], ...], told: str
) -> None:
    world = owned(kind, *owners, place="machines")
    world.spend(60)
    assert f"{told}, so nobody knows what its name means" in world.told(kind)
    assert all(next_action.refused for next_action in world.driver.next_actions)
    assert not world.steps()


def test_what_an_object_without_an_owner_has_begun_is_given_back_when_it_is_deleted() -> None:
    world = owned(METAL3, MACHINE, place="machines")
    world.run(lambda: bool(world.steps(DeleteNode)))
    world.api.patch(METAL3.name, world.called, {"metadata": {"ownerReferences": None}})
    world.spend(5)
    world.delete(METAL3)
    world.run(lambda: world.is_gone(METAL3) and world.is_well() and world.uncondemned())
