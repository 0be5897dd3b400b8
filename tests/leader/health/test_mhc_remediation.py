"""How the Machines that a MachineHealthCheck finds unhealthy are remediated, and what holds that back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pp_hostd.kube.resources import POISON_PILL_REMEDIATIONS
from pp_hostd.leader.node_memory import NextAction, Stage
from pp_hostd.leader.requests.machine_health_checks.conditions import Spelling
from pp_hostd.leader.requests.machine_health_checks.facts import MachineFacts, MachineHealthSeen
from pp_hostd.leader.requests.machine_health_checks.judge import Remediations
from pp_hostd.leader.requests.machine_health_checks.remediations import under_remediation
from pp_hostd.leader.requests.machine_health_checks.steps import (
    MakeObject,
    RemoveObjects,
    TellMachine,
)
from pp_hostd.leader.steps.nodes import DeleteNode
from pp_hostd.model.condemnation import Condemned, NotRequested, Requested
from pp_hostd.model.keys import SKIP_REMEDIATION
from pp_hostd.model.machine import Machine
from pp_hostd.model.node import Node
from pp_hostd.model.observed import BackupSeen, MachineSeen, NodeSeen, Observed
from pp_hostd.model.record import Unreadable
from pp_hostd.model.settings import Leader
from pp_hostd.model.step import Written
from tests.leader.health.mhc_objects import ALL, CLUSTER, CLUSTER_API, OPENSHIFT, PLACE, TEMPLATE, V1BETA2
from tests.leader.health.mhc_world import OBJECTS, MachinesWorld, kept, new_world
from tests.leader.virtual_cluster import SINCE
from tests.leader.virtual_host import HOST

IN_EACH = pytest.mark.parametrize("spelling", ALL, ids=lambda each: each.value)
IN_CLUSTER_API = pytest.mark.parametrize("spelling", CLUSTER_API, ids=lambda each: each.value)


def by_template(spelling: Spelling, **spec: Any) -> MachinesWorld:
    world = new_world(spelling)
    world.template()
    world.check_machines(template=TEMPLATE, **spec)
    world.spend(5.0)
    return world


# The machine that this leader remediates.

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
@pytest.mark.parametrize("strategy", ["node-delete", "resources", "out-of-service"])
def test_a_host_that_is_not_back_in_time_is_told_once(spelling: Spelling, strategy: str) -> None:
    world = new_world(spelling, leader=Leader(max_unhealthy="100%", strategy=strategy))
    world.check_machines(most=0)
    world.spend(5.0)
    world.request()
    world.silent()
    world.run(lambda: isinstance(world.condemnation(), Condemned))
    world.run(world.given_back)
    world.spend(580.0)
    assert "HostNotBack" not in world.reasons()
    world.spend(60.0)
    (told,) = [each for each in world.notices if each.reason == "HostNotBack"]
    assert (told.name, told.warning) == (HOST, True)
    assert "its host was remediated, and is not back within the start-up timeout" in told.sentence
    world.spend(3600.0)
    world.comes_back()
    world.reports(HOST)
    world.spend(60.0)
    world.silent(seconds_ago=0.0)
    world.spend(900.0)
    assert world.counts()[1] == 4, "it was back, and is silent for another reason"
    assert world.reasons().count("HostNotBack") == 1


@IN_EACH
def test_a_host_that_may_take_as_long_as_it_likes_is_never_told_to_be_away(spelling: Spelling) -> None:
    world = new_world(spelling, leader=Leader(max_unhealthy="100%", strategy="resources"))
    world.check_machines(most=0, startup=0)
    world.request()
    world.silent()
    world.run(lambda: isinstance(world.condemnation(), Condemned))
    world.run(world.given_back)
    world.spend(3600.0)
    assert "HostNotBack" not in world.reasons()


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
def test_a_machine_that_has_an_object_does_not_keep_others_from_getting_one(spelling: Spelling) -> None:
    """The object is somebody else's, so that nothing comes of it."""
    world = by_template(spelling)
    world.api.put(OBJECTS, f"{PLACE}/a", {"metadata": {"name": "a", "namespace": PLACE}, "spec": {}})
    kept(world)
    world.silent("a", HOST)
    world.run(lambda: world.object(HOST) is not None)


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
def test_an_object_that_the_api_refuses_is_told_and_tried_again(spelling: Spelling) -> None:
    world = by_template(spelling)
    kept(world)
    world.refused.add(("create", POISON_PILL_REMEDIATIONS.kind))
    world.silent()
    world.spend(60.0)
    older = world.found().lists[-1 if spelling is V1BETA2 else 0]
    said = older.said("ExternalRemediationRequestAvailable")
    refusal = "no right to create a PoisonPillRemediation"
    assert said == ("False", "ExternalRemediationRequestCreationFailed", refusal)
    if spelling is V1BETA2:
        assert world.said_of("ExternallyRemediated") == [("False", "RemediationRequestCreationFailed")]
    world.refused.clear()
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
