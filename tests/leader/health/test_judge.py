"""The health of one Node: boundaries by the second, start-up, and clocks that step."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from pp_hostd.leader.facts.ages import Ages, Sightings
from pp_hostd.leader.facts.nodes import NodeFacts, parse_node_facts
from pp_hostd.leader.requests.health_checks.check import HealthCheck, Rules, parse_health_check
from pp_hostd.leader.requests.health_checks.judge import Health, Judgement, Opinion, judged, opinion
from pp_hostd.model.keys import RECREATED, UNREACHABLE
from pp_hostd.model.moment import render_moment

WALLCLOCK = 1_800_000_000
NOW = 5000.0
NOT_READY = [{"type": "Ready", "status": "Unknown", "timeout": "60s"}]


def rules(**spec: Any) -> Rules:
    spec = {"selector": {}, "unhealthyConditions": NOT_READY, **spec}
    check = parse_health_check({"metadata": {"name": "a", "uid": "u", "resourceVersion": "1"}, "spec": spec})
    assert isinstance(check, HealthCheck)
    assert isinstance(check.rules, Rules), check.rules
    return check.rules


def moment(seconds: float) -> str:
    return render_moment(datetime.fromtimestamp(seconds, timezone.utc))


def node(*conditions: tuple[str, str, float], reason: str = "", created: float = 0.0, **labels: str) -> NodeFacts:
    """Of each condition type, status and for how long it has been so."""
    told = [
        {"type": of_type, "status": status, "lastTransitionTime": moment(WALLCLOCK - seconds), "reason": reason}
        for of_type, status, seconds in conditions
    ]
    metadata = {"name": "x", "uid": "node-x", "creationTimestamp": moment(WALLCLOCK - created), "labels": labels}
    found = parse_node_facts({"metadata": metadata, "status": {"conditions": told}}, {})
    assert isinstance(found, NodeFacts)
    return found


def said(by: Rules, facts: NodeFacts, now: float = NOW, wallclock: float = WALLCLOCK) -> Opinion:
    return opinion(by, facts, Ages({}, now, wallclock))


@pytest.mark.parametrize(
    ("seconds", "health"),
    [(59, Health.PENDING), (60, Health.PENDING), (61, Health.UNHEALTHY), (3600, Health.UNHEALTHY)],
)
def test_a_condition_counts_once_its_timeout_has_passed(seconds: int, health: Health) -> None:
    assert said(rules(), node(("Ready", "Unknown", seconds))).health is health


def test_a_pending_one_is_looked_at_one_second_after_its_timeout() -> None:
    assert said(rules(), node(("Ready", "Unknown", 20))).due_at == NOW + 41


def test_any_condition_is_enough_and_all_that_count_are_told() -> None:
    more = [
        *NOT_READY,
        {"type": "Disk", "status": "True", "timeout": "1h"},
        {"type": "Net", "status": "True", "timeout": "0"},
    ]
    facts = node(("Ready", "Unknown", 90), ("Disk", "True", 90), ("Net", "True", 1))
    found = said(rules(unhealthyConditions=more), facts)
    assert found.health is Health.UNHEALTHY
    assert found.sentence == "it has had Ready=Unknown for more than 60 s; it has had Net=True for more than 0 s"


def test_another_status_or_type_is_healthy() -> None:
    assert said(rules(), node(("Ready", "True", 9000), ("Disk", "Unknown", 9000))).health is Health.HEALTHY


def test_unreachable_is_a_condition_like_others() -> None:
    by = rules(unhealthyConditions=[], unreachableSeconds=5)
    assert said(by, node(("Ready", "True", 90), (UNREACHABLE, "True", 5))).health is Health.PENDING
    assert said(by, node(("Ready", "True", 90), (UNREACHABLE, "True", 6))).health is Health.UNHEALTHY
    assert said(by, node(("Ready", "True", 90), (UNREACHABLE, "False", 6))).health is Health.HEALTHY


def test_a_condition_without_a_time_never_gets_old() -> None:
    facts = parse_node_facts(
        {"metadata": {"name": "x", "uid": "u"}, "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}, {}
    )
    assert isinstance(facts, NodeFacts)
    assert said(rules(), facts).health is Health.PENDING


# Start-up.


@pytest.mark.parametrize(("created", "health"), [(599, Health.PENDING), (600, Health.PENDING), (601, Health.UNHEALTHY)])
def test_a_node_that_never_reported_is_pending_and_then_unhealthy(created: int, health: Health) -> None:
    assert said(rules(), node(created=created)).health is health


def test_the_start_up_timeout_can_be_switched_off() -> None:
    assert said(rules(nodeStartupTimeout="0"), node(created=10**6)) == Opinion(
        Health.PENDING, "NodeStartup", "it has never reported whether it is ready"
    )


@pytest.mark.parametrize(("seconds", "health"), [(61, Health.PENDING), (600, Health.PENDING), (601, Health.UNHEALTHY)])
def test_a_recreated_node_has_the_start_up_timeout_to_come_back(seconds: int, health: Health) -> None:
    """Whatever else is said of it meanwhile: its host boots."""
    facts = node(("Ready", "Unknown", seconds), (UNREACHABLE, "True", 60), reason=RECREATED)
    assert said(rules(unreachableSeconds=5), facts).health is health


# Clocks.


def ages(sightings: Sightings, now: float, wallclock: float) -> Ages:
    return Ages(sightings, now, wallclock)


def test_a_wall_clock_that_is_set_forward_makes_nobody_unhealthy() -> None:
    facts = node(("Ready", "Unknown", 10))
    first = ages({}, NOW, WALLCLOCK)
    assert opinion(rules(), facts, first).health is Health.PENDING
    hour_later = ages(first.seen, NOW + 1, WALLCLOCK + 3600)
    assert opinion(rules(), facts, hour_later).health is Health.PENDING
    really = ages(hour_later.seen, NOW + 51, WALLCLOCK + 3650)
    assert opinion(rules(), facts, really).health is Health.UNHEALTHY


def test_a_wall_clock_that_is_set_back_makes_nobody_unhealthy_sooner() -> None:
    facts = node(("Ready", "Unknown", 10))
    first = ages({}, NOW, WALLCLOCK)
    opinion(rules(), facts, first)
    back = ages(first.seen, NOW + 100, WALLCLOCK - 3600 + 100)
    assert opinion(rules(), facts, back).health is Health.PENDING


def test_a_condition_that_comes_again_begins_again() -> None:
    first = ages({}, NOW, WALLCLOCK)
    opinion(rules(), node(("Ready", "Unknown", 59)), first)
    again = ages(first.seen, NOW + 30, WALLCLOCK + 30)
    assert opinion(rules(), node(("Ready", "Unknown", -30)), again).health is Health.PENDING


# All Nodes.


def test_nodes_that_did_not_change_are_not_judged_again() -> None:
    by, facts = rules(selector={"matchLabels": {"pool": "a"}}), node(("Ready", "True", 5), pool="a")
    first = judged(by, {"x": facts}, Judgement(), Ages({}, NOW, WALLCLOCK))
    second = judged(by, {"x": facts}, first, Ages({}, NOW + 1, WALLCLOCK + 1))
    assert second.known["x"] is first.known["x"]
    assert second.selected == {"x"} and not second.sick


def test_a_pending_node_is_judged_again_although_it_did_not_change() -> None:
    facts = node(("Ready", "Unknown", 50))
    first = judged(rules(), {"x": facts}, Judgement(), Ages({}, NOW, WALLCLOCK))
    assert first.sick["x"].health is Health.PENDING
    assert first.due_at == NOW + 11
    second = judged(rules(), {"x": facts}, first, Ages({}, NOW + 11, WALLCLOCK + 11))
    assert second.sick["x"].health is Health.UNHEALTHY
