"""The record of the hosts that an agent can't reach: short, sorted, and there only if there are any."""

from __future__ import annotations

import json

import pytest

from pp_hostd.model.record import Unreadable
from pp_hostd.model.suspicion import MAX_SUSPECTS, Suspicion, parse_suspicion


def test_suspects_are_named_once_and_in_order_and_not_too_many() -> None:
    assert Suspicion.of(["b", "a", "b"]) == Suspicion(("a", "b"))
    many = Suspicion.of(f"host-{number}" for number in range(MAX_SUSPECTS + 1))
    assert many is not None and len(many.suspects) == MAX_SUSPECTS
    assert Suspicion.of([]) is None


def test_the_record_is_what_the_leader_reads() -> None:
    assert Suspicion(("a", "b")).render() == '{"v":1,"suspects":["a","b"]}'
    assert parse_suspicion('{"v":1,"suspects":["b","a","b"]}') == Suspicion(("a", "b"))


@pytest.mark.parametrize("suspects", [[], None, "a", ["A"], [3], [None], [f"h{number}" for number in range(9)], {}])
def test_any_other_list_is_unreadable(suspects: object) -> None:
    assert isinstance(parse_suspicion(json.dumps({"v": 1, "suspects": suspects})), Unreadable)
