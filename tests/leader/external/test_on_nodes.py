"""PoisonPillRemediations where Nodes stand for themselves: the Node, and with it the request, goes in the middle."""

from __future__ import annotations

from dataclasses import replace
from typing import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pp_hostd.leader.remedies.poison_pill.steps import Condemn
from pp_hostd.leader.requests.remediation_objects.remediation import Phase
from pp_hostd.leader.requests.remediation_objects.steps import HandToOwner, SetFinalizer, SetPhase, SetRemediated
from pp_hostd.leader.steps.machines import AskFor, DeleteMachine, DropClaim
from pp_hostd.leader.steps.nodes import DeleteNode
from pp_hostd.model.keys import FLOW, REQUESTED_BY
from pp_hostd.model.machine_details import Claim
from pp_hostd.model.settings import Remediations
from pp_hostd.model.step import Written
from tests.harness.examples import tries
from tests.leader.external.medik8s import NODE_NAME
from tests.leader.external.node_world import KEY, KIND, NodeWorld
from tests.leader.virtual_host import HOST

MOST_STEPS = 40
OF_MACHINES = (HandToOwner, SetRemediated, DeleteMachine)


def once(world: NodeWorld) -> bool:
    """Whether the host was reset and its Node deleted once, and nothing was done that only a Machine can bear."""
    return (len(world.steps(AskFor)), len(world.steps(DeleteNode)), world.boot) == (1, 1, 2) and not world.steps(
        *OF_MACHINES
    )


def test_an_object_has_its_node_remedied_once_and_waits_for_the_health_check_to_delete_it() -> None:
    world = NodeWorld()
    uid = world.node(HOST).node.uid
    world.make()
    world.run(world.succeeded)
    assert world.node(HOST).node.uid != uid == world.found().node_uid
    world.spend(2000)
    assert once(world) and world.restored()
    assert (world.condition()["status"], world.condition()["reason"]) == ("True", "Succeeded")
    world.delete()
    world.run(lambda: world.is_gone() and world.is_over())


def test_the_object_says_what_is_done_while_its_node_is_missing() -> None:
    world = NodeWorld()
    world.make()
    world.run(lambda: bool(world.steps(DeleteNode)))
    world.driver.turn()
    assert world.api.get("nodes", HOST) is None
    assert "freeing its workloads" in world.told()
    assert not any(each.refused for each in world.driver.next_actions)


@pytest.mark.parametrize("count", range(MOST_STEPS))
def test_a_leader_that_ends_after_any_step_is_followed_by_one_that_requests_nothing_twice(count: int) -> None:
    world = NodeWorld()
    world.make()
    world.spend(400, lambda: len(world.done) >= count)
    world.another_leader()
    world.run(world.succeeded)
    assert once(world)
    world.delete()
    world.run(lambda: world.is_gone() and world.is_over())


@pytest.mark.parametrize("at_each", [(SetPhase,), (SetFinalizer,), (AskFor,), (SetPhase, SetFinalizer, AskFor)])
def test_a_leader_for_each_step_of_the_object_requests_nothing_twice(at_each: tuple[type, ...]) -> None:
    world = NodeWorld()
    world.make()
    while not world.succeeded():
        count = len(world.steps(*at_each))
        world.run(lambda count=count: world.succeeded() or len(world.steps(*at_each)) > count)  # type: ignore[misc]
        world.another_leader()
    assert once(world)


@pytest.mark.parametrize("at", [SetPhase, SetFinalizer, AskFor, DropClaim])
def test_a_write_whose_answer_was_lost_is_found_done_by_the_next_leader(at: type) -> None:
    world = NodeWorld()
    world.make()
    for _ in range(3):
        world.spend(400, lambda: bool(world.under_way) and isinstance(world.under_way[0][1], at))
        if world.under_way:
            world.carry_out()
        world.another_leader()
    world.run(world.succeeded)
    assert once(world)


def test_a_request_that_failed_is_made_once_the_api_answers() -> None:
    world = NodeWorld()
    world.make()
    world.run(lambda: bool(world.under_way) and isinstance(world.under_way[0][1], AskFor))
    world.fail(Written.NOT_DONE)
    world.another_leader()
    world.run(world.succeeded)
    assert once(world)


