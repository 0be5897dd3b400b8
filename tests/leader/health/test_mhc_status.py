"""MachineHealthChecks in the leader's own loop: whether it takes them, how many are unhealthy, and what is told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pp_hostd.leader.requests.machine_health_checks.conditions import Spelling
from pp_hostd.leader.requests.machine_health_checks.steps import (
    JoinCluster,
    MakeObject,
    RemoveMachine,
    SetStatus,
    TellMachine,
)
from pp_hostd.leader.watches import Watches
from pp_hostd.model.keys import PAUSED_MACHINE
from tests.leader.health.mhc_objects import (
    ALL,
    CLUSTER,
    CLUSTER_API,
    OPENSHIFT,
    PLACE,
    TEMPLATE,
    V1BETA1,
    V1BETA2,
    conditions,
)
from tests.leader.health.mhc_world import KIND, OTHERS, MachinesWorld, new_world
from tests.leader.virtual_host import HOST, PEERS

IN_EACH = pytest.mark.parametrize("spelling", ALL, ids=lambda each: each.value)
IN_CLUSTER_API = pytest.mark.parametrize("spelling", CLUSTER_API, ids=lambda each: each.value)
ANY = (SetStatus, JoinCluster, TellMachine, MakeObject, RemoveMachine)


# Whether the leader takes them at all.


@IN_EACH
def test_it_is_off_by_default(spelling: Spelling) -> None:
    world = MachinesWorld(spelling, on=False)
    world.api.objects.setdefault(KIND, {})
    world.check_machines()
    world.silent()
    world.spend(60.0)
    assert not world.steps(*ANY)
    assert "status" not in world.body()
    assert all(watch.versions[0].plural != KIND for watch in Watches(world.api.machines, world.settings).watches)


@IN_EACH
def test_a_check_whose_status_another_controller_writes_is_left_alone_and_people_are_told(spelling: Spelling) -> None:
    world = new_world(spelling)
    world.check_machines(metadata=OTHERS)
    world.silent()
    before = world.body()
    world.spend(120.0)
    assert world.body() == before
    assert not world.steps(*ANY)
    (told,) = (each for each in world.driver.next_actions if each.refused)
    assert "manager has written its status" in told.sentence
    about = [found for each in world.registry.requesters for found in each.about(world.observed(), told)]
    assert [(kind.kind, namespace, name) for kind, namespace, name, _ in about] == [
        ("MachineHealthCheck", PLACE, "workers")
    ]


@IN_EACH
def test_the_leader_stops_as_soon_as_another_controller_comes(spelling: Spelling) -> None:
    world = new_world(spelling)
    world.check_machines()
    world.spend(10.0)
    assert world.counts() == (5, 5, 5)
    world.api.patch(KIND, f"{PLACE}/workers", {"metadata": OTHERS})
    before = len(world.steps(*ANY))
    world.silent()
    world.spend(60.0)
    assert len(world.steps(*ANY)) == before


@pytest.mark.parametrize("most", ["100%", "many"])
@pytest.mark.parametrize(("later", "written"), [(14.0, False), (16.0, True)])
def test_a_new_check_is_left_to_another_controller_for_a_moment(later: float, written: bool, most: str) -> None:
    world = new_world(OPENSHIFT)
    world.check_machines(metadata={"creationTimestamp": world.moment()}, most=most)
    world.spend(later)
    assert bool(world.steps(SetStatus)) is written


@IN_EACH
def test_a_dry_run_writes_nothing(spelling: Spelling) -> None:
    world = MachinesWorld(spelling)
    world.settings = replace(world.settings, leader=replace(world.settings.leader, mode="dry-run"))
    world.a_term("a")
    world.check_machines()
    world.silent()
    world.spend(120.0)
    assert not world.steps(*ANY)


# Pauses.


@IN_EACH
def test_a_paused_check_does_nothing(spelling: Spelling) -> None:
    world = new_world(spelling)
    world.check_machines(metadata={"annotations": {PAUSED_MACHINE: ""}}, startup=0)
    world.silent()
    world.spend(60.0)
    assert not world.steps(MakeObject, RemoveMachine, TellMachine)
    if spelling is V1BETA2:
        said = world.found().lists[0].said("Paused")
        assert said is not None and said[:2] == ("True", "Paused")
    assert world.allowed() == ("", "")


@IN_CLUSTER_API
def test_a_check_of_a_paused_cluster_does_nothing_until_that_ends(spelling: Spelling) -> None:
    world = new_world(spelling)
    world.cluster(paused=True)
    world.check_machines()
    world.silent()
    world.spend(60.0)
    assert not world.steps(MakeObject, TellMachine)
    assert world.allowed() == ("", "")
    assert not world.steps(JoinCluster)
    if spelling is V1BETA2:
        paused = ("True", "Paused", "Cluster spec.paused is set to true")
        assert world.found().lists[0].said("Paused") == paused
    world.cluster()
    world.run(lambda: bool(world.steps(TellMachine)) and world.counts()[0] == 5)
    if spelling is V1BETA2:
        said = world.found().lists[0].said("Paused")
        assert said is not None and said[:2] == ("False", "NotPaused")


@IN_CLUSTER_API
def test_without_its_cluster_nobody_is_remediated(spelling: Spelling) -> None:
    world = new_world(spelling)
    world.api.put("clusters", f"{PLACE}/{CLUSTER}", None)
    world.check_machines()
    world.silent()
    world.spend(60.0)
    assert not world.steps(TellMachine)
    assert world.allowed()[0] == "False"
    assert "ClusterNotFound" in world.reasons()


@IN_CLUSTER_API
def test_nobody_is_unhealthy_before_the_cluster_is_ready(spelling: Spelling) -> None:
    world = new_world(spelling)
    world.cluster(ready=False)
    world.check_machines()
    world.silent()
    world.spend(60.0)
    assert world.counts() == (5, 0, 0)
    assert not world.steps(TellMachine)
    world.cluster()
    world.spend(10.0)
    assert world.counts() == (5, 4, 4)


# Counts, limits and bad input.


@IN_EACH
@pytest.mark.parametrize(("sick", "may"), [(2, True), (3, False)])
def test_nobody_is_remediated_while_too_many_are_not_healthy(spelling: Spelling, sick: int, may: bool) -> None:
    """40 % of 5 are 2. Those that are pending count."""
    world = new_world(spelling)
    world.template()
    world.check_machines(most="40%", template=TEMPLATE)
    world.silent(HOST)
    world.silent(*PEERS[: sick - 1], seconds_ago=10.0)
    world.spend(60.0)
    assert (world.object() is not None) is may
    assert world.counts() == (5, 5 - sick, 0)
    assert world.allowed()[0] == ("True" if may else "False")
    assert world.reasons().count("RemediationRestricted") == (0 if may else 1)
    if not may:
        why = (
            "Remediation is not allowed, the number of not started or unhealthy machines exceeds maxUnhealthy "
            f"(total: 5, unhealthy: {sick}, maxUnhealthy: 40%)"
        )
        assert world.found().lists[0].said("RemediationAllowed") == ("False", "TooManyUnhealthy", why)


@IN_EACH
def test_it_is_told_once_that_too_many_are_unhealthy_also_if_more_become_so(spelling: Spelling) -> None:
    world = new_world(spelling)
    world.check_machines(most=0)
    for name in (HOST, *PEERS[:2]):
        world.silent(name)
        world.spend(30.0)
    assert world.counts() == (5, 2, 0)
    assert world.reasons().count("RemediationRestricted") == 1


@IN_CLUSTER_API
def test_below_a_range_nobody_is_remediated_either(spelling: Spelling) -> None:
    world = new_world(spelling)
    world.template()
    world.check_machines(within="[2-4]", template=TEMPLATE)
    world.silent()
    world.spend(60.0)
    assert world.object() is None
    assert (world.counts(), world.allowed()) == ((5, 4, 0), ("False", "TooManyUnhealthy"))
    said = world.found().lists[0].said("RemediationAllowed")
    assert said is not None
    assert said[2].endswith("does not fall within the range (total: 5, unhealthy: 1, unhealthyRange: [2-4])")
    world.silent(PEERS[0])
    world.run(lambda: world.object() is not None)
    assert world.counts() == (5, 3, 2)


@IN_CLUSTER_API
def test_what_failed_is_told_even_if_too_many_did(spelling: Spelling) -> None:
    world = new_world(spelling)
    world.check_machines(most=0)
    world.silent()
    world.spend(60.0)
    assert [status for status, _ in world.said_of("HealthCheckSucceeded")] == ["False"] * (
        2 if spelling is V1BETA2 else 1
    )
    assert not world.said_of("OwnerRemediated")
    assert "MachineMarkedUnhealthy" not in world.reasons(), "nobody remediates it"
    world.check_machines()
    world.run(lambda: bool(world.said_of("OwnerRemediated")))
    world.spend(60.0)
    assert world.reasons().count("MachineMarkedUnhealthy") == 1


@IN_EACH
def test_it_goes_on_once_few_enough_are_unhealthy(spelling: Spelling) -> None:
    world = new_world(spelling)
    world.template()
    world.check_machines(most=1, template=TEMPLATE)
    world.silent(HOST, PEERS[0])
    world.spend(60.0)
    assert world.object() is None
    world.reports(PEERS[0])
    world.run(lambda: world.object() is not None)
    assert world.reasons().count("RemediationRestricted") == 1


@IN_EACH
def test_an_unreadable_check_remediates_nobody_and_says_why(spelling: Spelling) -> None:
    world = new_world(spelling)
    world.check_machines(most="many")
    world.silent()
    world.spend(60.0)
    assert world.allowed() == ("False", "Unreadable")
    assert world.reasons() == ["Unreadable"]
    assert not world.steps(TellMachine, RemoveMachine)
    world.check_machines(template=TEMPLATE)
    world.template()
    world.run(lambda: world.object() is not None)


# The status.


@IN_EACH
def test_the_status_counts_what_its_api_has_fields_for(spelling: Spelling) -> None:
    world = new_world(spelling)
    world.check_machines(most=4)
    world.silent(HOST, seconds_ago=10.0)
    world.spend(10.0)
    assert world.counts() == (5, 4, 3)
    status = world.body()["status"]
    assert ("observedGeneration" in status) is ("targets" in status) is (spelling is not OPENSHIFT)
    if spelling is not OPENSHIFT:
        assert status["targets"] == sorted((HOST, *PEERS))
    assert ("deprecated" in status) is (spelling is V1BETA2)


@IN_EACH
def test_the_status_is_written_only_when_something_changed(spelling: Spelling) -> None:
    world = new_world(spelling)
    world.check_machines()
    world.spend(10.0)
    before = len(world.steps(*ANY))
    for _ in range(20):
        world.kubelet_renews()
        world.annotate_node("a", team="red")
        world.spend(30.0)
    assert len(world.steps(*ANY)) == before


@IN_EACH
def test_conditions_of_others_stay_and_a_condition_keeps_its_time(spelling: Spelling) -> None:
    world = new_world(spelling)
    world.check_machines(most=0)
    theirs = {"type": "Theirs", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    ours = {"type": "RemediationAllowed", "status": "True", "lastTransitionTime": "2026-01-02T00:00:00Z"}
    world.api.patch(KIND, f"{PLACE}/workers", {"status": {"conditions": [theirs, ours]}})
    world.spend(10.0)
    stored = {each["type"]: each for each in world.body()["status"]["conditions"]}
    assert stored["Theirs"] == theirs
    assert stored["RemediationAllowed"]["lastTransitionTime"] == ours["lastTransitionTime"]
    world.silent()
    world.spend(10.0)
    stored = {each["type"]: each for each in world.body()["status"]["conditions"]}
    assert stored["RemediationAllowed"]["status"] == "False"
    assert stored["RemediationAllowed"]["lastTransitionTime"] != ours["lastTransitionTime"]
    assert stored["Theirs"] == theirs


@IN_CLUSTER_API
def test_cluster_apis_check_belongs_to_its_cluster(spelling: Spelling) -> None:
    world = new_world(spelling)
    world.check_machines(metadata={"labels": {"mine": "yes"}, "ownerReferences": [{"kind": "Other", "uid": "o"}]})
    world.spend(10.0)
    metadata = world.body()["metadata"]
    assert metadata["labels"] == {"mine": "yes", "cluster.x-k8s.io/cluster-name": CLUSTER}
    assert [(each["kind"], each["uid"]) for each in metadata["ownerReferences"]] == [
        ("Other", "o"),
        ("Cluster", "cluster"),
    ]
    assert len(world.steps(JoinCluster)) == 1


@IN_EACH
def test_a_conflict_is_tried_again(spelling: Spelling) -> None:
    world = new_world(spelling)
    world.check_machines(most=0)
    world.spend(10.0)
    world.silent()
    world.driver.turn()
    assert world.under_way
    world.api.patch(KIND, f"{PLACE}/workers", {"metadata": {"labels": {"touched": "yes"}}})
    world.spend(30.0)
    assert world.counts()[:2] == (5, 4)


def test_two_checks_of_one_machine_are_told_and_remediate_it_once() -> None:
    for spelling in ALL:
        world = new_world(spelling)
        world.template()
        world.check_machines("one", template=TEMPLATE)
        world.check_machines("two", template={**TEMPLATE, "name": "other"})
        world.silent()
        world.spend(60.0)
        assert world.reasons().count("SameMachines") == 2
        assert len({each.machine.key for each in world.steps(MakeObject)}) == 1  # type: ignore[attr-defined]
        assert {each.check.name for each in world.steps(MakeObject)} == {"one"}  # type: ignore[attr-defined]
        assert world.object() is not None


def test_two_checks_that_differ_do_not_fight_over_a_machines_conditions() -> None:
    for spelling in (V1BETA1, V1BETA2):
        world = new_world(spelling)
        world.check_machines("one")
        world.check_machines("two")
        disk = conditions(spelling, ("Disk", "True", 10))
        spec = {"checks": {"unhealthyNodeConditions": disk}} if spelling is V1BETA2 else {"unhealthyConditions": disk}
        world.api.patch(KIND, f"{PLACE}/one", {"spec": spec})
        world.spend(10.0)
        before = len(world.steps(TellMachine))
        world.silent()
        world.spend(200.0)
        assert world.counts("one") == (5, 5, 5)
        assert world.counts("two") == (5, 4, 4)
        assert {status for status, _ in world.said_of("HealthCheckSucceeded")} == {"False"}
        assert len(world.steps(TellMachine)) == before + 1
