"""NodeHealthChecks in the leader's own loop: who is remediated, who is not, and what people are told."""

from __future__ import annotations

from typing import Any

import pytest

from pp_hostd.kube.resources import NODE_HEALTH_CHECKS, NODES
from pp_hostd.leader.requests.health_checks.steps import RequestRemediation, SetStatus, Withdraw
from pp_hostd.leader.steps.nodes import DeleteNode, MarkFreeing
from pp_hostd.model.condemnation import Condemned, NotRequested, Requested
from pp_hostd.model.keys import PAUSED_NODE, REQUESTED_BY
from pp_hostd.model.settings import Leader, Settings
from tests.leader.health.checked import FOREIGN, KIND, CheckedWorld
from tests.leader.virtual_host import HOST, PEERS


@pytest.fixture(params=["node", "openshift"])
def world(request: pytest.FixtureRequest) -> CheckedWorld:
    return CheckedWorld(request.param)


def claim_of(world: CheckedWorld) -> Any:
    found = world.api.get(world.api.machine_kind, world.machine_key)
    assert found is not None
    return (found["metadata"].get("annotations") or {}).get(REQUESTED_BY)


def test_a_silent_node_is_remediated_and_nobody_asked(world: CheckedWorld) -> None:
    world.check()
    world.reports(HOST, "Unknown")
    world.spend(60.0)
    assert not world.steps(RequestRemediation)
    world.run(lambda: bool(world.steps(DeleteNode)))
    world.run(world.given_back)
    assert len(world.steps(RequestRemediation)) == 1
    assert "DetectedUnhealthy" in world.reasons()
    world.spend(300.0)
    assert len(world.steps(RequestRemediation, DeleteNode)) == 2, "its host boots, and has ten minutes to do so"
    world.comes_back()
    world.reports(HOST)
    world.spend(900.0)
    assert len(world.steps(RequestRemediation, DeleteNode)) == 2
    assert claim_of(world) is None
    assert world.stored().status.healthy == 5


def test_a_node_that_does_not_come_back_is_told_and_not_reset_again(world: CheckedWorld) -> None:
    world.check()
    world.reports(HOST, "Unknown")
    world.run(lambda: bool(world.steps(DeleteNode)))
    world.spend(1800.0)
    assert len(world.steps(RequestRemediation)) == 1
    assert world.stored().status.unhealthy == (
        (
            HOST,
            "NodeStartupTimeout",
            "its host has not come back since it was remediated, for more than 600 s (nodeStartupTimeout)",
        ),
    )
    told = [each for each in world.notices if each.reason == "HostNotBack"]
    assert [each.kind for each in told] == [NODE_HEALTH_CHECKS, NODES], "once, about the check and about the Node"
    assert all("Node x: its host has not come back" in each.sentence and each.warning for each in told)
    world.a_term("b")
    world.reports(PEERS[0], "False")
    world.spend(60.0)
    assert world.stored().status.healthy == 3
    assert world.reasons().count("HostNotBack") == 2, "the status tells a new leader that it was told"


def test_a_node_that_never_came_up_is_not_told_to_be_away(world: CheckedWorld) -> None:
    world.check()
    world.annotate_node(HOST, **{PAUSED_NODE: ""})
    world.api.patch("nodes", HOST, {"metadata": {"creationTimestamp": world.moment()}, "status": {"conditions": []}})
    world.spend(700.0)
    assert [reason for _, reason, _ in world.stored().status.unhealthy] == ["NodeStartupTimeout"]
    assert "HostNotBack" not in world.reasons()


@pytest.mark.parametrize("strategy", ["resources", "out-of-service"])
@pytest.mark.parametrize("machines", ["node", "openshift"])
def test_a_node_that_is_kept_has_the_start_up_timeout_too(machines: str, strategy: str) -> None:
    """Nothing on such a Node tells that it was remediated, and its kubelet says nothing until its host has booted."""
    world = CheckedWorld(machines, settings=Settings(leader=Leader(strategy=strategy)))
    world.check()
    world.reports(HOST, "Unknown")
    world.run(lambda: bool(world.steps(MarkFreeing)))
    world.run(world.uncondemned)
    world.spend(300.0)
    world.a_term("b")
    world.spend(590.0)
    assert len(world.steps(RequestRemediation)) == 1, "a new leader counts from its own beginning"
    world.spend(20.0)
    assert len(world.steps(RequestRemediation)) == 2
    assert "it has not become healthy since its last remediation was over" in world.notices[-1].sentence


@pytest.mark.parametrize(("healthy_seconds", "requests"), [(45.0, 1), (70.0, 2)])
def test_a_node_that_is_kept_is_back_once_its_silence_would_have_been_noticed(
    healthy_seconds: float, requests: int
) -> None:
    """Until then its Ready=True may be of the boot before."""
    world = CheckedWorld("openshift", settings=Settings(leader=Leader(strategy="resources")))
    world.check()
    world.reports(HOST, "Unknown")
    world.run(lambda: bool(world.steps(MarkFreeing)))
    world.run(world.uncondemned)
    world.reports(HOST)
    world.spend(healthy_seconds)
    world.reports(HOST, "Unknown")
    world.spend(450.0)
    assert len(world.steps(RequestRemediation)) == requests


