"""An inquiry: the peers that it asks in each round, and the result of their answers."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pp_hostd.model.answer import Answer, Health
from pp_hostd.model.inquiry import Inquiry, Reply, Said, asked_by_round, is_outage, next_round, weigh
from tests.model.strategies import examples

BEGUN = Inquiry(started_at=10.0, seed=7, round=0, round_began_at=10.0, asked=(), in_round=0)
ROUND_SECONDS = 2.0


def peers(count: int) -> tuple[str, ...]:
    return tuple(f"peer-{number}" for number in range(count))


def all_rounds(count: int, rounds: int, seed: int = 7) -> list[Inquiry]:
    """The inquiry in each of its rounds, if everybody answers, and nothing that settles it."""
    lived = [next_round(replace(BEGUN, seed=seed), peers(count), rounds, 10.0)]
    while len(lived[-1].asked) < count:
        answered = replace(lived[-1], replies=tuple(map(reply, lived[-1].asked)))
        lived.append(next_round(answered, peers(count), rounds, lived[-1].round_began_at + ROUND_SECONDS))
    return lived


def reply(peer: str, said: Said = Said.API_ERROR) -> Reply:
    return Reply(peer, said, None)


@given(st.integers(1, 120), st.integers(2, 20))
def test_the_first_sample_is_a_tenth_of_all_nodes_and_never_none(count: int, rounds: int) -> None:
    n = count + 1
    assert len(all_rounds(count, rounds)[0].asked) == max(1, min(math.ceil(n / 10), n - 1))


@given(st.integers(1, 120), st.integers(1, 20), st.integers())
def test_all_peers_are_asked_once_each_within_the_rounds(count: int, rounds: int, seed: int) -> None:
    lived = all_rounds(count, rounds, seed)
    assert len(lived) <= rounds
    assert lived[-1].round <= rounds
    assert sorted(lived[-1].asked) == sorted(peers(count))
    assert all(inquiry.in_round > 0 for inquiry in lived)
    assert [inquiry.started_at for inquiry in lived] == [10.0] * len(lived)


@given(st.integers(1, 120), st.integers(1, 20))
def test_the_sets_grow_from_round_to_round(count: int, rounds: int) -> None:
    by_round = [asked_by_round(count, number, rounds) for number in range(1, rounds + 2)]
    assert by_round == sorted(by_round)
    assert by_round[-2:] == [count, count]


def test_a_hundred_nodes_are_asked_in_four_growing_rounds() -> None:
    assert [inquiry.in_round for inquiry in all_rounds(99, 4)] == [10, 12, 25, 52]


def test_with_one_round_everyone_is_asked_in_it() -> None:
    assert [inquiry.in_round for inquiry in all_rounds(99, 1)] == [99]


def test_rounds_in_which_nobody_new_is_due_are_passed_over() -> None:
    assert [(inquiry.round, inquiry.in_round) for inquiry in all_rounds(2, 4)] == [(1, 1), (2, 1)]
    assert [(inquiry.round, inquiry.in_round) for inquiry in all_rounds(1, 20)] == [(1, 1)]


def test_another_seed_asks_in_another_order_and_the_same_seed_in_the_same() -> None:
    orders = {all_rounds(30, 4, seed)[-1].asked for seed in range(20)}
    assert len(orders) == 20
    assert all_rounds(30, 4) == all_rounds(30, 4)


@examples
@given(*[st.sets(st.sampled_from("abcdefgh"))] * 3, st.integers(1, 5))
def test_whoever_comes_or_goes_meanwhile_who_was_silent_is_asked_again_and_some_who_were_not_asked(
    asked: set[str], answered: set[str], now_peers: set[str], rounds: int
) -> None:
    heard = asked & answered
    inquiry = replace(BEGUN, round=2, asked=tuple(asked), in_round=len(asked), replies=tuple(map(reply, heard)))
    further = next_round(inquiry, tuple(now_peers), rounds, 12.0)
    due, silent = set(further.asked_in_round), (asked - heard) & now_peers
    assert silent <= due <= now_peers - heard
    assert bool(due) == bool(now_peers - heard)
    assert due >= now_peers - heard or further.round < rounds
    assert sorted(further.asked) == sorted(asked | due)
    assert further.replies == inquiry.replies
    assert further.round <= max(rounds, 3)


def test_who_was_silent_is_asked_again_in_every_round_that_is_left() -> None:
    lived = [next_round(BEGUN, peers(3), 5, 10.0)]
    while not lived[-1].exhausted(peers(3), 5):
        first, *_ = lived[0].asked
        others = tuple(reply(peer) for peer in lived[-1].asked if peer != first)
        lived.append(next_round(replace(lived[-1], replies=others), peers(3), 5, 10.0))
    assert [inquiry.round for inquiry in lived] == [1, 2, 3, 4, 5]
    assert all(lived[0].asked[0] in inquiry.awaited for inquiry in lived)
    assert [inquiry.in_round for inquiry in lived] == [1, 2, 1, 2, 1]


def test_nobody_is_left_to_ask_when_all_have_answered_and_who_joined_is() -> None:
    lived = all_rounds(3, 5)[-1]
    answered = replace(lived, replies=tuple(map(reply, peers(3))))
    assert answered.exhausted(peers(3), 5)
    assert not replace(answered, round=5).exhausted(peers(4), 5)


def test_a_round_is_over_when_it_has_lasted_its_time() -> None:
    inquiry = all_rounds(30, 4)[1]
    assert not inquiry.round_over(ROUND_SECONDS, inquiry.round_began_at + 1.999)
    assert inquiry.round_over(ROUND_SECONDS, inquiry.round_began_at + 2)


def test_a_round_is_over_when_all_whom_it_asked_have_answered() -> None:
    inquiry = all_rounds(30, 4)[1]
    *some, last = inquiry.asked[-inquiry.in_round :]
    heard = replace(inquiry, replies=tuple(reply(peer) for peer in some))
    assert heard.awaited == (last,)
    assert not heard.round_over(ROUND_SECONDS, 12.0)
    assert replace(heard, replies=(*heard.replies, reply(last))).round_over(ROUND_SECONDS, 12.0)


def test_a_restarted_process_asks_again_whom_it_had_asked_in_vain_and_no_one_else() -> None:
    second = all_rounds(30, 4)[1]
    heard = replace(second, replies=(*second.replies, reply(second.asked[-1])))
    again = next_round(heard.resumed(), peers(30), 4, 13.5)
    assert set(again.awaited) == set(heard.awaited)
    assert set(again.asked) == set(heard.asked)
    assert again.in_round == heard.in_round - 1
    assert (again.round, again.round_began_at, again.started_at) == (second.round, 13.5, second.started_at)
    assert again.replies == heard.replies


def test_a_restart_after_the_last_answer_of_a_round_changes_nothing() -> None:
    first = all_rounds(30, 4)[0]
    heard = replace(first, replies=tuple(reply(peer) for peer in first.asked))
    assert heard.resumed() == heard


@pytest.mark.parametrize(
    ("health", "id", "lifted_id", "weighs"),
    [
        (Health.HEALTHY, None, 0, Said.HEALTHY),
        (Health.HEALTHY, 5, 5, Said.HEALTHY),
        (Health.UNHEALTHY, 5, 4, Said.UNHEALTHY),
        (Health.UNHEALTHY, 5, 5, Said.API_ERROR),
        (Health.UNHEALTHY, 5, 6, Said.UNHEALTHY),
        (Health.UNHEALTHY, None, 9, Said.UNHEALTHY),
        (Health.NOT_FOUND, None, 9, Said.NOT_FOUND),
        (Health.API_ERROR, None, 0, Said.API_ERROR),
    ],
)
def test_what_an_answer_weighs(health: Health, id: int | None, lifted_id: int, weighs: Said) -> None:
    answer = Answer(health, id, "token", "nonce", "peer-1", "host", "host")
    assert weigh(answer, [lifted_id]) == (weighs, id)


@pytest.mark.parametrize(
    ("errors", "electorates", "outage"),
    [
        ("", [], False),
        ("a", ["ha"], True),
        ("", ["ha"], False),
        ("a", ["hab"], True),
        ("a", ["habc"], False),
        ("ab", ["habc"], True),
        ("ab", ["habc", "hcde"], False),
        ("abc", ["habc", "hcde"], False),
        ("abcd", ["habc", "hcde"], True),
        ("xyz", ["hab"], False),
        ("a", ["ab"], False),
    ],
)
def test_an_outage_takes_more_than_half_of_every_electorate(errors: str, electorates: list[str], outage: bool) -> None:
    assert is_outage([reply(peer) for peer in errors], "h", electorates) is outage


@pytest.mark.parametrize("said", [word for word in Said if word is not Said.API_ERROR])
def test_only_api_error_makes_an_outage(said: Said) -> None:
    assert not is_outage([reply(peer, said) for peer in "ab"], "h", ["hab"])


def test_the_summary_counts_what_was_said_and_who_has_not_answered_as_silent() -> None:
    inquiry = replace(BEGUN, asked=("a", "b", "c"), in_round=3)
    assert inquiry.summary() == "3 silent of 3 asked"
    heard = replace(inquiry, replies=(reply("a"),))
    assert heard.summary() == "1 api-error, 2 silent of 3 asked"
