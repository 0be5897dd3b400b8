"""Safety valves: too many, too soon, against a person's wish, or on the leader's own host."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pp_hostd.leader.node_memory import Stage
from pp_hostd.leader.plan.valves import RESIGN_SECONDS, SETTLE_SECONDS
from pp_hostd.leader.remedies.poison_pill.steps import AskPeers, Condemn
from pp_hostd.leader.steps.nodes import DeleteNode, DropBackup
from pp_hostd.leader.steps.own_objects import HandOver, SpendBudget
from pp_hostd.model.condemnation import Confirmation
from pp_hostd.model.keys import AGENT, CONFIRMED_DEAD, PAUSED_MACHINE, PAUSED_NODE, SKIP_REMEDIATION
from pp_hostd.model.settings import Leader, Settings
from tests.leader.virtual_cluster import SINCE
from tests.leader.virtual_host import HOST, World

PAUSE = '{"v": 1, "who": "ann", "when": "2026-03-01T00:00:00Z", "why": "new switches"}'
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
TEN = tuple(f"p{number}" for number in range(1, 10))


def crowd(asked: int, peers: tuple[str, ...] = TEN, **leader: Any) -> World:
    """A cluster in which remediation is requested for so many nodes, all with the same promise."""
    world = World(settings=Settings(leader=Leader(**{"resets_per_hour": "1000", **leader})), peers=peers)
    for name in [HOST, *peers][:asked]:
        if name != HOST:
            promise = world.a_promise(machine_uid=f"machine-{name}")
            world.annotate_node(name, **{AGENT: promise.render()})
        world.request(f"machines/{name}")
    return world


def after(world: World, seconds: float) -> World:
    world.spend(seconds)
    return world


def report(world: World, ready: str, *names: str) -> None:
    """Their Ready conditions, as the kubelets or Kubernetes in their place set them."""
    for name in names:
        world.api.patch("nodes", name, {"status": {"conditions": [{"type": "Ready", "status": ready}]}})


def storm(world: World, requested: int, silent: int, together: int, allowed: int) -> bool:
    each = f"remediation is requested for {requested} nodes, and {silent} nodes do not respond"
    nodes = len(world.peers) + 1
    return f"{each}: together {together} of {nodes}, and leader.max_unhealthy allows {allowed}" in world.next_action()


def condemned(world: World) -> list[str]:
    return [step.machine_key for step in world.steps(Condemn) if isinstance(step, Condemn)]


def test_a_leader_that_has_just_begun_condemns_nobody() -> None:
    world = World()
    world.request()
    after(world, 9.0)
    assert not world.steps()
    assert "this leader has just begun" in world.next_action()
    assert world.driver.turn() == 1010.0
    world.run(lambda: bool(world.steps()))
    assert world.now == 1010.0


@pytest.mark.parametrize(("share", "most"), [("40%", 4), ("2", 2), ("39%", 3), ("1%", 1), ("0%", 0), ("0", 0)])
def test_more_than_max_unhealthy_means_that_something_else_is_wrong(share: str, most: int) -> None:
    leader: dict[str, Any] = {"max_unhealthy": share, "max_at_once": 1000, "start_grace_seconds": 0.0}
    if most:
        assert len(condemned(after(crowd(most, **leader), 1.0))) == most
    world = after(crowd(most + 1, **leader), 1.0)
    assert not world.steps()
    assert storm(world, requested=most + 1, silent=0, together=most + 1, allowed=most)


@pytest.mark.parametrize(("share", "most"), [("40%", 4), ("2", 2), ("1%", 1)])
def test_nodes_that_do_not_respond_count_as_much_as_those_that_are_requested(share: str, most: int) -> None:
    leader: dict[str, Any] = {"max_unhealthy": share, "max_at_once": 1000, "start_grace_seconds": 0.0}
    world = crowd(1, **leader)
    report(world, "Unknown", *TEN[: most - 1])
    assert condemned(after(world, 1.0)) == ["machines/x"]
    world = crowd(1, **leader)
    report(world, "False", *TEN[:most])
    assert not after(world, 1.0).steps()
    assert storm(world, requested=1, silent=most, together=most + 1, allowed=most)


def test_a_node_that_is_requested_and_does_not_respond_counts_once() -> None:
    world = crowd(2, max_unhealthy="2", start_grace_seconds=0.0)
    report(world, "Unknown", HOST, "p1")
    assert len(condemned(after(world, 1.0))) == 2


def test_nodes_that_are_ready_and_nodes_that_never_reported_do_not_count() -> None:
    world = crowd(1, max_unhealthy="1", start_grace_seconds=0.0)
    report(world, "True", *TEN[:4])
    assert condemned(after(world, 1.0)) == ["machines/x"]


def test_nodes_that_do_not_respond_and_are_not_enrolled_do_not_count() -> None:
    world = crowd(1, max_unhealthy="1", start_grace_seconds=0.0)
    report(world, "Unknown", *TEN[:4])
    world.enrol([HOST, *TEN[4:]])
    assert condemned(after(world, 1.0)) == ["machines/x"]


def test_of_three_nodes_one_is_remediated_and_none_beside_another_that_does_not_respond() -> None:
    peers = TEN[:2]
    world = crowd(1, peers, start_grace_seconds=0.0)
    report(world, "Unknown", HOST)
    assert condemned(after(world, 1.0)) == ["machines/x"]
    world = crowd(1, peers, start_grace_seconds=0.0)
    report(world, "Unknown", "p1")
    assert not after(world, 1.0).steps()
    assert storm(world, requested=1, silent=1, together=2, allowed=1)


@pytest.mark.parametrize("machines", ["openshift", "node"])
@pytest.mark.parametrize("until", ["deleted", "recreated"])
def test_a_node_that_a_leader_has_deleted_does_not_respond_until_its_host_is_back(until: str, machines: str) -> None:
    settings = Settings(leader=Leader(max_unhealthy="1", start_grace_seconds=0.0, cool_down_seconds=0.0))
    world = World(machines, settings)
    world.request()
    world.run(lambda: bool(world.steps(DeleteNode)) if until == "deleted" else world.given_back())
    uid, key = ("node-b", "b") if machines == "node" else ("machine-b", "machines/b")
    world.annotate_node("b", **{AGENT: replace(world.promise, machine_uid=uid).render()})
    world.request(key)
    world.driver.turn()
    assert "1 nodes do not respond: together 2 of 5, and leader.max_unhealthy allows 1" in world.next_action("b")
    world.run(world.given_back)
    assert world.comes_back()
    world.kubelet_reports()
    world.run(lambda: key in condemned(world))


def test_those_that_are_not_enrolled_do_not_count() -> None:
    world = crowd(4, max_unhealthy="1", max_at_once=9, start_grace_seconds=0.0)
    world.enrol([HOST])
    assert condemned(after(world, 1.0)) == ["machines/x"]


def test_those_that_are_condemned_and_not_enrolled_take_nobodys_place() -> None:
    world = crowd(2, max_at_once=1, start_grace_seconds=0.0)
    world.run(lambda: len(condemned(world)) == 1)
    first = condemned(world)[0].partition("/")[2]
    world.enrol([name for name in (HOST, *world.peers) if name != first])
    world.run(lambda: len(condemned(world)) == 2)


def test_after_a_storm_nobody_is_condemned_for_a_while() -> None:
    world = crowd(2, max_unhealthy="2", start_grace_seconds=0.0, cool_down_seconds=300.0)
    report(world, "Unknown", "p2", "p3")
    after(world, 50.0)
    calmed_at = world.now
    world.lift("machines/p1")
    report(world, "True", "p2")
    after(world, 299.0)
    assert not world.steps()
    assert "too many nodes were sick a while ago" in world.next_action()
    world.run(lambda: bool(world.steps()))
    assert world.now == calmed_at + 300.0


def test_a_storm_does_not_stop_what_has_begun() -> None:
    world = crowd(1, max_unhealthy="2", max_at_once=9, start_grace_seconds=0.0)
    world.run(lambda: bool(world.steps(AskPeers)))
    for name in ("p1", "p2", "p3"):
        world.request(f"machines/{name}")
    report(world, "Unknown", HOST, *TEN)
    world.run(lambda: bool(world.steps(DeleteNode)))
    assert condemned(world) == ["machines/x"]


def test_only_so_many_are_worked_on_at_once_and_the_others_wait_their_turn() -> None:
    world = after(crowd(4, max_at_once=2, start_grace_seconds=0.0), 30.0)
    assert len(condemned(world)) == 2
    held = [next_action.sentence for next_action in world.driver.next_actions if next_action.stage is Stage.HELD]
    assert held == ["the leader works on 2 nodes already, and leader.max_at_once is 2"] * 2
    world.run(lambda: len(world.steps(DeleteNode)) == 4)
    assert world.now == 1000.0 + 2 * 44.0


def test_a_node_that_is_missing_is_worked_on_too() -> None:
    world = World("node", Settings(leader=Leader(max_at_once=1, start_grace_seconds=0.0)))
    world.request()
    world.run(lambda: bool(world.steps(DeleteNode)))
    world.annotate_node("b", **{AGENT: world.promise.render().replace("node-x", "node-b")})
    world.request("b")
    world.driver.turn()
    assert "leader.max_at_once is 1" in world.next_action("b")


def test_those_that_another_leader_has_begun_count_and_go_on() -> None:
    world = after(crowd(3, max_at_once=1, start_grace_seconds=0.0), 5.0)
    world.a_term("b")
    after(world, 5.0)
    assert condemned(world) == condemned(world)[:1] * 2


def control_plane(size: int, asked: int) -> World:
    peers = tuple(f"p{number}" for number in range(1, 12))
    world = crowd(0, peers, max_at_once=9, max_unhealthy="100%", start_grace_seconds=0.0)
    for name in (HOST, *peers)[:size]:
        world.api.patch("nodes", name, {"metadata": {"labels": {CONTROL_PLANE: ""}}})
    for name in (HOST, *peers)[:asked]:
        promise = world.a_promise(machine_uid=f"machine-{name}")
        world.annotate_node(name, **{AGENT: promise.render()})
        world.request(f"machines/{name}")
    return world


@pytest.mark.parametrize(("size", "most"), [(1, 0), (2, 0), (3, 1), (4, 1), (5, 2), (7, 3)])
def test_a_quorum_of_the_control_plane_is_never_condemned(size: int, most: int) -> None:
    world = after(control_plane(size, size), 10.0)
    assert len(condemned(world)) == most
    assert any("would leave no quorum" in next_action.sentence for next_action in world.driver.next_actions)


def registered_again(world: World) -> None:
    """By its kubelet, which can't give it the label."""
    lost = dict(world.api.objects["nodes"][HOST])
    world.api.put("nodes", HOST, None)
    world.driver.turn()
    labels = {key: value for key, value in lost["metadata"]["labels"].items() if key != CONTROL_PLANE}
    world.api.put("nodes", HOST, {**lost, "metadata": {**lost["metadata"], "uid": "another", "labels": labels}})


