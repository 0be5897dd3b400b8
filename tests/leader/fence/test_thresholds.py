"""Thresholds in the leader's own loop: who is fenced and when, who is not, and what people are told."""

from __future__ import annotations

import pytest

from pp_hostd.kube.resources import NODE_REMEDY_CONFIGURATIONS, NODES
from pp_hostd.leader.requests.thresholds.steps import CreateFence, SetStatus
from tests.leader.fence.configured import FENCES, KIND, NOT_READY, ConfiguredWorld
from tests.leader.health.checked import FOREIGN
from tests.leader.virtual_host import HOST, PEERS

DISK = {"nodeConditionType": "DiskPressure", "nodeConditionStatus": True, "nodeConditionPeriod": "20s"}
SINCE_LONG = 1000.0


@pytest.fixture(params=["node", "openshift"])
def world(request: pytest.FixtureRequest) -> ConfiguredWorld:
    return ConfiguredWorld(request.param)


def test_a_condition_that_lasts_creates_one_node_fence_and_people_are_told(world: ConfiguredWorld) -> None:
    world.configure()
    world.reports(HOST, "False")
    began_at = world.now
    world.run(lambda: bool(world.fences()))
    assert 60.0 <= world.now - began_at <= 61.0
    world.spend(600.0)
    (fence,) = world.fences()
    assert fence["metadata"]["name"] == "node-fence-x"
    assert {key: fence[key] for key in ("node", "step", "status", "cause")} == {
        "node": HOST,
        "step": "Isolation",
        "status": "New",
        "cause": {"configuration": "all", "condition": "Ready", "status": "False"},
    }
    assert fence["reason"] == "it has had Ready=False for at least 60 s (NodeRemedyConfiguration all)"
    told = [each for each in world.notices if each.reason == "ThresholdReached"]
    assert [(each.kind, each.name) for each in told] == [(NODE_REMEDY_CONFIGURATIONS, "all"), (NODES, HOST)]
    assert len(world.steps(CreateFence)) == 1
    status = world.configuration().status
    assert (status.generation, status.selected, status.matching) == (1, 5, 1)


def test_a_node_that_is_well_in_time_is_left_alone(world: ConfiguredWorld) -> None:
    world.configure()
    world.reports(HOST, "False")
    world.spend(59.0)
    world.reports(HOST)
    world.spend(600.0)
    assert not world.fences()


@pytest.mark.parametrize(("seconds", "fenced"), [(59.0, []), (61.0, [HOST])])
def test_a_new_leader_counts_from_the_transition(seconds: float, fenced: list[str]) -> None:
    world = ConfiguredWorld()
    world.configure()
    world.reports(HOST, "False", seconds_ago=seconds)
    world.spend(0.0)
    assert world.fenced() == fenced


def test_the_threshold_that_was_reached_first_is_the_cause() -> None:
    world = ConfiguredWorld()
    world.configure(thresholdConfigs=[NOT_READY, DISK])
    world.reports(HOST, "False", seconds_ago=70.0)
    world.reports(HOST, "True", "DiskPressure", seconds_ago=40.0)
    world.spend(0.0)
    assert world.fences()[0]["cause"]["condition"] == "DiskPressure"


def test_a_fence_that_is_there_is_not_created_again_and_one_that_ended_is() -> None:
    world = ConfiguredWorld()
    world.configure()
    world.reports(HOST, "False", seconds_ago=SINCE_LONG)
    world.spend(300.0)
    assert len(world.steps(CreateFence)) == 1
    world.api.put(FENCES, "node-fence-x", None)
    world.spend(60.0)
    assert world.fenced() == [HOST]
    assert len(world.steps(CreateFence)) == 2


def test_a_fence_that_the_watch_has_not_shown_yet_is_success_and_no_news() -> None:
    world = ConfiguredWorld()
    world.configure()
    world.reports(HOST, "False", seconds_ago=SINCE_LONG)
    world.driver.turn()
    world.api.put(FENCES, "node-fence-x", {"metadata": {"name": "node-fence-x"}, "node": HOST})
    world.spend(60.0)
    assert len(world.steps(CreateFence)) == 1
    assert "ThresholdReached" not in world.reasons()


