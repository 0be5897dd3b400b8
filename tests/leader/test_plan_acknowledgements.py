"""At least half of the nodes must know, and still know after the wait (rule 10)."""

from __future__ import annotations

import pytest

from pp_hostd.leader.remedies.poison_pill.memory import PillMemory, after_news
from pp_hostd.leader.remedies.poison_pill.steps import AskPeers, Condemn
from pp_hostd.leader.steps.machines import Inspect
from pp_hostd.leader.steps.nodes import DeleteNode
from pp_hostd.leader.steps.port import Acknowledged, NotAcknowledged
from pp_hostd.model.promise import GateKind
from tests.leader.virtual_host import HOST, Peer, World

WAIT_SECONDS = 44.0


def world_of(count: int) -> World:
    """A cluster of so many nodes, in which remediation of the host is requested."""
    world = World(peers=tuple(f"p{number:02}" for number in range(1, count)))
    world.request()
    return world


def silence(world: World, count: int) -> None:
    """All peers but so many are silent."""
    for number, peer in enumerate(world.peers.values()):
        peer.reachable = number < count


def known_by(world: World) -> int:
    memory = world.driver.term.memories[HOST].part(PillMemory)
    return len(memory.tokens)


@pytest.mark.parametrize("nodes", [2, 3, 4, 5, 6, 9, 10])
def test_half_of_all_nodes_is_enough_and_one_less_is_not(nodes: int) -> None:
    half = (nodes + 1) // 2
    world = world_of(nodes)
    silence(world, half - 1)
    told = world.held(100.0)
    assert f"{half - 1} of {nodes} nodes have acknowledged, and 1 more must" in told
    silence(world, half)
    world.run(world.given_back)
    assert world.at(DeleteNode) >= world.at(Condemn) + 100.0 + WAIT_SECONDS - 10.0


def test_who_is_silent_is_named_with_the_reason() -> None:
    world = world_of(5)
    silence(world, 2)
    told = world.held(60.0)
    assert "p03: no answer in time" in told
    assert "p04: no answer in time" in told
    assert "p01" not in told


def test_peers_that_know_nothing_and_cant_read_do_not_count() -> None:
    world = world_of(5)
    for peer in world.peers.values():
        peer.reads = False
    assert "it says api-error" in world.held(60.0)


def test_nobody_is_asked_more_often_than_once_a_second_and_everybody_gets_a_turn() -> None:
    world = world_of(30)
    silence(world, 0)
    world.run(lambda: bool(world.steps(AskPeers)))
    began_at = world.now
    world.run(lambda: world.now >= began_at + 10.0)
    rounds = [step for step in world.steps(AskPeers) if isinstance(step, AskPeers)]
    assert len(rounds) <= 11
    assert {member.name for step in rounds for member in step.peers} == set(world.peers)


def test_silent_peers_do_not_keep_the_others_from_being_asked() -> None:
    world = world_of(20)
    silence(world, 9)
    world.run(lambda: HOST in world.driver.term.memories and known_by(world) == 9)
    world.peers["p19"].reachable = True  # the only one that can still acknowledge, and two are asked at a time
    world.run(world.given_back)


def test_only_as_many_are_asked_as_may_be_needed() -> None:
    world = world_of(40)
    world.run(lambda: bool(world.steps(AskPeers)))
    asked = world.steps(AskPeers)[0]
    assert isinstance(asked, AskPeers)
    assert len(asked.peers) == 39
    world = world_of(5)
    silence(world, 2)
    world.run(lambda: len(world.steps(AskPeers)) == 2)
    asked = world.steps(AskPeers)[1]
    assert isinstance(asked, AskPeers)
    assert [member.name for member in asked.peers] == ["p03", "p04"]  # one is missing, and two are asked


def test_the_host_is_not_its_own_peer() -> None:
    world = world_of(3)
    world.run(world.given_back)
    asked = [member.name for step in world.steps(AskPeers) if isinstance(step, AskPeers) for member in step.peers]
    assert HOST not in asked


def test_the_only_node_has_nobody_who_could_acknowledge() -> None:
    world = world_of(1)
    assert "no more nodes are left to ask" in world.held(60.0)


def test_the_wait_begins_when_half_know_and_not_when_the_first_does() -> None:
    world = world_of(5)
    silence(world, 2)
    world.run(lambda: known_by(world) == 2 if world.driver.term.memories else False)
    world.pass_until(world.now + 60.0)
    silence(world, 3)
    known_at = world.now
    world.run(world.given_back)
    assert world.at(DeleteNode) == known_at + WAIT_SECONDS


def waiting(nodes: int, knowing: int) -> World:
    world = world_of(nodes)
    silence(world, knowing)
    world.run(
        lambda: (
            HOST in world.driver.term.memories and world.driver.term.memories[HOST].part(PillMemory).t0_at is not None
        )
    )
    return world


def test_a_peer_that_has_forgotten_in_between_makes_the_wait_start_anew() -> None:
    world = waiting(5, 3)
    world.peers["p02"].forget()
    world.run(world.given_back)
    assert world.at(DeleteNode) == world.at(Condemn) + WAIT_SECONDS + 1.0 + WAIT_SECONDS
    assert len(world.steps(Condemn)) == 1