def test_a_control_plane_node_that_is_registered_again_without_its_label_still_counts() -> None:
    world = after(control_plane(1, 1), 10.0)
    registered_again(world)
    after(world, 10.0)
    assert "one more of 1 control-plane nodes would leave no quorum" in world.next_action(HOST)
    assert not condemned(world)


def test_somebody_may_take_the_label_off() -> None:
    world = after(control_plane(1, 1), 10.0)
    world.api.patch("nodes", HOST, {"metadata": {"labels": {CONTROL_PLANE: None}}})
    assert condemned(after(world, 10.0)) == [f"machines/{HOST}"]


@pytest.mark.parametrize(
    "labels",
    [{"cluster.x-k8s.io/control-plane": ""}, {"machine.openshift.io/cluster-api-machine-role": "master"}],
    ids=("Cluster API", "OpenShift"),
)
def test_a_machine_says_that_it_runs_the_control_plane_though_its_node_does_not(labels: dict[str, str]) -> None:
    world = control_plane(0, 1)
    world.api.patch(world.api.machine_kind, f"machines/{HOST}", {"metadata": {"labels": labels}})
    assert not condemned(after(world, 10.0))
    assert "one more of 1 control-plane nodes would leave no quorum" in world.next_action(HOST)


def test_workers_need_no_quorum() -> None:
    assert len(condemned(after(control_plane(1, 4), 10.0))) == 3


