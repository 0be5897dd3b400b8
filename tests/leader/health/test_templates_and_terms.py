"""NodeHealthChecks with templates, from the fault to the end; overlaps of any kind; what a new leader must not undo."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pp_hostd.leader.remedies.poison_pill.steps import Condemn
from pp_hostd.leader.requests.health_checks.check import HealthSeen
from pp_hostd.leader.requests.health_checks.steps import (
    MakeRemediation,
    RemoveRemediation,
    RequestRemediation,
    Withdraw,
)
from pp_hostd.leader.steps.nodes import DeleteNode
from pp_hostd.model.condemnation import NotRequested, Requested
from pp_hostd.model.keys import PAUSED_NODE
from pp_hostd.model.observed import Observed
from pp_hostd.model.settings import Remediations, Settings
from pp_hostd.model.step import Written
from tests.leader.health.checked import KIND, CheckedWorld
from tests.leader.virtual_host import HOST

SETTINGS = Settings(remediations=Remediations(poison_pill=True))


def with_templates(machines: str, *namespaces: str) -> CheckedWorld:
    world = CheckedWorld(machines, settings=SETTINGS)
    for namespace in namespaces:
        metadata = {"name": "reset", "namespace": namespace}
        body = {"metadata": metadata, "spec": {"template": {"spec": {"retryLimit": 0}}}}
        world.api.put("poisonpillremediationtemplates", f"{namespace}/reset", body)
    return world


def template(namespace: str) -> dict[str, str]:
    kind = "PoisonPillRemediationTemplate"
    return {"apiVersion": "pp-hostd.io/v1", "kind": kind, "name": "reset", "namespace": namespace}


def objects(world: CheckedWorld) -> list[str]:
    return sorted(world.api.objects.get("PoisonPillRemediation", {}))


def with_an_object() -> CheckedWorld:
    """One template has made an object, and nothing begins, since the Node is paused."""
    world = with_templates("openshift", "one")
    world.check("one", remediationTemplate=template("one"))
    world.annotate_node(HOST, **{PAUSED_NODE: ""})
    world.spend(20.0)
    world.reports(HOST, "Unknown", seconds_ago=100)
    world.run(lambda: bool(objects(world)))
    return world


@pytest.fixture(params=["node", "openshift"])
def machines(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_two_templates_make_one_object(machines: str) -> None:
    world = with_templates(machines, "one", "two")
    for name in ("one", "two"):
        world.check(name, remediationTemplate=template(name))
    world.reports(HOST, "Unknown", seconds_ago=100)
    world.run(lambda: bool(world.steps(DeleteNode)))
    assert objects(world) == ["one/x"]
    assert (world.stored("one").status.made, world.stored("two").status.made) == ((HOST,), ())


@pytest.mark.parametrize("direct", ["one", "two"])
def test_of_a_request_and_an_object_there_is_one(machines: str, direct: str) -> None:
    world = with_templates(machines, "shared")
    for name in ("one", "two"):
        world.check(name, **({} if name == direct else {"remediationTemplate": template("shared")}))
    world.reports(HOST, "Unknown", seconds_ago=100)
    world.spend(60.0)
    made = bool(world.steps(MakeRemediation)), bool(world.steps(RequestRemediation))
    assert made == ((False, True) if direct == "one" else (True, False))


def test_an_object_whose_deletion_fails_is_deleted_later_and_remediates_nobody() -> None:
    """Its Node is healthy again before anything began."""
    world = with_an_object()
    world.reports(HOST)
    world.spend(60.0, lambda: any(isinstance(step, RemoveRemediation) for _, step, _ in world.under_way))
    at = next(at for at, each in enumerate(world.under_way) if isinstance(each[1], RemoveRemediation))
    world.under_way.insert(0, world.under_way.pop(at))
    world.fail(Written.NOT_DONE)
    world.spend(60.0)
    assert world.stored("one").status.made == ()
    world.annotate_node(HOST, **{PAUSED_NODE: None})
    world.spend(300.0)
    assert not objects(world)
    assert not world.steps(Condemn)


def test_a_second_fault_is_remediated_as_the_first(machines: str) -> None:
    world = with_templates(machines, "one")
    world.check("one", remediationTemplate=template("one"))
    for faults in (1, 2):
        world.reports(HOST, "Unknown")
        world.run(lambda faults=faults: len(world.steps(DeleteNode)) == faults)  # type: ignore[misc]
        world.run(world.given_back)
        world.comes_back()
        world.reports(HOST)
        world.run(lambda: not objects(world) and world.stored("one").status.made == ())


def test_a_missing_template_is_told_and_tried_again_less_and_less_often() -> None:
    world = CheckedWorld("openshift", settings=SETTINGS)
    world.check("one", remediationTemplate=template("nowhere"))
    world.reports(HOST, "Unknown", seconds_ago=100)
    world.spend(600.0)
    assert "TemplateNotFound" in world.reasons()
    told = [each.sentence for each in world.notices if each.reason == "TemplateNotFound"]
    assert "nowhere/reset: create it" in told[0]
    assert len(told) < 60


class SeesChecksLate(CheckedWorld):
    """Its health checks are not listed yet."""

    listed = True

    def observed(self) -> Observed:
        found = super().observed()
        if self.listed:
            return found
        seen = replace(found.part(HealthSeen), checks={}, listed=False)
        return replace(found, parts={**found.parts, HealthSeen: seen})


def test_a_new_leader_withdraws_nothing_before_it_has_seen_the_checks(machines: str) -> None:
    world = SeesChecksLate(machines)
    world.check()
    world.annotate_node(HOST, **{PAUSED_NODE: ""})
    world.reports(HOST, "Unknown", seconds_ago=100)
    world.run(lambda: isinstance(world.condemnation(), Requested))
    world.listed = False
    world.a_term("b")
    world.spend(10.0)
    world.listed = True
    world.spend(60.0)
    assert not world.steps(Withdraw)
    assert isinstance(world.condemnation(), Requested)


def test_a_request_that_the_check_took_back_itself_delays_no_other(machines: str) -> None:
    world = CheckedWorld(machines)
    world.check()
    world.annotate_node(HOST, **{PAUSED_NODE: ""})
    world.spend(20.0)
    world.reports(HOST, "Unknown", seconds_ago=100)
    world.run(lambda: isinstance(world.condemnation(), Requested))
    world.reports(HOST)
    world.run(lambda: isinstance(world.condemnation(), NotRequested))
    world.annotate_node(HOST, **{PAUSED_NODE: None})
    world.spend(20.0)
    world.reports(HOST, "Unknown")
    began_at = world.now
    world.run(lambda: len(world.steps(RequestRemediation)) == 2)
    assert world.now - began_at < 70.0


def test_a_node_that_never_reported_ready_is_judged_by_its_other_conditions() -> None:
    world = CheckedWorld()
    disk: list[dict[str, Any]] = [{"type": "Disk", "status": "True", "timeout": "60s"}]
    world.check(unhealthyConditions=disk, nodeStartupTimeout="0")
    condition = {"type": "Disk", "status": "True", "lastTransitionTime": world.moment(1000)}
    world.api.patch("nodes", HOST, {"status": {"conditions": [condition]}})
    world.run(lambda: bool(world.steps(RequestRemediation)), 60.0)


def test_a_clock_that_is_set_back_for_a_moment_delays_no_judgement_for_long() -> None:
    world = CheckedWorld()
    world.check()
    world.spend(10.0)
    ahead_seconds = world.wallclock_ahead_seconds
    assert ahead_seconds is not None
    world.wallclock_ahead_seconds = ahead_seconds - 3600
    world.reports(HOST, "Unknown", seconds_ago=-3600)
    world.spend(30.0)
    world.wallclock_ahead_seconds = ahead_seconds
    world.run(lambda: bool(world.steps(RequestRemediation)), 130.0)


def test_a_check_whose_template_is_taken_away_keeps_no_node_from_others() -> None:
    world = with_an_object()
    world.api.patch(KIND, "one", {"spec": {"remediationTemplate": None}, "metadata": {"generation": 2}})
    world.reports(HOST)
    world.run(lambda: world.stored("one").status.made == ())