def test_other_nodes_and_labels_are_not_judged() -> None:
    world = ConfiguredWorld()
    world.configure(nodeSelector="pool=a")
    world.label("a", pool="a")
    for name in (HOST, "a"):
        world.reports(name, "False", seconds_ago=SINCE_LONG)
    world.spend(10.0)
    assert world.fenced() == ["a"]
    assert world.configuration().status.selected == 1


# Two configurations.


def test_a_node_that_two_select_is_fenced_by_neither_and_told_once() -> None:
    world = ConfiguredWorld()
    world.label("a", pool="a")
    world.configure("one")
    world.configure("two", nodeSelector={"matchLabels": {"pool": "a"}})
    for name in (HOST, "a"):
        world.reports(name, "False", seconds_ago=SINCE_LONG)
    world.spend(60.0)
    assert world.fenced() == [HOST]
    for name in ("one", "two"):
        assert world.condition("Overlapping", name) == ("True", "SameNodes")
        assert world.configuration(name).status.overlapping == ("a",)
    told = [each for each in world.notices if each.reason == "SelectedTwice"]
    assert [(each.kind, each.name) for each in told] == [(NODES, "a")]
    assert "NodeRemedyConfigurations one and two select Node a" in told[0].sentence
    world.a_term("b")
    world.spend(60.0)
    world.reports("b", "False", seconds_ago=SINCE_LONG)
    world.spend(60.0)
    assert world.configuration("one").status.matching == 3, "which is a storm"
    assert world.reasons().count("SelectedTwice") == 1, "the status tells a new leader that it was told"
    world.reports("b")
    world.configure("two", nodeSelector={"matchLabels": {"pool": "none"}})
    world.run(lambda: world.fenced() == ["a", HOST])
    world.run(lambda: world.condition("Overlapping", "one") == ("False", "None"))


def test_a_configuration_that_is_changed_is_judged_by_at_once() -> None:
    world = ConfiguredWorld()
    world.configure(thresholdConfigs=[DISK])
    world.reports(HOST, "False", seconds_ago=SINCE_LONG)
    world.spend(60.0)
    assert not world.fences()
    world.configure()
    world.run(lambda: world.fenced() == [HOST], seconds=1.0)


def test_one_that_is_paused_still_counts_as_selecting() -> None:
    world = ConfiguredWorld()
    world.configure()
    world.configure("two")
    world.pause_configuration()
    world.reports(HOST, "False", seconds_ago=SINCE_LONG)
    world.spend(10.0)
    assert not world.fences()


# Storms.


@pytest.mark.parametrize(("sick", "fenced"), [(2, True), (3, False)])
def test_in_a_storm_nobody_is_fenced_and_one_event_says_so(sick: int, fenced: bool) -> None:
    """40 % of 5 are 2."""
    world = ConfiguredWorld()
    world.configure()
    names = (HOST, *PEERS)[:sick]
    for name in names:
        world.reports(name, "False", seconds_ago=SINCE_LONG)
    world.spend(300.0)
    assert world.fenced() == (sorted(names) if fenced else [])
    assert world.reasons().count("TooManyNotResponding") == (0 if fenced else 1)
    assert world.condition() == (("True", "Allowed") if fenced else ("False", "TooManyNotResponding"))
    world.a_term("b")
    world.spend(60.0)
    assert world.reasons().count("TooManyNotResponding") == (0 if fenced else 1)


def test_once_a_storm_is_over_those_that_are_left_are_fenced() -> None:
    world = ConfiguredWorld()
    world.configure()
    for name in (HOST, *PEERS[:2]):
        world.reports(name, "False", seconds_ago=SINCE_LONG)
    world.spend(60.0)
    world.reports(PEERS[0])
    world.run(lambda: world.fenced() == sorted((HOST, PEERS[1])), seconds=1.0)
    world.run(lambda: world.condition() == ("True", "Allowed"))
    assert world.reasons().count("TooManyNotResponding") == 1


def test_a_configuration_that_a_storm_does_not_concern_says_nothing() -> None:
    world = ConfiguredWorld()
    world.configure(nodeSelector="zone=north")
    world.configure("south", nodeSelector="zone=south")
    for name in (HOST, *PEERS[:2]):
        world.reports(name, "False", seconds_ago=SINCE_LONG)
    world.spend(60.0)
    assert world.condition(name="all") == ("False", "TooManyNotResponding")
    assert world.condition(name="south") == ("True", "Allowed")


# Bad input, clocks, rates.


