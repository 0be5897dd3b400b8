"""When a candidate takes the Lease, how long it acts, and what ends that. The duration is 10 s, a term 9 s."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone

import pytest

from pp_hostd.model.lease import GIVEN_UP_SECONDS, LEASE, NEVER, TERM_PART, Candidacy, Lease, LeaseExchange

TAKE, RENEW, GIVE_UP = LeaseExchange.TAKE, LeaseExchange.RENEW, LeaseExchange.GIVE_UP
NOON = datetime(2026, 3, 4, 12, tzinfo=timezone.utc)
ADAS = Lease("1", "ada", 10, 0)
BOBS = Lease("2", "bob", 10, 1)
GIVEN_UP = Lease("3", "", GIVEN_UP_SECONDS, 1)
NEWCOMER = Candidacy("bob", 10.0)
LEADING = replace(NEWCOMER.saw(GIVEN_UP, 100.0), term=4).held(LeaseExchange.TAKE, BOBS, 100.0, 100.5)


def campaign_at(candidacy: Candidacy) -> float:
    """When it writes, if all it sees until then is the same."""
    now = candidacy.exchanged_at
    while True:
        exchange, now = candidacy.next_exchange(now)
        if exchange is not LeaseExchange.LOOK:
            return now
        candidacy = candidacy.saw(candidacy.lease, now)


def test_a_newcomer_looks_first() -> None:
    assert NEWCOMER.next_exchange(5.0) == (LeaseExchange.LOOK, NEVER)


@pytest.mark.parametrize(
    ("lease", "exchange", "after_seconds"),
    [
        (ADAS, LeaseExchange.TAKE, 10),
        (replace(ADAS, duration_seconds=30), LeaseExchange.TAKE, 30),
        (replace(ADAS, duration_seconds=5), LeaseExchange.TAKE, 10),
        (replace(ADAS, holder=""), LeaseExchange.TAKE, 10),
        (BOBS, LeaseExchange.TAKE, 10),
        (GIVEN_UP, LeaseExchange.TAKE, 0),
        (None, LeaseExchange.CREATE, 0),
    ],
    ids=["held", "held for longer", "held for less", "holder taken out", "in its own name", "given up", "missing"],
)
def test_a_candidate_campaigns_when_it_saw_the_lease_unchanged_for_both_durations_or_given_up(
    lease: Lease | None, exchange: LeaseExchange, after_seconds: float
) -> None:
    seen = NEWCOMER.saw(lease, 100.0)
    assert campaign_at(seen) == 100.0 + after_seconds
    assert seen.saw(lease, 100.0 + after_seconds).next_exchange(100.0 + after_seconds)[0] is exchange


def test_a_lease_that_was_renewed_in_between_is_watched_from_the_start_again() -> None:
    renewed = replace(ADAS, resource_version="9")
    assert campaign_at(NEWCOMER.saw(ADAS, 100.0).saw(renewed, 109.0)) == 119.0


def test_a_lease_that_was_deleted_and_came_back_is_watched_from_the_start_again() -> None:
    assert campaign_at(NEWCOMER.saw(ADAS, 100.0).saw(None, 105.0).saw(ADAS, 108.0)) == 118.0


def test_failed_looks_do_not_make_a_candidate_forget_since_when_the_lease_is_the_same() -> None:
    hung = NEWCOMER.saw(ADAS, 100.0).failed(LeaseExchange.LOOK, 130.0, overtaken=False)
    assert hung.next_exchange(130.0) == (LeaseExchange.LOOK, 130.5)
    assert hung.saw(ADAS, 130.5).next_exchange(130.5) == (LeaseExchange.TAKE, 110.0)


def test_creating_the_lease_begins_no_term() -> None:
    created = NEWCOMER.saw(None, 100.0).saw(replace(ADAS, holder=""), 101.0)
    assert not created.acting(101.0) and campaign_at(created) == 111.0


def test_a_term_is_dated_by_when_its_last_renewal_was_sent() -> None:
    assert LEADING.acting_until_at == 109.0 and LEADING.term == 5
    assert LEADING.acting(108.9) and not LEADING.acting(109.0)
    renewed = LEADING.held(LeaseExchange.RENEW, replace(BOBS, resource_version="4"), 102.5, 104.0)
    assert renewed.acting_until_at == 111.5 and renewed.term == 5


def test_a_leader_renews_every_fifth_of_the_duration() -> None:
    assert LEADING.next_exchange(100.5) == (LeaseExchange.RENEW, 102.0)


@pytest.mark.parametrize(("now", "seconds"), [(102.0, 2.0), (108.0, 1.0)])
def test_no_exchange_of_a_leader_outlives_its_term(now: float, seconds: float) -> None:
    assert LEADING.exchange_seconds(now) == seconds


def test_a_renewal_that_is_answered_after_the_end_of_the_term_revives_nothing() -> None:
    late = LEADING.held(LeaseExchange.RENEW, replace(BOBS, resource_version="4"), 108.0, 109.0)
    assert not late.acting(109.0) and campaign_at(late) == 119.0


def test_a_lease_that_was_taken_too_slowly_is_not_acted_on() -> None:
    slow = NEWCOMER.saw(GIVEN_UP, 100.0).held(LeaseExchange.TAKE, BOBS, 100.0, 109.5)
    assert not slow.acting(109.5)


def test_a_renewal_without_an_answer_is_followed_by_a_look_and_the_term_goes_on() -> None:
    unsure = LEADING.failed(LeaseExchange.RENEW, 104.0, overtaken=False)
    assert unsure.acting(104.0) and unsure.next_exchange(104.0) == (LeaseExchange.LOOK, 104.5)
    landed = unsure.saw(replace(BOBS, resource_version="4"), 104.6)
    assert landed.next_exchange(104.6) == (LeaseExchange.RENEW, 102.0)
    assert landed.acting_until_at == LEADING.acting_until_at, "only an answer to a renewal prolongs a term"


def test_a_renewal_of_another_lease_than_the_one_seen_ends_the_term_at_once() -> None:
    assert not LEADING.failed(LeaseExchange.RENEW, 103.0, overtaken=True).acting(103.0)


@pytest.mark.parametrize("lease", [ADAS, GIVEN_UP, None], ids=["another's", "given up", "missing"])
def test_a_look_that_shows_the_lease_in_no_name_of_ours_ends_the_term_at_once(lease: Lease | None) -> None:
    assert not LEADING.failed(LeaseExchange.RENEW, 103.0, overtaken=False).saw(lease, 103.6).acting(103.6)


@pytest.mark.parametrize(("missing", "conflict"), [(True, False), (False, True)], ids=["gone", "overtaken"])
def test_a_renewal_of_a_lease_that_is_gone_or_another_ends_the_term_at_once(missing: bool, conflict: bool) -> None:
    ended = LEADING.after_failure(LeaseExchange.RENEW, 101.0, missing=missing, conflict=conflict)
    assert not ended.acting(101.0)
    assert LEADING.after_failure(LeaseExchange.RENEW, 101.0, missing=False, conflict=False).acting(101.0)


def test_a_look_that_finds_no_lease_has_succeeded_and_shows_that_there_is_none() -> None:
    seen = NEWCOMER.saw(ADAS, 100.0).after_failure(LeaseExchange.LOOK, 101.0, missing=True, conflict=False)
    assert (seen.lease, seen.certain) == (None, True)
    lost = NEWCOMER.saw(ADAS, 100.0).after_failure(LeaseExchange.LOOK, 101.0, missing=False, conflict=False)
    assert (lost.lease, lost.certain) == (ADAS, False)


def test_every_write_is_for_the_version_that_was_seen_and_only_a_new_lease_for_none() -> None:
    assert NEWCOMER.body(LeaseExchange.CREATE, NOON)["metadata"] == {"name": LEASE}
    bodies = {exchange: LEADING.body(exchange, NOON) for exchange in (TAKE, RENEW, GIVE_UP)}
    assert {body["metadata"]["resourceVersion"] for body in bodies.values()} == {BOBS.resource_version}
    assert [body["spec"]["holderIdentity"] for body in bodies.values()] == ["bob", "bob", ""]
    assert [key for key, body in bodies.items() if "acquireTime" in body["spec"]] == [TAKE]


def test_a_reply_in_another_name_begins_no_term() -> None:
    assert not NEWCOMER.saw(GIVEN_UP, 100.0).held(LeaseExchange.TAKE, ADAS, 100.0, 100.1).acting(100.1)


def test_one_that_resigns_stops_at_once_gives_the_lease_up_and_campaigns_only_a_duration_later() -> None:
    resigned = LEADING.resigned(103.0)
    assert not resigned.acting(103.0)
    assert resigned.next_exchange(103.0) == (LeaseExchange.GIVE_UP, 103.0)
    assert campaign_at(resigned.saw(GIVEN_UP, 103.1)) == 113.0


def test_one_that_could_not_give_the_lease_up_looks_and_tries_again() -> None:
    unsure = LEADING.resigned(103.0).failed(LeaseExchange.GIVE_UP, 105.0, overtaken=False)
    assert unsure.next_exchange(105.0) == (LeaseExchange.LOOK, 105.5)
    assert unsure.saw(BOBS, 105.6).next_exchange(105.6) == (LeaseExchange.GIVE_UP, 105.6)


@pytest.mark.parametrize("exchange", [LeaseExchange.TAKE, LeaseExchange.RENEW])
def test_one_that_resigned_while_its_write_was_under_way_does_not_act_on_the_answer(exchange: LeaseExchange) -> None:
    resigned = LEADING.resigned(103.0).held(exchange, BOBS, 102.9, 103.1)
    assert not resigned.acting(103.1) and resigned.next_exchange(103.1)[0] is LeaseExchange.GIVE_UP


def test_a_term_is_shorter_than_a_duration_by_more_than_two_clocks_can_drift_apart() -> None:
    fast, slow = 1 + 1000e-6, 1 - 1000e-6
    assert TERM_PART / slow < 1 / fast