def test_what_a_person_absolves_is_not_requested_again_at_once(world: CheckedWorld) -> None:
    world.check()
    world.annotate_node(HOST, **{PAUSED_NODE: ""})
    world.reports(HOST, "Unknown", seconds_ago=100)
    world.run(lambda: isinstance(world.condemnation(), Requested))
    world.lift()
    world.spend(590.0)
    assert len(world.steps(RequestRemediation)) == 1
    world.spend(30.0)
    assert len(world.steps(RequestRemediation)) == 2


def test_a_node_that_is_well_again_before_anything_began_is_left_alone(world: CheckedWorld) -> None:
    world.check()
    world.annotate_node(HOST, **{PAUSED_NODE: ""})  # so nothing begins
    world.reports(HOST, "Unknown", seconds_ago=100)
    world.spend(30.0)
    assert isinstance(world.condemnation(), Requested)
    world.reports(HOST)
    world.run(lambda: isinstance(world.condemnation(), NotRequested))
    assert claim_of(world) is None
    world.annotate_node(HOST, **{PAUSED_NODE: None})
    world.spend(300.0)
    assert not world.steps(DeleteNode)


def test_what_is_condemned_is_not_withdrawn(world: CheckedWorld) -> None:
    world.check()
    world.reports(HOST, "Unknown", seconds_ago=100)
    world.run(lambda: isinstance(world.condemnation(), Condemned))
    world.reports(HOST)
    world.spend(20.0)
    assert isinstance(world.condemnation(), Condemned)
    assert not world.steps(Withdraw)


def test_a_persons_request_is_never_withdrawn(world: CheckedWorld) -> None:
    world.check()
    world.annotate_node(HOST, **{PAUSED_NODE: ""})
    world.request()
    world.spend(60.0)
    assert isinstance(world.condemnation(), Requested)
    assert not world.steps(Withdraw, RequestRemediation)


def test_a_request_of_a_check_that_is_gone_is_withdrawn(world: CheckedWorld) -> None:
    world.check()
    world.annotate_node(HOST, **{PAUSED_NODE: ""})
    world.reports(HOST, "Unknown", seconds_ago=100)
    world.run(lambda: isinstance(world.condemnation(), Requested))
    world.api.put(KIND, "workers", None)
    world.run(lambda: isinstance(world.condemnation(), NotRequested))


def test_a_new_leader_finds_the_claims_of_the_one_before(world: CheckedWorld) -> None:
    world.check()
    world.annotate_node(HOST, **{PAUSED_NODE: ""})
    world.reports(HOST, "Unknown", seconds_ago=100)
    world.run(lambda: isinstance(world.condemnation(), Requested))
    world.reports(HOST)
    world.a_term("b")
    world.run(lambda: isinstance(world.condemnation(), NotRequested))
    assert claim_of(world) is None


# How many at once.


@pytest.mark.parametrize(("sick", "remediated"), [(2, True), (3, False)])
def test_nobody_is_remediated_while_too_many_are_not_healthy(sick: int, remediated: bool) -> None:
    """40 % of 5 are 2. One that is pending counts."""
    world = CheckedWorld()
    world.check()
    world.reports(HOST, "Unknown", seconds_ago=100)
    for name in PEERS[: sick - 1]:
        world.reports(name, "False")
    world.spend(30.0)
    assert bool(world.steps(RequestRemediation)) is remediated
    expected = ("True", "Allowed") if remediated else ("False", "TooManyUnhealthy")
    assert world.condition() == expected
    assert (world.stored().status.expected, world.stored().status.healthy) == (5, 5 - sick)
    assert world.stored().status.allowed == 0
    assert world.reasons().count("RemediationRestricted") == (0 if remediated else 1)


def test_once_few_enough_are_unhealthy_it_goes_on() -> None:
    world = CheckedWorld()
    world.check()
    for name in (HOST, *PEERS[:2]):
        world.reports(name, "Unknown", seconds_ago=100)
    world.spend(60.0)
    assert not world.steps(RequestRemediation)
    for name in PEERS[:2]:
        world.reports(name)
    world.run(lambda: bool(world.steps(RequestRemediation)))
    assert world.reasons().count("RemediationRestricted") == 1


def test_a_node_that_is_being_remediated_still_counts() -> None:
    world = CheckedWorld()
    world.check(maxUnhealthy=1)
    world.reports(HOST, "Unknown", seconds_ago=100)
    world.run(lambda: world.api.get("nodes", HOST) is None)
    world.reports(PEERS[0], "Unknown", seconds_ago=100)
    world.driver.turn()
    world.spend(0.0)
    assert len(world.steps(RequestRemediation)) == 1
    assert world.condition() == ("False", "TooManyUnhealthy")


