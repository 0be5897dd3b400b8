"""The one mechanism of reading: what JSON it refuses, and that its reasons can be shown to a person."""

from __future__ import annotations

import pytest

from pp_hostd.model.promise import parse_agent_record
from pp_hostd.model.record import Unreadable
from pp_hostd.model.roster import parse_roster

HOSTILE = {
    "nothing": (None, "it is missing, not text"),
    "a number": (7, "it is 7, not text"),
    "an empty text": ("", "it is not JSON"),
    "half a record": ('{"v":1,', "it is not JSON"),
    "a list": ("[1]", "it is of type list, not an object"),
    "bytes that are not UTF-8": (b'{"v":1,"state":"\xff"}', "it is not JSON: 'utf-8' codec"),
    "UTF-16": ('{"v":1}'.encode("utf-16"), "it is not JSON"),
    "NaN": ('{"v":1,"T":NaN}', "NaN is no number"),
    "Infinity": ('{"v":1,"T":-Infinity}', "-Infinity is no number"),
    "a number without end": ('{"v":1,"T":' + "9" * 15_000 + "}", "more than 20 digits"),
    "a tower of lists": ('{"v":1,"T":' + "[" * 16_000, "nested too deeply"),
    "a lone surrogate": ('{"v":1,"state":"\\ud800"}', "state is '\\ud800', not one of armed, gate-closed"),
    "a text without end": ('{"v":1,"state":"' + "x" * 20_000 + '"}', "longer than 16384 characters"),
    "no version": ('{"state":"armed"}', "its version (v) is missing, and this program reads version 1: update it"),
}


@pytest.mark.parametrize(("source", "reason"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_input_is_refused_with_a_short_reason_in_ascii(source: object, reason: str) -> None:
    parsed = parse_agent_record(source)
    assert isinstance(parsed, Unreadable)
    assert reason in parsed.reason
    assert str(parsed).startswith("the agent's record is unreadable: ")
    assert len(str(parsed)) < 200
    assert str(parsed).isascii()
    assert str(parsed).isprintable()


def test_a_million_digits_are_refused_before_they_are_computed() -> None:
    parsed = parse_roster('{"v":1,"version":' + "9" * 1_000_000 + "}")
    assert parsed == Unreadable("the roster", "it is not JSON: a number has more than 20 digits")