def test_a_peer_that_has_forgotten_is_not_missed_where_enough_others_remember() -> None:
    world = waiting(5, 4)
    world.peers["p02"].forget()
    world.run(world.given_back)
    assert world.at(DeleteNode) == world.at(Condemn) + WAIT_SECONDS


def test_a_peer_that_falls_silent_during_the_wait_is_asked_until_it_answers() -> None:
    world = waiting(5, 3)
    world.peers["p02"].reachable = False
    told = world.held(100.0)
    assert "2 of 5 answered, half must" in told
    assert "p02: no answer in time" in told
    world.peers["p02"].reachable = True
    back_at = world.now
    world.run(world.given_back)
    assert back_at <= world.at(DeleteNode) <= back_at + 1.0


def test_after_the_wait_the_same_ones_are_asked_and_nobody_else() -> None:
    world = waiting(9, 5)
    silence(world, 8)
    first = len(world.steps(AskPeers))
    world.run(world.given_back)
    again = [member.name for step in world.steps(AskPeers)[first:] for member in getattr(step, "peers", ())]
    assert sorted(again) == ["p01", "p02", "p03", "p04", "p05"]


def test_an_acknowledgement_of_another_condemnation_does_not_count() -> None:
    world = world_of(3)
    for peer in world.peers.values():
        peer.reads, peer.knows = False, 7
    assert "it knows of condemnation 7" in world.held(60.0)


def test_those_are_asked_that_the_promise_names_and_not_those_of_today() -> None:
    world = World()
    world.enrol(["x", "a", "b", "e"])  # c and d have left, and e has come
    world.add_node("e", "192.0.2.9")
    world.driver.turn()
    world.request()
    world.run(lambda: bool(world.steps(AskPeers)))
    asked = world.steps(AskPeers)[0]
    assert isinstance(asked, AskPeers)
    assert [member.name for member in asked.peers] == ["a", "b", "c", "d"]
    told = world.held(20.0)
    assert "of 5 nodes know" in told


def test_a_promise_of_another_roster_in_the_middle_makes_all_others_count() -> None:
    world = waiting(3, 2)
    world.add_node("p03", "192.0.2.9")
    world.enrol(["x", "p01", "p02", "p03", "p04"])
    world.driver.turn()
    world.pass_until(world.now + 30.0)
    world.promise = world.a_promise()
    world.state(world.promise)
    assert world.promise.roster_version == 2
    changed_at = world.now
    world.run(world.given_back)
    assert world.at(DeleteNode) == changed_at + WAIT_SECONDS


def test_a_promise_of_a_roster_of_others_makes_those_count_alone() -> None:
    world = waiting(3, 2)
    for name in ("q1", "q2"):
        world.add_node(name, "192.0.2.9")
        world.peers[name] = Peer()
    world.enrol(["x", "q1", "q2"])
    world.driver.turn()
    world.promise = world.a_promise()
    world.state(world.promise)
    asked = len(world.steps(AskPeers))
    world.run(world.given_back)
    again = {member.name for step in world.steps(AskPeers)[asked:] for member in getattr(step, "peers", ())}
    assert again == {"q1", "q2"}


def test_a_peer_that_says_otherwise_after_the_wait_is_replaced_by_others() -> None:
    world = waiting(5, 3)
    world.peers["p02"].forget()
    world.peers["p02"].reads = False
    world.peers["p04"].reachable = True
    world.run(world.given_back)
    assert world.at(DeleteNode) == world.at(Condemn) + WAIT_SECONDS + 1.0 + WAIT_SECONDS


@pytest.mark.parametrize(("asked_after", "counts"), [(-0.1, False), (WAIT_SECONDS - 0.1, False), (WAIT_SECONDS, True)])
def test_only_who_was_asked_after_the_wait_has_acknowledged_again(asked_after: float, counts: bool) -> None:
    world = waiting(3, 2)
    memory = world.driver.term.memories[HOST].part(PillMemory)
    assert memory.t0_at is not None
    late = Acknowledged(HOST, "p01", 1, memory.tokens["p01"], memory.t0_at + asked_after)
    after = after_news(world.settings, world.driver.term.memories[HOST], [late]).part(PillMemory)
    assert ("p01" in after.again) is counts


def test_who_acknowledges_and_then_says_otherwise_counts_no_longer() -> None:
    world = waiting(3, 2)
    memory = world.driver.term.memories[HOST].part(PillMemory)
    asked_at = world.now + WAIT_SECONDS
    again = Acknowledged(HOST, "p01", 1, memory.tokens["p01"], asked_at)
    otherwise = NotAcknowledged(HOST, "p01", asked_at, answered=True, sentence="it says healthy")
    known = after_news(world.settings, world.driver.term.memories[HOST], [again])
    after = after_news(world.settings, known, [otherwise]).part(PillMemory)
    assert after.again == frozenset()
    assert "p01" not in after.tokens


def test_a_last_look_follows_the_last_acknowledgement() -> None:
    world = waiting(5, 3)
    world.run(world.given_back)
    steps = [type(step) for step in world.steps(AskPeers, Inspect)]
    assert steps == [Inspect, Inspect, AskPeers, AskPeers, Inspect]


def test_peers_may_be_asked_about_a_host_with_any_gate() -> None:
    world = World(gate=GateKind.NONE)
    world.request()
    world.run(world.given_back)
    assert len(world.steps(AskPeers)) == 2