# Selection, overlap and bad input.


def test_only_selected_nodes_are_judged() -> None:
    world = CheckedWorld()
    world.check(selector={"matchLabels": {"pool": "a"}})
    world.label("a", pool="a")
    world.reports(HOST, "Unknown", seconds_ago=100)
    world.spend(30.0)
    assert not world.steps(RequestRemediation)
    assert world.stored().status.expected == 1


def test_control_plane_nodes_are_left_out_by_default() -> None:
    world = CheckedWorld()
    world.check()
    world.label(HOST, **{"node-role.kubernetes.io/control-plane": ""})
    world.reports(HOST, "Unknown", seconds_ago=100)
    world.spend(30.0)
    assert not world.steps(RequestRemediation)
    assert world.stored().status.expected == 4


def test_overlapping_checks_are_told_and_remediate_once() -> None:
    world = CheckedWorld()
    world.check("one")
    world.check("two")
    world.reports(HOST, "Unknown", seconds_ago=100)
    world.run(lambda: bool(world.steps(DeleteNode)))
    assert len(world.steps(RequestRemediation)) == 1
    for name in ("one", "two"):
        assert world.condition("Overlapping", name) == ("True", "SameNodes")
    assert world.reasons().count("SameNodes") == 2


@pytest.mark.parametrize(
    "spec",
    [
        {"maxUnhealthy": "40"},
        {"maxUnhealthy": "some"},
        {"unhealthyRange": "[5-3]"},
        {"unhealthyConditions": [{"type": "Ready", "status": "Unknown", "timeout": "soon"}]},
        {"unhealthyConditions": [{"type": "Ready", "status": "No", "timeout": "60s"}]},
        {"unhealthyConditions": [], "unreachableSeconds": None},
        {"nodeStartupTimeout": "-5m"},
        {"selector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}},
        {"unreachableSeconds": "5"},
        {"remediationTemplate": {"kind": "Pod", "apiVersion": "v1", "name": "a", "namespace": "b"}},
    ],
)
def test_an_unreadable_check_remediates_nobody_and_says_why(spec: dict[str, Any]) -> None:
    world = CheckedWorld()
    world.check(**spec)
    world.reports(HOST, "Unknown", seconds_ago=1000)
    world.spend(60.0)
    if spec == {"maxUnhealthy": "40"}:
        assert world.condition() == ("True", "Allowed")
        return
    assert not world.steps(RequestRemediation)
    assert world.condition() == ("False", "Unreadable")
    assert world.reasons() == ["Unreadable"]


def test_a_paused_check_requests_nothing() -> None:
    world = CheckedWorld()
    world.check()
    world.api.patch(KIND, "workers", {"metadata": {"annotations": {PAUSED_NODE: "upgrade"}}})
    world.reports(HOST, "Unknown", seconds_ago=100)
    world.spend(60.0)
    assert not world.steps(RequestRemediation)
    assert world.condition() == ("False", "Paused")


def test_nodes_that_come_and_go_are_no_trouble() -> None:
    world = CheckedWorld()
    world.check()
    world.reports("a", "Unknown", seconds_ago=50)
    world.spend(5.0)
    world.api.put("nodes", "a", None)
    world.spend(30.0)
    world.add_node("a", "10.0.0.9")
    world.spend(60.0)
    assert not world.steps(RequestRemediation)
    assert world.stored().status.expected == 5


def test_the_status_is_written_only_when_something_changed() -> None:
    world = CheckedWorld()
    world.check()
    world.spend(10.0)
    before = len(world.steps(SetStatus))
    for _ in range(20):
        world.kubelet_renews()
        world.annotate_node("a", team="red")
        world.spend(30.0)
    assert len(world.steps(SetStatus)) == before == 1


def test_a_dry_run_requests_nothing() -> None:
    world = CheckedWorld()
    leader = world.settings.leader
    world.settings = world.settings.__class__(
        api=world.settings.api, leader=leader.__class__(**{**leader.__dict__, "mode": "dry-run"})
    )
    world.a_term("a")
    world.check()
    world.reports(HOST, "Unknown", seconds_ago=100)
    world.spend(60.0)
    assert not world.steps(RequestRemediation)


def test_a_condition_that_somebody_else_has_written_stays_as_it_is(world: CheckedWorld) -> None:
    world.check()
    world.run(lambda: world.condition() == ("True", "Allowed"))
    world.add_condition(KIND, "workers", FOREIGN)
    world.spend(60.0)
    writes = len(world.steps(SetStatus))
    assert writes == 1, "it is nothing to write about"
    world.reports(HOST, "Unknown")
    world.run(lambda: len(world.steps(SetStatus)) > writes)
    assert FOREIGN in world.conditions_of(KIND, "workers")
    assert {each["type"] for each in world.conditions_of(KIND, "workers")} == {
        "RemediationAllowed",
        "Overlapping",
        FOREIGN["type"],
    }
