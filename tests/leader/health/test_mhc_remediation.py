"""How the Machines that a MachineHealthCheck finds unhealthy are remediated, and what holds that back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pp_hostd.kube.outcome import ApiError, Outcome
from pp_hostd.leader.node_memory import NextAction, Stage
from pp_hostd.leader.requests.machine_health_checks.conditions import Spelling
from pp_hostd.leader.requests.machine_health_checks.facts import MachineFacts, MachineHealthSeen
from pp_hostd.leader.requests.machine_health_checks.judge import Remediations
from pp_hostd.leader.requests.machine_health_checks.plan import under_remediation
from pp_hostd.leader.requests.machine_health_checks.steps import (
    MakeObject,
    RemoveMachine,
    RemoveObjects,
    RequestByAnnotation,
    TellMachine,
)
from pp_hostd.leader.steps.nodes import DeleteNode
from pp_hostd.model.condemnation import Condemned, NotRequested, Requested
from pp_hostd.model.keys import EXTERNAL_REMEDIATION, PAUSED_NODE, SKIP_REMEDIATION
from pp_hostd.model.machine import Machine
from pp_hostd.model.node import Node
from pp_hostd.model.observed import BackupSeen, MachineSeen, NodeSeen, Observed
from pp_hostd.model.record import Unreadable
from pp_hostd.model.settings import Leader
from pp_hostd.model.step import Written
from tests.leader.health.mhc_objects import ALL, CLUSTER, CLUSTER_API, OPENSHIFT, PLACE, TEMPLATE, V1BETA1, V1BETA2
from tests.leader.health.mhc_world import OBJECTS, MachinesWorld, new_world
from tests.leader.virtual_cluster import SINCE
from tests.leader.virtual_host import HOST, PEERS

IN_EACH = pytest.mark.parametrize("spelling", ALL, ids=lambda each: each.value)
IN_CLUSTER_API = pytest.mark.parametrize("spelling", CLUSTER_API, ids=lambda each: each.value)
STRATEGY = {"machine.openshift.io/remediation-strategy": "external-baremetal"}
MASTER = {"machine.openshift.io/cluster-api-machine-role": "master"}


def by_template(spelling: Spelling, **spec: Any) -> MachinesWorld:
    world = new_world(spelling)
    world.template()
    world.check_machines(template=TEMPLATE, **spec)
    world.spend(5.0)
    return world


def kept(world: MachinesWorld) -> None:
    """So that no remediation begins."""
    world.annotate_node(HOST, **{PAUSED_NODE: ""})


# What this leader has under remediation.

MACHINE = Machine(PLACE, HOST, "u", "1", NotRequested(0), HOST)
NODE = NodeSeen(Node(HOST, "n", "1", None, None, None, tainted=True, unschedulable=False), f"{PLACE}/{HOST}")
ACTION = NextAction(HOST, f"{PLACE}/{HOST}", Stage.SWITCHING_OFF, "it goes off")


def condemned(condemnation: Any) -> Observed:
    seen = MachineSeen(replace(MACHINE, condemnation=condemnation), 1)
    return Observed(machines={seen.machine.machine_key: seen}, requests=(seen.machine.machine_key,))


@pytest.mark.parametrize(
    ("observed", "actions", "held", "requested"),
    [
        (Observed(), (), False, False),
        (condemned(Requested(0)), (), False, True),
        (condemned(NotRequested(7)), (), False, False),
        (condemned(Condemned(7, SINCE)), (), True, False),
        (condemned(Unreadable("it", "is odd")), (), True, False),
        (Observed(nodes={HOST: NODE}, marked=(HOST,)), (), True, False),
        (Observed(backups={HOST: BackupSeen(Unreadable("it", "is odd"), "1")}), (), True, False),
        (Observed(), (ACTION,), True, False),
        (Observed(), (replace(ACTION, machine_key=""),), True, False),
        (Observed(), (replace(ACTION, stage=Stage.HELD),), False, False),
        (Observed(), (replace(ACTION, of="PoisonPillRemediation a/b"),), False, False),
    ],
)
def test_a_machine_is_had_from_when_its_remediation_begins(
    observed: Observed, actions: tuple[NextAction, ...], held: bool, requested: bool
) -> None:
    facts = MachineFacts(PLACE, HOST, "u", 0.0, {}, HOST, (), ())
    seen = MachineHealthSeen(machines={facts.key: facts})
    found = under_remediation(Remediations(), observed, actions, seen, 5.0)
    assert (found.has(facts), facts.key in found.requested) == (held, requested)
    after = under_remediation(found, Observed(), (), seen, 9.0)
    assert after.released == ({facts.key: 9.0} if held else {})
    assert under_remediation(after, Observed(), (), seen, 12.0).released == after.released


# By template.


@IN_EACH
def test_an_object_is_made_of_the_template_for_the_machine(spelling: Spelling) -> None:
    world = by_template(spelling)
    world.silent()
    world.run(lambda: world.object() is not None)
    made = world.object()
    assert made is not None
    metadata = made["metadata"]
    assert (made["kind"], metadata["name"], metadata["namespace"]) == ("PoisonPillRemediation", HOST, PLACE)
    assert made["spec"] == {"retryLimit": 0}
    assert metadata["annotations"] == {
        "why": "sick",
        "cluster.x-k8s.io/cloned-from-name": "reset",
        "cluster.x-k8s.io/cloned-from-groupkind": "PoisonPillRemediationTemplate.pp-hostd.io",
    }
    of_cluster = {} if spelling is OPENSHIFT else {"cluster.x-k8s.io/cluster-name": CLUSTER}
    assert metadata["labels"] == {"team": "red", **of_cluster}
    owner = {"apiVersion": spelling.value, "kind": "Machine", "name": HOST, "uid": f"machine-{HOST}"}
    assert metadata["ownerReferences"] == [owner], "and not as its controller"


@IN_EACH
def test_a_sick_machine_is_remediated_once_and_its_object_goes_when_it_is_healthy_again(spelling: Spelling) -> None:
    world = by_template(spelling)
    world.silent()
    world.run(lambda: bool(world.steps(DeleteNode)))
    world.run(world.given_back)
    assert world.object() is not None
    world.spend(300.0)
    assert len(world.steps(DeleteNode)) == 1, "its host boots, and has ten minutes to do so"
    world.comes_back()
    world.reports(HOST)
    world.run(lambda: world.object() is None)
    world.spend(900.0)
    assert len(world.steps(DeleteNode)) == 1
    assert world.counts() == (5, 5, 5)


@IN_EACH
def test_an_object_that_exists_is_left_alone(spelling: Spelling) -> None:
    world = by_template(spelling)
    kept(world)
    metadata = {"name": HOST, "namespace": PLACE, "labels": {"mine": "yes"}}
    world.api.put(OBJECTS, f"{PLACE}/{HOST}", {"metadata": metadata, "spec": {}})
    world.silent()
    world.spend(120.0)
    found = world.object()
    assert found is not None and found["metadata"]["labels"] == {"mine": "yes"}
    assert all(each.said("ExternalRemediationRequestAvailable") is None for each in world.found().lists)
    world.reports(HOST)
    world.spend(120.0)
    assert world.object() is not None, "somebody else made it"


@IN_EACH
def test_a_new_leader_removes_what_the_one_before_has_left(spelling: Spelling) -> None:
    world = by_template(spelling)
    kept(world)
    world.silent()
    world.run(lambda: world.object() is not None)
    world.spend(5.0)
    world.reports(HOST)
    world.api.new_leader()
    world.a_term("b")
    world.run(lambda: world.object() is None)
    assert isinstance(world.condemnation(), NotRequested), "nothing had begun, and nothing will"


@IN_EACH
def test_objects_of_healthy_machines_are_looked_for_once(spelling: Spelling) -> None:
    world = by_template(spelling)
    world.spend(10.0)
    before = len(world.steps(RemoveObjects))
    assert before == 1
    world.spend(600.0)
    assert len(world.steps(RemoveObjects)) == before


@IN_EACH
def test_a_missing_template_is_told_and_tried_again(spelling: Spelling) -> None:
    world = new_world(spelling)
    world.check_machines(template=TEMPLATE)
    kept(world)
    world.silent()
    world.spend(60.0)
    older = world.found().lists[-1 if spelling is V1BETA2 else 0]
    said = older.said("ExternalRemediationTemplateAvailable")
    assert said is not None and said[:2] == ("False", "ExternalRemediationTemplateNotFound")
    if spelling is V1BETA2:
        assert world.said_of("ExternallyRemediated") == [("False", "RemediationTemplateNotFound")]
    world.template()
    world.run(lambda: world.object() is not None)
    world.spend(60.0)
    older = world.found().lists[-1 if spelling is V1BETA2 else 0]
    assert older.said("ExternalRemediationTemplateAvailable") is None
    if spelling is V1BETA2:
        assert world.said_of("ExternallyRemediated") == [("False", "WaitingForRemediation")]


@IN_EACH
def test_an_object_that_the_api_refuses_is_told_and_tried_again(
    spelling: Spelling, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = by_template(spelling)
    kept(world)

    async def refused(*_: object, **__: object) -> dict[str, Any]:
        raise ApiError(Outcome.FORBIDDEN, "the quota is exceeded")

    with monkeypatch.context() as patched:
        patched.setattr(world._steps_api, "create", refused)
        world.silent()
        world.spend(60.0)
        older = world.found().lists[-1 if spelling is V1BETA2 else 0]
        said = older.said("ExternalRemediationRequestAvailable")
        assert said == ("False", "ExternalRemediationRequestCreationFailed", "the quota is exceeded")
        if spelling is V1BETA2:
            assert world.said_of("ExternallyRemediated") == [("False", "RemediationRequestCreationFailed")]
    world.run(lambda: world.object() is not None)


@IN_EACH
def test_a_machine_that_nobody_is_to_remediate_gets_no_object(spelling: Spelling) -> None:
    world = by_template(spelling)
    world.annotate_machine(f"{PLACE}/{HOST}", **{SKIP_REMEDIATION: ""})
    world.silent()
    world.spend(120.0)
    assert world.object() is None
    assert world.counts()[0] == (5 if spelling is OPENSHIFT else 4)


# Cluster API without a template: the owner.


@IN_CLUSTER_API
def test_the_owner_is_told_by_conditions_in_all_lists(spelling: Spelling) -> None:
    world = new_world(spelling)
    world.check_machines()
    world.silent()
    world.spend(30.0)
    lists = 2 if spelling is V1BETA2 else 1
    assert world.said_of("HealthCheckSucceeded") == [("False", "UnhealthyNode")] * lists
    assert world.said_of("OwnerRemediated") == [("False", "WaitingForRemediation")] * lists
    assert world.reasons().count("MachineMarkedUnhealthy") == 1
    assert world.api.get("machines", f"{PLACE}/{HOST}") is not None, "its owner deletes it, never the health check"
    world.reports(HOST)
    world.spend(30.0)
    assert {status for status, _ in world.said_of("HealthCheckSucceeded")} == {"True"}
    assert world.said_of("OwnerRemediated") == [("False", "WaitingForRemediation")] * lists, "the owner drops it"


def test_older_lists_have_their_own_reasons() -> None:
    world = new_world(V1BETA2)
    world.check_machines()
    world.delete_node(HOST)
    world.spend(30.0)
    assert world.said_of("HealthCheckSucceeded") == [("False", "NodeDeleted"), ("False", "NodeNotFound")]


@IN_CLUSTER_API
@pytest.mark.parametrize(("before", "after"), [("True", "False"), ("False", "False")])
def test_an_owner_at_work_is_not_disturbed(spelling: Spelling, before: str, after: str) -> None:
    world = new_world(spelling)
    world.check_machines()
    theirs = {"type": "OwnerRemediated", "status": before, "reason": "Theirs", "message": "", "lastTransitionTime": ""}
    status = {"conditions": [theirs], "deprecated": {"v1beta1": {"conditions": [theirs]}}}
    world.patch_machine(HOST, {"status": status})
    world.silent()
    world.spend(30.0)
    reason = "WaitingForRemediation" if before == "True" else "Theirs"
    assert (after, reason) == world.said_of("OwnerRemediated")[0]


@IN_CLUSTER_API
def test_a_machine_that_is_being_deleted_is_not_left_to_its_owner_again(spelling: Spelling) -> None:
    world = new_world(spelling)
    world.check_machines()
    world.patch_machine(HOST, {"metadata": {"deletionTimestamp": world.moment(), "finalizers": ["a/b"]}})
    world.silent()
    world.spend(30.0)
    assert not world.said_of("OwnerRemediated")


# OpenShift without a template: annotation, or deletion.


def openshift(leader: Leader | None = None, **metadata: Any) -> MachinesWorld:
    world = new_world(OPENSHIFT, leader=leader)
    world.check_machines(metadata=metadata)
    world.spend(5.0)
    return world


def test_the_external_strategy_requests_by_annotation_and_the_leader_carries_it_out() -> None:
    world = openshift(annotations=STRATEGY)
    world.silent()
    world.run(lambda: isinstance(world.condemnation(), Requested))
    world.driver.turn()
    assert world.reasons() == ["DetectedUnhealthy", "ExternalAnnotationAdded"]
    world.run(world.given_back)
    world.comes_back()
    world.reports(HOST)
    world.spend(600.0)
    assert len(world.steps(RequestByAnnotation)) == len(world.steps(DeleteNode)) == 1
    assert not world.steps(RemoveMachine)
    assert isinstance(world.condemnation(), NotRequested)


def test_what_is_annotated_is_not_annotated_again() -> None:
    world = openshift(annotations=STRATEGY)
    kept(world)
    world.annotate_machine(f"{PLACE}/{HOST}", **{EXTERNAL_REMEDIATION: ""})
    world.silent()
    world.spend(120.0)
    assert not world.steps(RequestByAnnotation, RemoveMachine)


def test_a_failed_annotation_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    world = openshift(annotations=STRATEGY)
    refuse(world, monkeypatch, "patch")
    world.silent()
    world.spend(5.0)
    assert "ExternalAnnotationFailed" in world.reasons()


def refuse(world: MachinesWorld, monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    """The API refuses that for Machines."""
    before = getattr(world._steps_api, verb)

    async def refused(resource: Any, *arguments: Any, **more: Any) -> dict[str, Any]:
        if resource.kind == "Machine":
            raise ApiError(Outcome.FORBIDDEN, "not allowed")
        found: dict[str, Any] = await before(resource, *arguments, **more)
        return found

    monkeypatch.setattr(world._steps_api, verb, refused)


@pytest.mark.parametrize("annotations", [{}, STRATEGY])
def test_a_failed_machine_is_deleted_even_under_the_external_strategy(annotations: dict[str, str]) -> None:
    world = openshift(annotations=annotations)
    world.patch_machine(HOST, {"status": {"phase": "Failed"}})
    world.spend(30.0)
    assert world.api.get("machines", f"{PLACE}/{HOST}") is None
    assert world.reasons() == ["DetectedUnhealthy", "MachineDeleted"]
    assert not world.steps(RequestByAnnotation)


def test_an_unhealthy_machine_with_an_owner_is_deleted() -> None:
    world = openshift()
    world.silent()
    world.spend(30.0)
    assert world.api.get("machines", f"{PLACE}/{HOST}") is None


def test_a_failed_deletion_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    world = openshift()
    refuse(world, monkeypatch, "delete")
    world.silent()
    world.spend(5.0)
    assert "MachineDeletionFailed" in world.reasons()


def test_a_machine_without_an_owner_is_not_deleted_and_that_is_told_once() -> None:
    world = openshift()
    world.patch_machine(HOST, {"metadata": {"ownerReferences": None}})
    world.silent()
    world.spend(300.0)
    assert world.reasons() == ["SkippedNoController"]
    assert not world.steps(RemoveMachine)


def test_a_machine_that_this_leader_remediates_is_never_deleted() -> None:
    world = openshift()
    kept(world)
    world.request()
    world.silent()
    world.spend(300.0)
    assert not world.steps(RemoveMachine)
    assert world.counts() == (5, 4, 4)
    world.annotate_node(HOST, **{PAUSED_NODE: None})
    world.run(lambda: world.api.get("nodes", HOST) is None)
    world.spend(0.0)
    assert not world.steps(RemoveMachine), "the leader deleted its Node, and recreates it"
    world.run(world.given_back)
    world.spend(590.0)
    assert not world.steps(RemoveMachine)
    world.spend(30.0)
    assert world.steps(RemoveMachine), "its host has not come back within nodeStartupTimeout"


def control_plane(world: MachinesWorld, *names: str) -> None:
    for name in names:
        world.machine_body(name, pool="a", **MASTER)


def test_one_of_three_control_plane_machines_is_deleted() -> None:
    world = openshift()
    control_plane(world, HOST, "a", "b")
    world.silent(HOST)
    world.spend(30.0)
    assert len(world.steps(RemoveMachine)) == 1


@pytest.mark.parametrize("members", [(HOST, "a", "b"), (HOST, "a", "b", "c", "d")])
def test_never_a_second_control_plane_machine_at_a_time(members: tuple[str, ...]) -> None:
    world = openshift()
    control_plane(world, *members)
    world.silent(HOST, "a")
    world.spend(120.0)
    assert not world.steps(RemoveMachine)
    assert any("control-plane" in each.sentence for each in world.driver.next_actions if each.refused)


@pytest.mark.parametrize("members", [(HOST,), (HOST, "a")])
def test_never_against_the_quorum(members: tuple[str, ...]) -> None:
    world = openshift()
    control_plane(world, *members)
    world.silent(HOST)
    world.spend(120.0)
    assert not world.steps(RemoveMachine)
    assert any("no quorum" in each.sentence for each in world.driver.next_actions if each.refused)


# The leader's own limits.


@pytest.mark.parametrize("spelling", [OPENSHIFT, V1BETA1, V1BETA2])
@pytest.mark.parametrize(("most", "acts"), [("1", False), ("2", True)])
def test_too_many_unhealthy_machines_are_a_storm_to_the_leader(spelling: Spelling, most: str, acts: bool) -> None:
    world = new_world(spelling, leader=Leader(max_unhealthy=most))
    world.check_machines()
    world.silent(HOST, "a")
    world.spend(60.0)
    remediated = bool(world.steps(RemoveMachine)) if spelling is OPENSHIFT else bool(world.said_of("OwnerRemediated"))
    assert remediated is acts


def test_no_more_machines_are_deleted_at_once_than_the_leader_works_on() -> None:
    world = openshift(Leader(max_unhealthy="100%", max_at_once=2))
    for name in (HOST, *PEERS):
        world.patch_machine(name, {"metadata": {"finalizers": ["a/b"]}})
    world.silent(HOST, "a", "b", "c")
    world.driver.turn()
    assert len([step for _, step, _ in world.under_way if isinstance(step, RemoveMachine)]) == 2
    world.driver.turn()
    assert len([step for _, step, _ in world.under_way if isinstance(step, RemoveMachine)]) == 2


@pytest.mark.parametrize("spelling", [OPENSHIFT, V1BETA2])
def test_a_paused_leader_deletes_nothing_and_tells_no_owner(spelling: Spelling) -> None:
    world = new_world(spelling)
    world.check_machines()
    world.order({"paused": '{"v":1,"who":"ada","when":"2026-03-01T00:00:00Z","why":"upgrade"}'})
    world.silent()
    world.spend(120.0)
    assert not world.steps(RemoveMachine)
    assert spelling is OPENSHIFT or not world.said_of("OwnerRemediated")
    world.order({})
    world.spend(30.0)
    assert world.steps(RemoveMachine) or world.said_of("OwnerRemediated")


@pytest.mark.parametrize("spelling", [OPENSHIFT, V1BETA2])
def test_a_leader_that_has_just_begun_deletes_nothing(spelling: Spelling) -> None:
    world = MachinesWorld(spelling)
    world.check_machines()
    world.silent()
    world.spend(9.0)
    assert not world.steps(RemoveMachine)
    assert spelling is OPENSHIFT or not world.said_of("OwnerRemediated")
    world.spend(5.0)
    assert world.steps(RemoveMachine) or world.said_of("OwnerRemediated")


@IN_EACH
def test_a_step_that_fails_is_tried_again(spelling: Spelling) -> None:
    world = by_template(spelling)
    kept(world)
    world.silent()
    world.driver.turn()
    while world.under_way:
        world.fail(Written.NOT_DONE)
    world.run(lambda: world.object() is not None)
    assert world.steps(MakeObject)
    world.spend(10.0)
    assert spelling is OPENSHIFT or world.steps(TellMachine)
