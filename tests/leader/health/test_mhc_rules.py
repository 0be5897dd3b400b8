"""MachineHealthChecks of OpenShift and Cluster API as the leader reads them: fields, defaults, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from pp_hostd.leader.requests.health_checks.check import UnhealthyCondition
from pp_hostd.leader.requests.machine_health_checks.conditions import Spelling
from pp_hostd.leader.requests.machine_health_checks.rules import NEVER_JUDGED
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
    conditions,
    health_check,
    parsed,
    rules_of,
    spec_of,
    why_unreadable,
)

IN_EACH = pytest.mark.parametrize("spelling", ALL, ids=lambda each: each.value)
IN_CLUSTER_API = pytest.mark.parametrize("spelling", CLUSTER_API, ids=lambda each: each.value)
OF_CLUSTER = {"pool": "a", "cluster.x-k8s.io/cluster-name": CLUSTER}


# Selectors.


def test_openshifts_empty_selector_selects_all() -> None:
    assert rules_of(OPENSHIFT, spec_of(OPENSHIFT, selector={})).selector.matches({})


@IN_CLUSTER_API
def test_cluster_apis_selector_is_not_empty_and_selects_the_machines_of_its_cluster_alone(spelling: Spelling) -> None:
    assert "selector is empty" in why_unreadable(spelling, spec_of(spelling, selector={}))
    selector = rules_of(spelling).selector
    assert selector.matches(OF_CLUSTER)
    assert not selector.matches({"pool": "a"})
    assert not selector.matches({**OF_CLUSTER, "cluster.x-k8s.io/cluster-name": "other"})
    assert not selector.matches({**OF_CLUSTER, "pool": "b"})


@IN_EACH
def test_expressions_select_too(spelling: Spelling) -> None:
    expressions = [{"key": "pool", "operator": "NotIn", "values": ["b"]}, {"key": "old", "operator": "DoesNotExist"}]
    selector = rules_of(spelling, spec_of(spelling, selector={"matchExpressions": expressions})).selector
    assert selector.matches(OF_CLUSTER)
    assert not selector.matches({**OF_CLUSTER, "pool": "b"})
    assert not selector.matches({**OF_CLUSTER, "old": ""})


# Conditions.


@IN_EACH
def test_unhealthy_conditions_are_read_in_every_spelling(spelling: Spelling) -> None:
    found = rules_of(spelling, spec_of(spelling, SILENT, ("Ready", "False", 60))).conditions
    assert found == (UnhealthyCondition("Ready", "Unknown", 300.0), UnhealthyCondition("Ready", "False", 60.0))


@pytest.mark.parametrize("spelling", [OPENSHIFT, V1BETA1])
@pytest.mark.parametrize(
    ("text", "seconds"), [("5m", 300.0), ("1.5h", 5400.0), ("1m30s", 90.0), ("500ms", 0.5), ("100ns", 1e-7)]
)
def test_timeouts_are_durations_as_go_writes_them(spelling: Spelling, text: str, seconds: float) -> None:
    spec = spec_of(spelling)
    spec["unhealthyConditions"][0]["timeout"] = text
    assert rules_of(spelling, spec).conditions[0].timeout_seconds == pytest.approx(seconds)


def test_openshifts_needs_a_condition_and_cluster_apis_does_not() -> None:
    assert why_unreadable(OPENSHIFT, {**spec_of(OPENSHIFT), "unhealthyConditions": []})
    assert not why_unreadable(V1BETA1, {**spec_of(V1BETA1), "unhealthyConditions": []})
    assert not why_unreadable(V1BETA2, {**spec_of(V1BETA2), "checks": {"nodeStartupTimeoutSeconds": 60}})


@IN_CLUSTER_API
def test_conditions_of_machines_are_read_but_never_those_that_follow_from_others(spelling: Spelling) -> None:
    spec = spec_of(spelling, of_machines=(("BootstrapReady", "False", 60),))
    assert rules_of(spelling, spec).machine_conditions == (UnhealthyCondition("BootstrapReady", "False", 60.0),)
    for name in NEVER_JUDGED:
        assert name in why_unreadable(spelling, spec_of(spelling, of_machines=((name, "False", 60),)))


# How many.


@IN_EACH
@pytest.mark.parametrize(
    ("most", "expected", "allowed"),
    [(None, 7, 7), ("40%", 25, 10), ("40%", 6, 2), (3, 100, 3), ("0%", 9, 0), (-1, 9, 0)],
)
def test_a_part_is_rounded_down_and_all_may_be_unhealthy_by_default(
    spelling: Spelling, most: object, expected: int, allowed: int
) -> None:
    limit = rules_of(spelling, spec_of(spelling, most=most)).limit
    assert limit.most(expected) == allowed
    assert limit.allows(allowed, expected)
    assert not limit.allows(allowed + 1, expected)


@IN_CLUSTER_API
def test_a_range_is_inclusive_and_wins(spelling: Spelling) -> None:
    limit = rules_of(spelling, spec_of(spelling, most=0, within="[2-4]")).limit
    assert [limit.allows(count, 10) for count in (1, 2, 4, 5)] == [False, True, True, False]


@IN_EACH
@pytest.mark.parametrize("most", ["some", "101%", "-5%", 1.5, True])
def test_a_number_that_can_not_be_parsed_remediates_nobody(spelling: Spelling, most: object) -> None:
    assert why_unreadable(spelling, spec_of(spelling, most=most))


def test_a_number_as_a_text_is_openshifts_alone() -> None:
    assert rules_of(OPENSHIFT, spec_of(OPENSHIFT, most="3")).limit.most(9) == 3
    assert all(why_unreadable(spelling, spec_of(spelling, most="3")) for spelling in CLUSTER_API)


def test_a_refused_field_is_called_as_its_api_calls_it() -> None:
    name = "remediation.triggerIf.unhealthyLessThanOrEqualTo is 'some'"
    assert name in why_unreadable(V1BETA2, spec_of(V1BETA2, most="some"))
    assert "unhealthyInRange is [5-3]" in why_unreadable(V1BETA2, spec_of(V1BETA2, within="[5-3]"))
    assert "unhealthyRange is [5-3]" in why_unreadable(V1BETA1, spec_of(V1BETA1, within="[5-3]"))


# Start-up, and the template.


@IN_EACH
def test_the_start_up_timeout_is_ten_minutes_and_none_switches_it_off(spelling: Spelling) -> None:
    assert rules_of(spelling).startup_seconds == 600.0
    assert rules_of(spelling, spec_of(spelling, startup=0)).startup_seconds == 0.0
    assert rules_of(spelling, spec_of(spelling, startup=30)).startup_seconds == 30.0


def test_cluster_apis_start_up_timeout_is_at_least_half_a_minute() -> None:
    assert all(why_unreadable(spelling, spec_of(spelling, startup=29)) for spelling in CLUSTER_API)
    assert rules_of(OPENSHIFT, spec_of(OPENSHIFT, startup=29)).startup_seconds == 29.0


@IN_EACH
def test_the_templates_namespace_is_the_health_checks(spelling: Spelling) -> None:
    template = rules_of(spelling, spec_of(spelling, template=TEMPLATE)).template
    assert template is not None
    assert (template.namespace, template.name, template.objects.kind) == (PLACE, "reset", "PoisonPillRemediation")
    assert rules_of(spelling).template is None


def test_a_template_elsewhere_is_refused() -> None:
    there = {**TEMPLATE, "namespace": "there"}
    assert all(why_unreadable(each, spec_of(each, template=there)) for each in (OPENSHIFT, V1BETA1))
    here = {**TEMPLATE, "namespace": PLACE}
    assert not any(why_unreadable(each, spec_of(each, template=here)) for each in (OPENSHIFT, V1BETA1))


@pytest.mark.parametrize("spelling", [OPENSHIFT, V1BETA1])
def test_the_proposals_name_of_the_template_counts_too(spelling: Spelling) -> None:
    template = rules_of(spelling, {**spec_of(spelling), "externalRemediationTemplate": TEMPLATE}).template
    assert template is not None and template.name == "reset"


@IN_EACH
@pytest.mark.parametrize(
    "change", [{"kind": "PoisonPillRemediation"}, {"kind": "Template"}, {"apiVersion": "v1"}, {"name": "No Name"}]
)
def test_a_template_that_is_none_is_refused(spelling: Spelling, change: dict[str, str]) -> None:
    assert why_unreadable(spelling, spec_of(spelling, template={**TEMPLATE, **change}))


# Everything that can't be read.


@IN_EACH
@pytest.mark.parametrize(
    "garbled",
    [
        [{"type": "Ready", "status": "No", "timeout": "60s", "timeoutSeconds": 60}],
        [{"status": "True", "timeout": "60s", "timeoutSeconds": 60}],
        [{"type": "Ready", "status": "True", "timeout": "soon", "timeoutSeconds": "60"}],
        [{"type": "Ready", "status": "True", "timeout": "-5s", "timeoutSeconds": -5}],
        [{"type": "Ready", "status": "True"}],
        ["Ready"],
        {"type": "Ready"},
    ],
)
def test_conditions_that_can_not_be_read_remediate_nobody(spelling: Spelling, garbled: Any) -> None:
    spec = spec_of(spelling)
    if spelling is V1BETA2:
        spec["checks"]["unhealthyNodeConditions"] = garbled
    else:
        spec["unhealthyConditions"] = garbled
    assert why_unreadable(spelling, spec)


@IN_CLUSTER_API
def test_cluster_apis_names_its_cluster(spelling: Spelling) -> None:
    spec = spec_of(spelling)
    del spec["clusterName"]
    assert "clusterName" in why_unreadable(spelling, spec)


def test_openshifts_strategy_is_an_annotation() -> None:
    strategy = {"machine.openshift.io/remediation-strategy": "external-baremetal"}
    assert rules_of(OPENSHIFT, annotations=strategy).external
    assert not rules_of(OPENSHIFT).external
    assert not rules_of(OPENSHIFT, annotations={**strategy, **dict.fromkeys(strategy, "other")}).external


def test_each_condition_has_the_field_of_its_api() -> None:
    assert why_unreadable(V1BETA2, {**spec_of(V1BETA2), "checks": {"unhealthyNodeConditions": _first(V1BETA1)}})
    assert why_unreadable(V1BETA1, {**spec_of(V1BETA1), "unhealthyConditions": _first(V1BETA2)})


def _first(spelling: Spelling) -> list[dict[str, Any]]:
    return conditions(spelling, SILENT)


# Others that write its status.


@IN_EACH
@pytest.mark.parametrize(
    ("entry", "writer"),
    [
        ({"manager": "manager", "subresource": "status"}, "manager"),
        ({"manager": "machine-healthcheck", "fieldsV1": {"f:status": {}}}, "machine-healthcheck"),
        ({"subresource": "status"}, "somebody without a name"),
        ({"manager": "pp-hostd", "subresource": "status"}, ""),
        ({"manager": "kubectl", "fieldsV1": {"f:spec": {}}}, ""),
        ({"manager": "manager", "fieldsV1": {"f:metadata": {"f:ownerReferences": {}}}}, ""),
    ],
)
def test_another_controller_is_known_by_the_fields_that_it_wrote(
    spelling: Spelling, entry: dict[str, Any], writer: str
) -> None:
    ours = {"manager": "pp-hostd", "subresource": "status"}
    assert parsed(health_check(spelling, managedFields=[ours, entry])).writer == writer
