"""A person's orders for the whole cluster: what is there and can't be read is not the same as no order."""

from __future__ import annotations

import json
from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pp_hostd.model.control import Control, Grant, Maintenance, Pause, parse_control
from pp_hostd.model.record import Unreadable
from tests.model import strategies as draw

NOON = datetime(2026, 3, 1, 12, 0, 0, tzinfo=timezone.utc)
EVENING = datetime(2026, 3, 1, 18, 0, 0, tzinfo=timezone.utc)
PAUSE = Pause("ada", NOON, "switch replacement in rack 4")
MAINTENANCE = Maintenance("ada", NOON, "firmware", EVENING)


@pytest.mark.parametrize("data", [None, {}, {"something": "else"}])
def test_without_orders_nothing_is_ordered(data: object) -> None:
    assert parse_control(data) == Control(paused=None, maintenance=None)


def test_both_orders_are_read_on_their_own() -> None:
    assert parse_control({"paused": PAUSE.render()}) == Control(PAUSE, None)
    assert parse_control({"maintenance": MAINTENANCE.render()}) == Control(None, MAINTENANCE)
    assert parse_control({"paused": PAUSE.render(), "maintenance": "?"}).paused == PAUSE


@pytest.mark.parametrize(("seconds", "counts"), [(-3600, False), (-3599, True), (0, True), (3599, True), (3600, False)])
def test_what_a_person_grants_counts_for_an_hour_by_clocks_that_may_differ(seconds: int, counts: bool) -> None:
    order = Grant("ada", NOON, 3)
    assert parse_control({"more-resets": order.render()}) == Control(None, None, order)
    assert order.counts_at(NOON.timestamp() + seconds) is counts


@pytest.mark.parametrize("more", [0, -1, 1001, True, "3"])
def test_a_grant_of_no_number_is_unreadable(more: object) -> None:
    fields = {"v": 1, "who": "ada", "when": "2026-03-01T12:00:00Z", "more": more}
    assert isinstance(parse_control({"more-resets": json.dumps(fields)}).grant, Unreadable)


def test_an_order_says_who_when_why_and_until_when() -> None:
    assert json.loads(MAINTENANCE.render()) == {
        "v": 1,
        "who": "ada",
        "when": "2026-03-01T12:00:00Z",
        "why": "firmware",
        "until": "2026-03-01T18:00:00Z",
    }


@pytest.mark.parametrize("missing", ["who", "when", "why", "until"])
def test_an_order_that_does_not_say_so_is_unreadable(missing: str) -> None:
    fields = json.loads(MAINTENANCE.render())
    del fields[missing]
    parsed = parse_control({"maintenance": json.dumps(fields)}).maintenance
    assert isinstance(parsed, Unreadable)
    assert f"{missing} is missing" in parsed.reason


@pytest.mark.parametrize("value", ["", "true", "yes", None, True, "{}", '{"v":1,"who":"ada\\nroot"}'])
def test_an_order_that_cannot_be_read_is_not_taken_for_none(value: object) -> None:
    control = parse_control({"paused": value, "maintenance": value})
    assert isinstance(control.paused, Unreadable)
    assert isinstance(control.maintenance, Unreadable)


@draw.examples
@given(draw.anything | st.dictionaries(st.sampled_from(["paused", "maintenance"]), draw.json_values))
def test_reading_never_raises(source: object) -> None:
    str(parse_control(source))
