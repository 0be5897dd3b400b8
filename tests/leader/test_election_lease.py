"""The leaders' Lease is read whatever it holds, and never by a wall clock."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pp_hostd.model.allowed import Number
from pp_hostd.model.lease import (
    LONGEST_SECONDS,
    Lease,
    given_up_spec,
    parse_lease,
    renewed_spec,
    taken_spec,
    unheld_spec,
)
from pp_hostd.model.record import Unreadable
from pp_hostd.model.settings import every_setting

NOON = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
HELD = {"holderIdentity": "ada", "leaseDurationSeconds": 15, "leaseTransitions": 3}


def lease(spec: Any, version: object = "7") -> Lease | Unreadable:
    return parse_lease({"metadata": {"resourceVersion": version}, "spec": spec})


def test_a_lease_tells_its_holder_its_duration_and_how_often_it_changed_hands() -> None:
    assert lease(HELD) == Lease("7", "ada", 15, 3)


@pytest.mark.parametrize("garbage", [7, True, [], {}, "a\nb", "\ud800", "x" * 5000])
def test_a_holder_that_makes_no_sense_is_somebody(garbage: object) -> None:
    assert lease({**HELD, "holderIdentity": garbage, "leaseDurationSeconds": 1}) == Lease("7", "(unreadable)", 1, 3)


@pytest.mark.parametrize("garbage", [None, 0, -1, 121, 2**31 - 1, 10**30, True, 1.5, "15", []])
def test_a_duration_that_no_leader_has_is_the_longest_that_one_may_have(garbage: object) -> None:
    assert lease({**HELD, "leaseDurationSeconds": garbage}) == Lease("7", "ada", LONGEST_SECONDS, 3)


def test_no_setting_allows_a_longer_term_than_the_longest() -> None:
    allowed = next(each.allowed for each in every_setting() if each.key == "leader.lease_seconds")
    assert isinstance(allowed, Number) and allowed.high == LONGEST_SECONDS


@pytest.mark.parametrize("garbage", [None, -1, 2**31 - 1, "3", True])
def test_a_count_that_cannot_be_counted_on_begins_anew(garbage: object) -> None:
    assert lease({**HELD, "leaseTransitions": garbage}) == Lease("7", "ada", 15, 0)


@pytest.mark.parametrize("version", [None, "", 7, "a b"])
def test_a_lease_without_a_version_is_unreadable_since_no_write_could_be_conditional_on_it(version: object) -> None:
    assert isinstance(lease(HELD, version), Unreadable)


@pytest.mark.parametrize("garbage", [None, [], "Lease", {"spec": []}, {"metadata": 1}])
def test_what_is_no_lease_is_unreadable(garbage: object) -> None:
    assert isinstance(parse_lease(garbage), Unreadable)


@given(st.text() | st.datetimes().map(str) | st.integers() | st.none(), st.text())
def test_the_wall_clock_times_in_a_lease_change_nothing(renewed: object, acquired: object) -> None:
    assert lease({**HELD, "renewTime": renewed, "acquireTime": acquired}) == lease(HELD)


def test_only_a_holder_that_said_so_has_given_up() -> None:
    def given_up(spec: Any) -> bool:
        found = lease(spec)
        assert isinstance(found, Lease)
        return found.given_up

    assert given_up({**HELD, **given_up_spec(NOON)})
    assert not given_up({**HELD, "holderIdentity": ""}), "a person took the holder out"
    assert not given_up({**HELD, "leaseDurationSeconds": 1})
    assert not given_up(unheld_spec(5.0))
    assert not given_up({})


@pytest.mark.parametrize(("holder", "transitions"), [("ada", 4), ("", 4), ("bob", 3)])
def test_a_lease_that_changes_hands_counts_it(holder: str, transitions: int) -> None:
    spec = taken_spec(Lease("7", holder, 15, 3), "bob", 14.2, NOON)
    assert spec == {
        "holderIdentity": "bob",
        "leaseDurationSeconds": 15,
        "leaseTransitions": transitions,
        "acquireTime": "2026-03-01T12:00:00.000000+00:00",
        "renewTime": "2026-03-01T12:00:00.000000+00:00",
    }


def test_a_renewal_leaves_when_the_lease_was_acquired_and_how_often() -> None:
    assert renewed_spec("bob", 15, NOON).keys() == {"holderIdentity", "leaseDurationSeconds", "renewTime"}
