"""Rules 3 and 4 of the design, sentence by sentence: whom a host asks, and what the answers come to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pp_hostd.model.answer import Health
from pp_hostd.model.evidence import PeerAnswered, Read, WatchedCondemned
from pp_hostd.model.inquiry import Inquiry, Reply, Said
from pp_hostd.model.memory import MAX_LIFTED, LastRead, Lifted, Outage, Proof, Source
from pp_hostd.model.verdict import State
from tests.agent.judging import (
    HOST,
    PROVEN,
    START,
    UID,
    answer,
    answered,
    inquiring,
    machine,
    says,
    standing,
)
from tests.agent.judging import (
    judged_host as host,
)

# Rule 3


def test_a_good_read_between_failures_starts_the_count_anew() -> None:
    lived = host(now=START + 3)
    lived.memory = replace(PROVEN, failed_reads=2)
    lived.learn(Read(START + 2, START + 3, machine()))
    assert lived.memory.failed_reads == 0
    lived.learn(Read(START + 3, START + 3, failure="timed out"))
    assert lived.verdict.ask == ()


def test_a_read_that_fails_after_a_later_one_has_proven_is_not_counted() -> None:
    lived = host(now=START + 4)
    lived.learn(Read(START + 2, START + 3, machine()), Read(START + 1, START + 4, failure="timed out"))
    assert lived.memory.failed_reads == 0
    assert lived.verdict.state is State.HEALTHY


def test_no_healthy_and_one_unhealthy_condemns_when_the_round_is_over() -> None:
    lived = host(inquiring(), now=START + 15)
    assert lived.learn(answered("peer-1", Health.UNHEALTHY, 6)).reset is None
    lived.now = START + 16
    assert lived.learn().reset is not None


def test_a_healthy_that_comes_after_an_unhealthy_in_the_same_round_still_counts() -> None:
    lived = host(inquiring(), now=START + 15)
    lived.learn(answered("peer-1", Health.UNHEALTHY, 6))
    assert lived.learn(answered("peer-2", Health.HEALTHY)).state is State.HEALTHY


def test_a_late_healthy_of_an_earlier_round_still_counts() -> None:
    lived = host(replace(inquiring(), inquiry=Inquiry(START + 12, 0, 2, START + 14, ("peer-1", "peer-2"), 1)))
    lived.now = START + 15
    lived.learn(answered("peer-1", Health.HEALTHY, began_at=START + 12))
    assert lived.verdict.proof == Proof(START + 12, Source.PEER, "peer-1")


@pytest.mark.parametrize(
    "stranger",
    [
        answered("peer-2", Health.HEALTHY),
        answered("nobody", Health.HEALTHY),
        answered(HOST, Health.HEALTHY),
        answered("peer-1", Health.HEALTHY, began_at=START + 11.9),
    ],
    ids=["not asked", "unknown", "the host itself", "asked by an earlier inquiry"],
)
def test_only_who_was_asked_in_this_inquiry_is_heard(stranger: PeerAnswered) -> None:
    lived = host(inquiring(asked=("peer-1",)), now=START + 15)
    lived.learn(stranger)
    assert lived.memory.inquiry == inquiring(asked=("peer-1",)).inquiry
    assert lived.verdict.proof == PROVEN.proof


def test_each_peer_counts_once() -> None:
    lived = host(inquiring(), now=START + 15)
    lived.learn(answered("peer-1", Health.API_ERROR), answered("peer-1", Health.UNHEALTHY, 6))
    lived.learn(answered("peer-1", Health.HEALTHY))
    assert lived.memory.inquiry is not None
    assert lived.memory.inquiry.replies == (Reply("peer-1", Said.API_ERROR, None),)


@pytest.mark.parametrize(
    ("n", "errors", "lives"),
    [
        (2, 0, False),
        (2, 1, True),
        (3, 0, False),
        (3, 1, True),
        (4, 1, False),
        (4, 2, True),
        (12, 5, False),
        (12, 6, True),
    ],
)
def test_an_outage_takes_more_than_half_of_the_nodes_with_the_host_itself(n: int, errors: int, lives: bool) -> None:
    peers = standing(n).peers
    replies = [Reply(peer, Said.API_ERROR, None) for peer in peers[:errors]]
    lived = host(inquiring(*replies, asked=peers), n, now=START + 16)
    lived.learn()
    assert lived.verdict.state is (State.OUTAGE if lives else State.RESETTING)
    assert not lives or lived.verdict.proof == Proof(START + 12, Source.OUTAGE, lived.verdict.proof.detail)  # type: ignore[union-attr]


def test_while_two_rosters_may_be_in_force_an_outage_needs_a_majority_of_both() -> None:
    lived = host(inquiring(Reply("peer-1", Said.API_ERROR, None), asked=("peer-1", "peer-2", "x", "y")), now=START + 16)
    both = ((HOST, "peer-1", "peer-2"), (HOST, "peer-1", "x", "y"))
    lived.standing = replace(standing(), electorates=both[:1])
    assert lived.learn().state is State.OUTAGE
    lived = host(inquiring(Reply("peer-1", Said.API_ERROR, None), asked=("peer-1", "peer-2", "x", "y")), now=START + 16)
    lived.standing = replace(standing(), electorates=both)
    assert lived.learn().state is State.RESETTING


def test_an_outage_is_settled_as_soon_as_more_than_half_of_the_nodes_say_so() -> None:
    asked = standing(30).peers[:15]
    replies = tuple(Reply(peer, Said.API_ERROR, None) for peer in asked)
    assert host(inquiring(*replies, asked=asked), 30, now=START + 15).learn().state is State.OUTAGE


def test_who_joins_the_roster_amid_an_inquiry_is_asked_before_the_host_gives_up() -> None:
    asked = ("left-1", "left-2", "peer-1")
    lived = host(inquiring(asked=asked), now=START + 16)
    lived.learn()
    assert lived.verdict.ask == ("peer-1", "peer-2")
    assert lived.verdict.reset is None


def test_peers_that_can_not_be_reached_end_no_round_before_its_time() -> None:
    lived = host(replace(PROVEN, failed_reads=3), 2)
    (peer,) = lived.learn().ask
    unreachable = PeerAnswered(peer, lived.now, lived.now, None, "network is unreachable")
    assert (lived.learn(unreachable).reset, lived.verdict.ask) == (None, ())
    lived.now += lived.settings.peers.round_seconds
    assert lived.learn().ask == (peer,)


def test_who_was_silent_is_asked_in_every_round_that_is_left_and_then_the_host_gives_up() -> None:
    lived = host(replace(PROVEN, failed_reads=3), 2)
    for _ in range(lived.settings.peers.rounds):
        assert lived.learn().ask == ("peer-1",)
        assert lived.learn().ask == ()
        lived.now += lived.settings.peers.round_seconds
    assert lived.learn().reset is not None


def test_a_peer_whose_agent_restarts_is_heard_in_the_next_round() -> None:
    lived = host(replace(PROVEN, failed_reads=3), 2)
    (peer,) = lived.learn().ask
    began_at = lived.now
    lived.now += lived.settings.peers.round_seconds
    lived.learn(PeerAnswered(peer, began_at, lived.now, None, "connection refused"))
    lived.learn(answered(peer, Health.API_ERROR, began_at=lived.now))
    assert lived.verdict.proof == Proof(began_at, Source.OUTAGE, "1 api-error of 1 asked")


def test_nobody_is_asked_again_by_a_second_judgement_at_the_same_moment() -> None:
    lived = host(replace(PROVEN, failed_reads=3))
    assert len(lived.learn().ask) == 1
    assert lived.learn().ask == ()


def test_after_an_outage_verdict_one_failed_read_is_enough_to_ask_again() -> None:
    outage = replace(PROVEN, outage=Outage(START + 12, START + 20, ""), proof=Proof(START + 12, Source.OUTAGE))
    lived = host(outage, now=START + 22)
    lived.learn(Read(START + 20, START + 22, failure="timed out"))
    assert len(lived.verdict.ask) == 1


def test_a_read_begun_before_the_outage_verdict_starts_no_other_inquiry() -> None:
    outage = replace(PROVEN, outage=Outage(START + 12, START + 20, ""), proof=Proof(START + 12, Source.OUTAGE))
    lived = host(outage, now=START + 22)
    lived.learn(Read(START + 19.5, START + 21, failure="timed out"))
    assert lived.verdict.ask == ()


def test_an_outage_verdict_does_not_wait_for_the_read_under_way() -> None:
    memory = replace(inquiring(Reply("peer-1", Said.API_ERROR, None)), reading_since=START + 15)
    lived = host(memory, now=START + 16)
    lived.learn()
    assert lived.verdict.state is State.OUTAGE
    assert lived.verdict.read


def test_the_read_after_an_outage_verdict_begins_an_interval_after_its_inquiry_began() -> None:
    outage, beside = Outage(START + 12, START + 13, ""), LastRead(START + 12.5, START + 12.75, "timed out")
    memory = replace(PROVEN, outage=outage, proof=Proof(START + 12, Source.OUTAGE), last_read=beside)
    assert not host(memory, now=START + 15.9).learn().read
    assert host(memory, now=START + 16).learn().read


def test_after_a_good_read_the_outage_is_over_and_three_failures_count_again() -> None:
    outage = replace(PROVEN, outage=Outage(START + 12, START + 20, ""), proof=Proof(START + 12, Source.OUTAGE))
    lived = host(outage, now=START + 23)
    lived.learn(Read(START + 20, START + 21, machine()), Read(START + 22, START + 23, failure="timed out"))
    assert lived.verdict.state is State.SUSPECT
    assert lived.verdict.ask == ()


def test_a_peer_that_vouches_ends_the_outage_too() -> None:
    outage = Outage(START + 10, START + 11, "")
    lived = host(replace(inquiring(), outage=outage), now=START + 15)
    assert lived.learn(answered("peer-1", Health.HEALTHY)).state is State.HEALTHY


def test_failures_beside_an_inquiry_bring_no_other_nearer() -> None:
    lived = host(inquiring(), now=START + 15)
    lived.learn(Read(START + 13, START + 15, failure="timed out"))
    assert lived.memory.failed_reads == 0


def test_a_good_read_beside_an_inquiry_ends_it() -> None:
    lived = host(inquiring(), now=START + 15)
    lived.learn(Read(START + 13, START + 15, machine()))
    assert lived.verdict.state is State.HEALTHY


def test_a_host_that_is_disarmed_amid_an_inquiry_drops_it() -> None:
    lived = host(inquiring(), now=START + 17)
    lived.standing = standing(armed=False)
    lived.learn()
    assert lived.memory.inquiry is None


def test_a_restart_amid_a_round_asks_again_who_may_still_speak_against_an_unhealthy() -> None:
    lived = host(inquiring(), peer=says(Health.HEALTHY), now=START + 15)
    lived.learn(answered("peer-1", Health.UNHEALTHY, 6))
    lived.restart()
    assert (lived.verdict.ask, lived.verdict.reset) == (("peer-2",), None)
    assert lived.run(1).verdict.proof == Proof(START + 15, Source.PEER, "peer-2")


# Rule 4


@pytest.mark.parametrize(("id", "lives"), [(4, False), (5, True), (6, False)])
def test_an_unhealthy_under_the_very_id_that_a_read_found_lifted_is_api_error(id: int, lives: bool) -> None:
    lived = host(inquiring(lifted_id=5), now=START + 16)
    lived.learn(answered("peer-1", Health.UNHEALTHY, id), answered("peer-2", None))
    assert (lived.verdict.state is State.OUTAGE) is lives


def test_what_a_peer_has_read_as_lifted_is_known_lifted() -> None:
    lived = host(inquiring(lifted_id=3), now=START + 16)
    lived.learn(PeerAnswered("peer-1", START + 14, START + 15, answer(Health.HEALTHY, lifted_id=5)))
    assert lived.verdict.state is State.HEALTHY
    assert lived.memory.lifted == (Lifted(UID, 3), Lifted(UID, 5))


def test_an_id_that_was_lifted_for_another_machine_is_an_accusation() -> None:
    lived = host(inquiring().having_seen_lifted("another", 5), now=START + 16)
    lived.learn(answered("peer-1", Health.UNHEALTHY, 5), answered("peer-2", None))
    assert lived.verdict.reset is not None


def test_a_watch_brings_no_news_of_what_the_host_has_seen_lifted() -> None:
    lived = host()
    lived.learn(Read(START, START + 1, machine(last_id=5)), WatchedCondemned(UID, 5, START + 1))
    assert lived.verdict.reset is None
    assert not lived.verdict.read
    assert lived.learn(WatchedCondemned(UID, 6, START + 1)).read


def test_every_id_that_was_found_lifted_is_known_whatever_their_order() -> None:
    lived = host()
    lived.learn(Read(START, START + 1, machine(last_id=5)), Read(START, START + 1, machine(last_id=3)))
    assert lived.memory.lifted == (Lifted(UID, 5), Lifted(UID, 3))


def test_of_very_many_lifted_ids_the_oldest_are_forgotten() -> None:
    lived = host()
    for last_id in range(1, MAX_LIFTED + 3):
        lived.learn(Read(START, START + 1, machine(last_id=last_id)))
    assert lived.memory.lifted == tuple(Lifted(UID, each) for each in range(3, MAX_LIFTED + 3))


def test_ones_own_read_condemns_even_under_an_id_seen_lifted() -> None:
    lived = host(PROVEN.having_seen_lifted(UID, 5))
    lived.learn(Read(START, START + 1, machine(condemned=5)))
    assert lived.verdict.reset is not None