def test_a_control_plane_node_that_is_being_made_anew_still_counts() -> None:
    world = control_plane(5, 2)
    world.run(lambda: len(world.steps(DeleteNode)) == 2)
    promise = world.a_promise(machine_uid="machine-p2")
    world.annotate_node("p2", **{AGENT: promise.render()})
    world.request("machines/p2")
    world.driver.turn()
    assert "one more of 5 control-plane nodes would leave no quorum" in world.next_action("p2")


def test_a_control_plane_node_that_was_freed_and_has_not_come_back_still_counts() -> None:
    world = control_plane(3, 1)
    world.run(world.given_back)
    promise = world.a_promise(machine_uid="machine-p1")
    world.annotate_node("p1", **{AGENT: promise.render()})
    world.request("machines/p1")
    after(world, 20.0)
    assert "would leave no quorum" in world.next_action("p1")
    assert world.comes_back()
    world.run(lambda: "machines/p1" in condemned(world))


def test_a_control_plane_node_whose_request_was_withdrawn_still_counts_for_a_while() -> None:
    """It may have reset itself already, or be off, and nothing says so yet."""
    world = control_plane(3, 1)
    world.run(lambda: condemned(world) == [f"machines/{HOST}"])
    world.lift()
    world.run(world.uncondemned)
    lifted_at = world.now
    promise = world.a_promise(machine_uid="machine-p1")
    world.annotate_node("p1", **{AGENT: promise.render()})
    world.request("machines/p1")
    after(world, 20.0)
    assert "would leave no quorum" in world.next_action("p1")
    world.run(lambda: "machines/p1" in condemned(world))
    assert world.now >= lifted_at + SETTLE_SECONDS


def test_a_control_plane_node_that_has_not_come_back_does_not_stand_in_its_own_way() -> None:
    world = control_plane(3, 1)
    world.run(world.given_back)
    world.request()
    world.annotate_node(HOST, **{CONFIRMED_DEAD: Confirmation("ann", SINCE, None).render()})
    world.run(lambda: len(world.steps(DeleteNode)) == 2)