def test_an_unreadable_configuration_fences_nobody_and_says_why() -> None:
    world = ConfiguredWorld()
    world.configure(thresholdConfigs=[{**NOT_READY, "nodeConditionPeriod": "soon"}])
    world.reports(HOST, "False", seconds_ago=SINCE_LONG)
    world.spend(60.0)
    assert not world.fences()
    assert world.condition() == ("False", "Unreadable")
    (told,) = world.notices
    assert (told.kind, told.reason, told.warning) == (NODE_REMEDY_CONFIGURATIONS, "Unreadable", True)
    assert "thresholdConfigs[0]: nodeConditionPeriod is 'soon', not a duration like 300s" in told.sentence


def test_a_wall_clock_that_steps_fences_nobody_sooner() -> None:
    world = ConfiguredWorld()
    world.configure()
    world.reports(HOST, "False")
    began_at = world.now
    world.spend(10.0)
    assert world.wallclock_ahead_seconds is not None
    world.wallclock_ahead_seconds += 3600
    world.reports("a")  # so that all are judged again
    world.spend(45.0)
    assert not world.fences()
    world.run(lambda: bool(world.fences()))
    assert 60.0 <= world.now - began_at <= 61.5


def test_a_wall_clock_that_is_set_back_delays_it_for_as_long() -> None:
    world = ConfiguredWorld()
    world.configure()
    world.reports(HOST, "False")
    world.spend(10.0)
    assert world.wallclock_ahead_seconds is not None
    world.wallclock_ahead_seconds -= 100
    world.spend(140.0)
    assert not world.fences()
    world.run(lambda: bool(world.fences()), seconds=12.0)


def test_the_status_is_written_only_when_something_changed_and_not_too_often() -> None:
    world = ConfiguredWorld()
    world.configure()
    world.spend(10.0)
    for _ in range(20):
        world.annotate_node("a", team="red")
        world.spend(30.0)
    assert len(world.steps(SetStatus)) == 1
    for number in range(50):
        world.reports(HOST, "False" if number % 2 else "True", seconds_ago=SINCE_LONG)
        world.spend(0.2)
    assert len(world.steps(SetStatus)) <= 1 + 3


def test_a_write_that_is_refused_is_told() -> None:
    world = ConfiguredWorld()
    world.refused.add(("create", "NodeFence"))
    world.configure()
    world.reports(HOST, "False", seconds_ago=SINCE_LONG)
    world.spend(60.0)
    told = [each for each in world.driver.next_actions if each.refused]
    assert [each.node for each in told] == [HOST]
    assert "no right to create a NodeFence" in told[0].sentence
    world.refused.clear()
    world.run(lambda: world.fenced() == [HOST])


def test_without_configurations_nothing_is_judged_or_remembered(world: ConfiguredWorld) -> None:
    world.reports(HOST, "False", seconds_ago=SINCE_LONG)
    world.spend(60.0)
    assert not world.fences()
    assert not any("thresholds" in key for key in world.driver.term.memories)


def test_a_node_that_comes_again_begins_again() -> None:
    world = ConfiguredWorld()
    world.configure()
    world.reports("a", "False", seconds_ago=50.0)
    world.spend(5.0)
    world.api.put("nodes", "a", None)
    world.spend(5.0)
    world.add_node("a", "10.0.0.9")
    world.spend(120.0)
    assert not world.fences()


def test_what_did_not_change_is_not_judged_again() -> None:
    world = ConfiguredWorld()
    world.configure()
    world.spend(10.0)
    before = world.driver.term.memories["thresholds"].parts
    for _ in range(5):
        world.kubelet_renews()
        world.annotate_node(HOST, team="red")
        world.spend(30.0)
    after = world.driver.term.memories["thresholds"].parts
    assert [after[key] is before[key] for key in before] == [True]


def test_a_condition_that_somebody_else_has_written_stays_as_it_is() -> None:
    world = ConfiguredWorld()
    world.configure()
    world.run(lambda: len(world.steps(SetStatus)) == 1)
    world.add_condition(KIND, "all", FOREIGN)
    world.spend(60.0)
    assert len(world.steps(SetStatus)) == 1, "it is nothing to write about"
    world.reports(HOST, "False", seconds_ago=SINCE_LONG)
    world.run(lambda: len(world.steps(SetStatus)) == 2)
    assert FOREIGN in world.conditions_of(KIND, "all")