@pytest.mark.parametrize("count", range(MOST_STEPS))
def test_an_object_that_is_deleted_after_any_step_leaves_nothing_behind(count: int) -> None:
    world = NodeWorld()
    world.make()
    world.spend(400, lambda: len(world.done) >= count)
    world.delete()
    world.run(lambda: world.is_gone() and world.is_over())
    assert world.restored()
    assert len(world.steps(DeleteNode)) <= 1


def test_an_object_that_is_deleted_while_its_node_is_missing_stays_until_that_is_given_back() -> None:
    """As medik8s does to objects of Nodes that it does not find."""
    world = NodeWorld()
    world.make()
    world.run(lambda: bool(world.steps(DeleteNode)))
    world.delete()
    world.run(lambda: not world.is_gone() and "usable again" in world.told())
    world.run(world.is_gone)
    assert world.given_back()


@pytest.mark.parametrize("count", range(0, MOST_STEPS, 3))
def test_objects_that_are_no_longer_carried_out_are_given_back(count: int) -> None:
    world = NodeWorld()
    world.make()
    world.spend(400, lambda: len(world.done) >= count)
    world.settings = replace(world.settings, remediations=Remediations())
    world.another_leader()
    world.run(lambda: world.is_let_go() and world.is_over())


@pytest.mark.parametrize("strategy", ["resources", "out-of-service"])
def test_where_the_node_stays_the_claim_tells_that_the_attempt_is_over(strategy: str) -> None:
    world = NodeWorld()
    world.with_settings(strategy=strategy)
    uid = world.node(HOST).node.uid
    world.make()
    world.run(world.succeeded)
    assert world.node(HOST).node.uid == uid
    assert (len(world.steps(AskFor)), world.boot) == (1, 2)


# More attempts, and none.


@pytest.mark.parametrize("restarts", [False, True])
def test_a_node_that_is_not_well_is_remedied_again_and_then_the_object_fails_without_a_machine(restarts: bool) -> None:
    world = NodeWorld()
    world.sick = True
    world.make()
    world.run(lambda: len(world.steps(DeleteNode)) == 1)
    if restarts:
        world.another_leader()
    world.run(lambda: world.is_in(Phase.FAILED) and world.is_let_go(), seconds=4000)
    assert len(world.steps(AskFor)) == len(world.steps(DeleteNode)) == 2  # one attempt, and one retry
    assert world.found().retry_count == 1
    assert world.condition()["reason"] == "NotEscalated"
    assert "after 2 attempts, and there is no Machine" in world.condition()["message"]
    world.spend(1000)
    assert not world.steps(*OF_MACHINES) and len(world.steps(DeleteNode)) == 2
    world.delete()
    world.run(lambda: world.is_gone() and world.is_over())


def test_a_host_that_stays_away_is_freed_once_however_often_it_is_tried() -> None:
    world = NodeWorld()
    world.gone = True
    world.make()
    world.run(lambda: world.is_in(Phase.FAILED) and world.is_let_go(), seconds=4000)
    assert len(world.steps(DeleteNode)) == len(world.steps(Condemn)) == 1
    assert "NotEscalated" in world.condition()["reason"]
    assert world.given_back()


def test_an_object_that_was_to_delete_a_machine_fails_where_there_are_none() -> None:
    """Somebody has edited its status, or api.machines was another one before."""
    world = NodeWorld()
    world.make()
    world.api.patch(KIND, KEY, {"status": {"phase": "Deleting machine"}})
    world.run(lambda: world.is_in(Phase.FAILED))
    assert "there is no Machine" in world.condition()["message"]
    world.spend(100)
    assert not world.steps(*OF_MACHINES, DeleteNode)


def test_a_node_that_somebody_else_replaces_is_not_requested_a_second_time_by_the_same_attempt() -> None:
    world = NodeWorld()
    world.make()
    world.run(lambda: bool(world.steps(Condemn)))
    world.delete_node(HOST)
    world.driver.turn()
    assert "there is no Node x" in world.told()
    world.reset()
    world.kubelet_registers()
    world.run(lambda: world.is_in(Phase.WAITING))
    assert "somebody else has replaced its Node" in world.condition()["message"]
    world.run(world.succeeded)
    assert (len(world.steps(AskFor)), len(world.steps(DeleteNode)), world.boot) == (1, 0, 2)


# One at a time, and for whom.


