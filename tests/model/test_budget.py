"""The record of the remediations that have begun lately: each counts for an hour, whatever the clock does."""

from __future__ import annotations

import pytest

from pp_hostd.model.budget import HOUR_SECONDS, MAX_BEGINNINGS, Beginning, Budget

NOW = 1_800_000_000


@pytest.mark.parametrize(("age", "seconds"), [(0, 3600), (3599, 1), (3600, 0), (-1, 3600), (-86400, 3600)])
def test_a_beginning_counts_for_an_hour_and_one_from_the_future_as_one_of_now(age: int, seconds: int) -> None:
    assert Beginning("x", NOW - age).counts_for_seconds(NOW) == seconds


def test_who_writes_drops_what_counts_no_longer_and_keeps_nothing_from_the_future() -> None:
    old, recent, future = Beginning("a", NOW - HOUR_SECONDS), Beginning("b", NOW - 1), Beginning("c", NOW + 86400)
    new = Beginning("x", NOW)
    assert Budget((old, recent, future)).after(new) == Budget((recent, Beginning("c", NOW), new))


def test_the_list_is_bounded_and_the_newest_stay() -> None:
    budget = Budget(tuple(Beginning(f"n{number}", NOW) for number in range(MAX_BEGINNINGS)))
    after = budget.after(Beginning("x", NOW))
    assert (len(after.beginnings), after.beginnings[0].node, after.beginnings[-1].node) == (MAX_BEGINNINGS, "n1", "x")