# A person's wish


@pytest.mark.parametrize("steps", range(11))
@pytest.mark.parametrize("data", [{"paused": PAUSE}, {"paused": "please"}])
def test_a_pause_stops_everything_that_is_not_yet_freed_and_ends_at_once(steps: int, data: dict[str, str]) -> None:
    world = World()
    world.request()
    world.run(lambda: len(world.done) == steps)
    world.order(data)
    told = world.held()
    assert told.startswith("paused")
    assert "ann: new switches. To go on: pp-leader resume" in told or data["paused"] != PAUSE
    world.order({})
    world.run(world.given_back)


def test_a_pause_takes_the_licence_away() -> None:
    world = World()
    world.request()
    world.run(lambda: len(world.done) == 10)
    world.order({"paused": PAUSE})
    world.held()
    assert world.steps(DropBackup)


def test_a_node_that_is_missing_comes_back_although_everything_is_paused() -> None:
    world = World()
    world.request()
    world.run(lambda: bool(world.steps(DeleteNode)))
    world.order({"paused": PAUSE})
    world.run(world.given_back)


def test_a_node_can_be_paused_alone() -> None:
    world = World()
    world.annotate_node(HOST, **{PAUSED_NODE: ""})
    world.request()
    assert world.held(60.0) == "the Node is marked as paused"
    assert not world.steps()


OWNERS_WORDS = pytest.mark.parametrize("key", [PAUSED_MACHINE, SKIP_REMEDIATION])


@OWNERS_WORDS
@pytest.mark.parametrize("steps", range(11))
def test_a_machine_whose_owner_wants_no_remediation_is_not_freed_until_that_is_over(steps: int, key: str) -> None:
    world = World()
    world.request()
    world.run(lambda: len(world.done) == steps)
    world.annotate_machine(world.machine_key, **{key: ""})
    assert f"Machine {world.machine_key} bears {key}" in world.held()
    assert not world.licensed()
    assert steps or not world.steps()
    world.annotate_machine(world.machine_key, **{key: None})
    world.run(world.given_back)


@OWNERS_WORDS
def test_a_node_that_was_deleted_before_its_owner_said_so_comes_back(key: str) -> None:
    world = World()
    world.request()
    world.run(lambda: bool(world.steps(DeleteNode)))
    world.annotate_machine(world.machine_key, **{key: ""})
    world.run(world.given_back)
    assert world.restored()


@pytest.mark.parametrize("steps", range(16))
def test_a_dry_run_tells_what_it_would_do_and_does_nothing(steps: int) -> None:
    world = World()
    world.request()
    world.run(lambda: len(world.done) == min(steps, 15))
    world.settings = Settings(api=world.settings.api, leader=Leader(mode="dry-run"))
    world.a_term("b")
    world.held(100.0)
    assert len(world.done) == min(steps, 15)
    assert steps >= 15 or "dry run; otherwise next" in world.next_action()


def test_a_leader_never_works_on_its_own_host() -> None:
    world = World()
    world.a_term(HOST)
    world.request()
    world.run(lambda: bool(world.done))
    assert world.steps() == [HandOver()]
    assert "this leader runs on that very host" in world.next_action()


def test_nor_goes_on_with_its_own_host_where_another_has_begun() -> None:
    world = World()
    world.request()
    world.run(lambda: bool(world.steps(AskPeers)))
    world.a_term(HOST)
    done = len(world.done)
    world.run(lambda: len(world.done) > done)
    assert world.steps()[done:] == [HandOver()]


def test_one_that_gave_its_lease_up_a_moment_ago_works_on_the_others_before_it_does_so_again() -> None:
    """Nobody else keeps it: the only other leader may run on a host that is to die, too."""
    world = crowd(2, start_grace_seconds=0.0)
    world.a_term("p1", resigned_at=world.now - 15.0)
    again_at = world.now - 15.0 + RESIGN_SECONDS
    world.run(lambda: bool(world.steps(DropBackup)))
    assert not world.steps(HandOver)
    (waits,) = (each for each in world.driver.next_actions if each.node == "p1")
    assert (waits.step, waits.due_at) == (None, again_at)
    assert "none has kept the Lease" in waits.sentence
    world.run(lambda: bool(world.steps(HandOver)))
    assert again_at <= world.now < again_at + 1.0


def test_each_node_has_one_step_under_way_and_several_nodes_go_on_at_once() -> None:
    world = crowd(3, start_grace_seconds=0.0)
    world.run(lambda: len(world.steps(SpendBudget)) == 3)
    world.driver.turn()
    world.driver.turn()
    assert sorted(node for node, _, _ in world.under_way) == ["p1", "p2", "x"]
