"""When a MachineHealthCheck calls a Machine healthy, pending or unhealthy, at the very second."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pp_hostd.leader.facts.ages import Ages
from pp_hostd.leader.facts.nodes import NodeCondition, NodeFacts
from pp_hostd.leader.requests.health_checks.judge import Health, Opinion
from pp_hostd.leader.requests.machine_health_checks.conditions import Spelling
from pp_hostd.leader.requests.machine_health_checks.facts import (
    ClusterFacts,
    MachineFacts,
    MachineHealthSeen,
    parse_machine_facts,
)
from pp_hostd.leader.requests.machine_health_checks.judge import Remediations, Target, opinion, targets
from pp_hostd.leader.requests.machine_health_checks.rules import Rules
from pp_hostd.model.keys import PAUSED_MACHINE, RECREATED, SKIP_REMEDIATION
from tests.leader.health.mhc_objects import (
    ALL,
    CLUSTER,
    CLUSTER_API,
    OPENSHIFT,
    PLACE,
    SILENT,
    TEMPLATE,
    V1BETA1,
    V1BETA2,
    health_check,
    parsed,
    rules_of,
    spec_of,
)

IN_EACH = pytest.mark.parametrize("spelling", ALL, ids=lambda each: each.value)
IN_CLUSTER_API = pytest.mark.parametrize("spelling", CLUSTER_API, ids=lambda each: each.value)
NOW_AT, WALLCLOCK = 5000.0, 1_000_000.0
READY_CLUSTER = ClusterFacts("cluster.x-k8s.io/v1beta2", CLUSTER, "cluster", infrastructure=True, initialized=True)


def node(*conditions: tuple[str, str, float], reason: str = "") -> NodeFacts:
    """With conditions that it has had for so many seconds."""
    found = tuple(NodeCondition(each, status, WALLCLOCK - age, reason) for each, status, age in conditions)
    return NodeFacts("x", "node-x", 0.0, {}, found)


WELL = node(("Ready", "True", 1000))


def machine(**changes: Any) -> MachineFacts:
    found = MachineFacts(PLACE, "x", "machine-x", WALLCLOCK - 10_000, {}, "x", (), ())
    return replace(found, **changes)


def said(
    spelling: Spelling,
    target: Target,
    rules: Rules | None = None,
    later_seconds: float = 0.0,
    ahead_seconds: float = 0.0,
    ages: Ages | None = None,
) -> Opinion:
    """`ahead_seconds`: the wall clock was set forward by so much."""
    rules = rules_of(spelling) if rules is None else rules
    ages = ages or Ages({}, NOW_AT + later_seconds, WALLCLOCK + later_seconds + ahead_seconds)
    target = replace(target, cluster=READY_CLUSTER) if target.cluster is None else target
    return opinion(rules, target, ages, cluster_api=spelling.is_cluster_api)


def with_node(facts: NodeFacts | None, of_machine: MachineFacts | None = None, **more: Any) -> Target:
    return Target(of_machine or machine(), facts, node_exists=facts is not None, **more)


# Conditions.


@IN_EACH
@pytest.mark.parametrize(("age", "health"), [(299, Health.PENDING), (300, Health.PENDING), (301, Health.UNHEALTHY)])
def test_a_condition_makes_it_unhealthy_once_it_is_older_than_its_timeout(
    spelling: Spelling, age: float, health: Health
) -> None:
    found = said(spelling, with_node(node(("Ready", "Unknown", age))))
    assert found.health is health
    if health is Health.PENDING:
        assert found.due_at == NOW_AT + 300 - age + 1
    else:
        assert found.reason == "UnhealthyNode"


@IN_EACH
def test_any_one_condition_is_enough_and_all_messages_are_joined(spelling: Spelling) -> None:
    rules = rules_of(spelling, spec_of(spelling, SILENT, ("Disk", "True", 10), ("Fan", "True", 10_000)))
    found = said(spelling, with_node(node(("Ready", "True", 1000), ("Disk", "True", 11))), rules)
    disk = "Condition Disk on Node is reporting status True with reason  for more than 10s"
    assert (found.health, found.sentence) == (Health.UNHEALTHY, disk)
    both = said(spelling, with_node(node(("Ready", "Unknown", 301), ("Disk", "True", 11))), rules)
    ready = "Condition Ready on Node is reporting status Unknown with reason  for more than 5m0s"
    assert both.sentence == f"{ready}; {disk}"


@IN_CLUSTER_API
@pytest.mark.parametrize(("age", "health"), [(60, Health.PENDING), (61, Health.UNHEALTHY)])
def test_a_condition_of_the_machine_itself_counts_too(spelling: Spelling, age: float, health: Health) -> None:
    rules = rules_of(spelling, spec_of(spelling, of_machines=(("BootstrapReady", "False", 60),)))
    sick = machine(conditions=(NodeCondition("BootstrapReady", "False", WALLCLOCK - age, ""),))
    found = said(spelling, with_node(WELL, sick), rules)
    assert found.health is health
    assert found.reason == ("UnhealthyMachine" if health is Health.UNHEALTHY else "Pending")


@IN_CLUSTER_API
@pytest.mark.parametrize(
    ("target", "of_node"),
    [
        (with_node(node(("Ready", "Unknown", 301))), "Condition Ready on Node is reporting status Unknown"),
        (with_node(None), "Node x has been deleted"),
        (Target(machine(node="")), "Node failed to report startup in 10m0s"),
    ],
    ids=["a silent Node", "no Node any more", "no Node yet"],
)
def test_a_condition_of_the_machine_comes_before_what_its_node_is_like(
    spelling: Spelling, target: Target, of_node: str
) -> None:
    rules = rules_of(spelling, spec_of(spelling, of_machines=(("Disk", "False", 60),)))
    disk = NodeCondition("Disk", "False", WALLCLOCK - 61, "Smart")
    sick = replace(target, machine=replace(target.machine, conditions=(disk,), created_wallclock=WALLCLOCK - 601))
    found = said(spelling, sick, rules)
    assert (found.health, found.reason) == (Health.UNHEALTHY, "UnhealthyMachine")
    first, second = found.sentence.split("; ")
    assert first == "Condition Disk on Machine is reporting status False with reason Smart for more than 1m0s"
    assert second.startswith(of_node)


@IN_CLUSTER_API
def test_a_recreated_node_has_its_start_up_time_whatever_the_machines_conditions_say(spelling: Spelling) -> None:
    rules = rules_of(spelling, spec_of(spelling, of_machines=(("Disk", "False", 60),)))
    sick = machine(conditions=(NodeCondition("Disk", "False", WALLCLOCK - 61, ""),))
    assert (
        said(spelling, with_node(node(("Ready", "Unknown", 10), reason=RECREATED), sick), rules).health
        is Health.PENDING
    )


@IN_EACH
def test_a_clock_that_is_set_forward_makes_nobody_unhealthy(spelling: Spelling) -> None:
    silent = with_node(node(("Ready", "Unknown", 10)))
    first = Ages({}, NOW_AT, WALLCLOCK)
    assert said(spelling, silent, ages=first).health is Health.PENDING
    ahead = Ages(first.seen, NOW_AT + 290, WALLCLOCK + 290 + 86400)
    assert said(spelling, silent, ages=ahead).health is Health.PENDING
    later = Ages(ahead.seen, NOW_AT + 291, WALLCLOCK + 291 + 86400)
    assert said(spelling, silent, ages=later).health is Health.UNHEALTHY


@IN_EACH
def test_a_machine_is_healthy_if_its_node_is_and_nobody_deletes_it(spelling: Spelling) -> None:
    assert said(spelling, with_node(WELL)).health is Health.HEALTHY
    assert said(spelling, with_node(WELL, machine(deleting=True))).health is Health.PENDING


def test_openshifts_machine_is_not_healthy_while_it_is_annotated() -> None:
    annotated = with_node(WELL, machine(annotated=True))
    assert said(OPENSHIFT, annotated).health is Health.PENDING
    assert said(V1BETA2, annotated).health is Health.HEALTHY
    by_object = rules_of(OPENSHIFT, spec_of(OPENSHIFT, template=TEMPLATE))
    assert said(OPENSHIFT, annotated, by_object).health is Health.HEALTHY, "else its object would never go"


@IN_EACH
def test_a_node_without_a_ready_condition_is_pending(spelling: Spelling) -> None:
    assert said(spelling, with_node(node(("Disk", "False", 1000)))).health is Health.PENDING


# Marks that count at once.


@IN_CLUSTER_API
def test_the_annotation_remediate_machine_counts_at_once(spelling: Spelling) -> None:
    found = said(spelling, with_node(WELL, machine(remediate=True)))
    assert (found.health, found.reason) == (Health.UNHEALTHY, "HasRemediateAnnotation")


def test_openshifts_failed_machine_is_unhealthy_at_once() -> None:
    found = said(OPENSHIFT, with_node(WELL, machine(phase="Failed")))
    assert (found.health, found.reason) == (Health.UNHEALTHY, "MachineFailed")
    assert said(V1BETA2, with_node(WELL, machine(phase="Failed"))).health is Health.HEALTHY


@IN_EACH
def test_a_missing_node_is_unhealthy_at_once(spelling: Spelling) -> None:
    found = said(spelling, with_node(None))
    assert (found.health, found.reason) == (Health.UNHEALTHY, "NodeDeleted")


@IN_EACH
def test_a_node_that_can_not_be_read_is_not_missing(spelling: Spelling) -> None:
    assert said(spelling, Target(machine(), None, node_exists=True)).health is Health.PENDING


# A remediation of this leader.


@IN_EACH
@pytest.mark.parametrize("facts", [None, node(("Ready", "Unknown", 9999))])
@pytest.mark.parametrize("marks", [{}, {"remediate": True, "phase": "Failed"}])
def test_nobody_is_unhealthy_while_a_remediation_of_this_leader_has_it(
    spelling: Spelling, facts: NodeFacts | None, marks: dict[str, Any]
) -> None:
    found = said(spelling, with_node(facts, machine(**marks), held=True))
    assert (found.health, found.reason) == (Health.PENDING, "Remediating")


@IN_EACH
@pytest.mark.parametrize(("facts", "health"), [(None, Health.PENDING), (WELL, Health.HEALTHY)])
def test_one_that_is_only_requested_may_be_healthy_again_but_is_not_unhealthy(
    spelling: Spelling, facts: NodeFacts | None, health: Health
) -> None:
    assert said(spelling, with_node(facts, requested=True)).health is health


@IN_EACH
@pytest.mark.parametrize(("age", "health"), [(600, Health.PENDING), (601, Health.UNHEALTHY)])
def test_after_a_remediation_the_start_up_timeout_counts_from_the_new_node(
    spelling: Spelling, age: float, health: Health
) -> None:
    found = said(spelling, with_node(node(("Ready", "Unknown", age), reason=RECREATED)))
    assert (found.health, found.not_back) == (health, health is Health.UNHEALTHY)


@IN_EACH
@pytest.mark.parametrize(("later", "health"), [(600, Health.PENDING), (601, Health.UNHEALTHY)])
def test_after_a_remediation_that_kept_the_node_it_counts_from_its_end(
    spelling: Spelling, later: float, health: Health
) -> None:
    silent = with_node(node(("Ready", "Unknown", 9999)), released_at=NOW_AT)
    assert said(spelling, silent, later_seconds=later).health is health


# Start-up.


@pytest.mark.parametrize(("age", "health"), [(600, Health.PENDING), (601, Health.UNHEALTHY)])
def test_openshifts_machine_without_a_node_has_the_timeout_since_its_last_update(age: float, health: Health) -> None:
    found = said(OPENSHIFT, Target(machine(node="", updated_wallclock=WALLCLOCK - age)))
    assert found.health is health
    assert found.reason == ("NodeStartupTimeout" if health is Health.UNHEALTHY else "NodeStartup")


def test_openshifts_machine_that_was_never_updated_is_pending() -> None:
    assert said(OPENSHIFT, Target(machine(node=""))).health is Health.PENDING


@IN_CLUSTER_API
@pytest.mark.parametrize("latest", ["created", "cluster", "control plane", "machine"])
@pytest.mark.parametrize(("age", "health"), [(600, Health.PENDING), (601, Health.UNHEALTHY)])
def test_cluster_apis_machine_without_a_node_has_the_timeout_since_the_latest_of_four(
    spelling: Spelling, latest: str, age: float, health: Health
) -> None:
    since = dict.fromkeys(("created", "cluster", "control plane", "machine"), WALLCLOCK - 9999)
    since[latest] = WALLCLOCK - age
    cluster = replace(
        READY_CLUSTER,
        infrastructure_wallclock=since["cluster"],
        initialized_wallclock=since["control plane"],
    )
    alone = machine(node="", created_wallclock=since["created"], infrastructure_wallclock=since["machine"])
    assert said(spelling, Target(alone, cluster=cluster)).health is health


@IN_EACH
def test_no_start_up_timeout_means_no_end(spelling: Spelling) -> None:
    never = rules_of(spelling, spec_of(spelling, startup=0))
    found = said(spelling, Target(machine(node="", updated_wallclock=0.0)), never)
    assert (found.health, found.due_at) == (Health.PENDING, float("inf"))


@IN_CLUSTER_API
@pytest.mark.parametrize(
    ("infrastructure", "initialized", "control_plane", "judges"),
    [
        (True, True, False, True),
        (False, True, False, False),
        (True, False, False, False),
        (True, False, True, True),
        (False, False, True, False),
    ],
)
def test_nothing_is_judged_before_the_cluster_is_ready(
    spelling: Spelling, infrastructure: bool, initialized: bool, control_plane: bool, judges: bool
) -> None:
    cluster = replace(READY_CLUSTER, infrastructure=infrastructure, initialized=initialized)
    for target in (Target(machine(node="", control_plane=control_plane)), with_node(None)):
        of_machine = replace(target.machine, control_plane=control_plane)
        found = said(spelling, replace(target, machine=of_machine, cluster=cluster))
        assert (found.health is Health.UNHEALTHY) is judges


@IN_CLUSTER_API
def test_nobody_is_healthy_before_the_control_plane_is_initialized(spelling: Spelling) -> None:
    early = with_node(WELL, cluster=replace(READY_CLUSTER, initialized=False))
    assert said(spelling, early).health is Health.PENDING


# Targets.


def selected(spelling: Spelling, **annotations: str) -> list[str]:
    labels = {"pool": "a", "cluster.x-k8s.io/cluster-name": CLUSTER}
    skipped = next(iter(annotations), "")
    found = {
        f"{PLACE}/a": machine(name="a", labels=labels),
        f"{PLACE}/b": machine(name="b", labels=labels, skipped=skipped),
        f"{PLACE}/c": machine(name="c", labels={**labels, "pool": "b"}),
        "elsewhere/d": machine(namespace="elsewhere", name="d", labels=labels),
    }
    check = parsed(health_check(spelling))
    assert isinstance(check.rules, Rules)
    return [
        each.machine.name for each in targets(check, check.rules, MachineHealthSeen(machines=found), Remediations())
    ]


@IN_EACH
def test_targets_are_the_machines_of_its_namespace_that_match(spelling: Spelling) -> None:
    assert selected(spelling) == ["a", "b"]


@pytest.mark.parametrize("annotation", [PAUSED_MACHINE, SKIP_REMEDIATION])
def test_cluster_api_leaves_out_machines_that_are_paused_or_not_to_be_remediated(annotation: str) -> None:
    assert selected(V1BETA2, **{annotation: ""}) == selected(V1BETA1, **{annotation: ""}) == ["a"]
    assert selected(OPENSHIFT, **{annotation: ""}) == ["a", "b"]


def test_facts_are_read_from_the_machine_itself() -> None:
    moment = "2026-01-01T00:00:00Z"
    metadata = {
        "name": "x",
        "namespace": PLACE,
        "uid": "u",
        "creationTimestamp": moment,
        "deletionTimestamp": moment,
        "labels": {"cluster.x-k8s.io/control-plane": ""},
        "annotations": {"cluster.x-k8s.io/remediate-machine": "", SKIP_REMEDIATION: ""},
        "ownerReferences": [{"kind": "MachineSet", "controller": True}],
    }
    ready = {"type": "InfrastructureReady", "status": "True", "lastTransitionTime": moment}
    status = {"phase": "Failed", "lastUpdated": moment, "nodeRef": {"name": "n"}, "conditions": [ready]}
    found = parse_machine_facts({"apiVersion": V1BETA2.value, "metadata": metadata, "status": status})
    assert isinstance(found, MachineFacts)
    assert (found.node, found.phase, found.skipped) == ("n", "Failed", SKIP_REMEDIATION)
    assert found.deleting and found.owned and found.control_plane and found.remediate
    assert found.created_wallclock == found.updated_wallclock == found.infrastructure_wallclock == 1767225600.0