def test_of_two_objects_for_one_node_the_second_waits_until_the_node_is_well() -> None:
    world, other = NodeWorld(), "medik8s/other"
    world.make()
    world.run(lambda: bool(world.steps(Condemn)))
    world.make("other")
    world.gone = True
    world.run(lambda: world.is_in(Phase.WAITING))
    world.spend(30)
    assert f"waits its turn: {KIND} {KEY} has the machine remedied" in world.told(other)
    world.delete(other)
    world.gone = False
    world.run(world.succeeded)
    assert once(world)


def test_an_object_waits_while_an_annotation_has_requested_the_node_before_it() -> None:
    world = NodeWorld()
    world.request()
    world.run(lambda: bool(world.steps(Condemn)))
    world.make()
    world.spend(5)
    assert "annotation requests its remediation already" in world.told()


def test_a_name_that_medik8s_has_generated_is_read_by_its_annotation() -> None:
    world, generated = NodeWorld(), f"medik8s/{HOST}-7k2xq"
    world.make(f"{HOST}-7k2xq", annotations={NODE_NAME: HOST})
    world.run(lambda: world.is_in(Phase.WAITING, generated) and world.is_let_go(generated))
    assert once(world)


def test_an_object_for_a_machine_is_refused_where_there_are_none() -> None:
    world = NodeWorld()
    world.make(ownerReferences=[{"kind": "Machine", "name": HOST, "uid": world.node(HOST).node.uid}])
    world.spend(30)
    assert "there is no Machine medik8s/x: in this cluster Nodes stand for themselves" in world.told()
    assert not world.steps()


# Claims and flows on Nodes.


def claimed(flow: str, **annotations: str) -> NodeWorld:
    world = NodeWorld()
    claim = Claim("a requester", "any", flow)
    world.annotate_node(HOST, **{REQUESTED_BY: claim.render(), **annotations})
    world.request()
    return world


@pytest.mark.parametrize("annotations", [{}, {FLOW: "poison-pill"}], ids=str)
def test_a_claim_that_names_no_flow_leaves_that_to_the_machine(annotations: dict[str, str]) -> None:
    world = claimed("", **annotations)
    world.run(lambda: bool(world.steps(DeleteNode)))


@pytest.mark.parametrize(("flow", "annotations"), [("power-cycle", {}), ("", {FLOW: "power-cycle"})], ids=str)
def test_a_node_is_not_power_cycled_and_the_sentence_says_why(flow: str, annotations: dict[str, str]) -> None:
    world = claimed(flow, **annotations)
    assert "power-cycle is requested, and" in world.held()


# Whatever happens.


Act = Callable[[NodeWorld], None]
ACTS: dict[str, Act] = {
    "make": lambda world: world.make() if world.is_gone() else None,
    "delete": lambda world: world.delete(),
    "make another": lambda world: world.make("other") if world.is_gone("medik8s/other") else None,
    "delete the other": lambda world: world.delete("medik8s/other"),
    "ask": lambda world: world.request() if world.condemnation() is not None and world.uncondemned() else None,
    "take back": lambda world: world.lift() if world.condemnation() is not None else None,
    "a while": lambda world: world.spend(30),
    "long": lambda world: world.spend(400),
    "another leader": lambda world: world.another_leader(),
    "stays away": lambda world: setattr(world, "gone", True),
    "may come back": lambda world: setattr(world, "gone", False),
}


@tries(100)
@given(st.lists(st.sampled_from(sorted(ACTS)), max_size=20))
def test_whatever_is_asked_by_whom_nothing_is_freed_that_runs_and_all_can_be_ended(acts: list[str]) -> None:
    """FreedWhileRunning is raised by the world itself."""
    world = NodeWorld()
    for act in acts:
        ACTS[act](world)
        world.spend(1)
    world.gone = False
    for key in (KEY, "medik8s/other"):
        world.delete(key)
    if world.condemnation() is not None:
        world.lift()
    world.run(lambda: world.is_gone() and world.is_gone("medik8s/other") and world.is_over(), seconds=4000)


@tries(60)
@given(st.sets(st.integers(0, 60), max_size=8))
def test_leaders_that_end_after_any_steps_have_the_host_reset_once(ends: set[int]) -> None:
    world = NodeWorld()
    world.make()
    for end in sorted(ends):
        world.spend(1000, lambda end=end: len(world.done) >= end)  # type: ignore[misc]
        world.another_leader()
    world.run(world.succeeded)
    world.spend(1000)
    assert once(world)
