"""How many may be unhealthy at once, and durations, as health checks write them."""

from __future__ import annotations

import pytest

from pp_hostd.leader.facts.limits import Limit, parse_duration, parse_limit, render_duration
from pp_hostd.model.record import Refused


@pytest.mark.parametrize(
    ("most", "expected", "allowed"),
    [
        ("40%", 25, 10),
        ("40%", 6, 2),
        ("40%", 5, 2),
        ("40%", 4, 1),
        ("40%", 3, 1),
        ("40%", 2, 0),
        ("40%", 1, 0),
        ("40%", 0, 0),
        ("49%", 100, 49),
        ("100%", 7, 7),
        ("0%", 7, 0),
        (3, 2, 3),
        (3, 100, 3),
        ("3", 100, 3),
        (0, 5, 0),
        (-1, 5, 0),
    ],
)
def test_percentages_are_rounded_down(most: object, expected: int, allowed: int) -> None:
    limit = parse_limit(most, None)
    assert limit.most(expected) == allowed
    assert limit.allows(allowed, expected)
    assert not limit.allows(allowed + 1, expected)


@pytest.mark.parametrize(("unhealthy", "allowed"), [(0, False), (2, False), (3, True), (5, True), (6, False)])
def test_a_range_is_inclusive_and_wins(unhealthy: int, allowed: bool) -> None:
    assert parse_limit("100%", "[3-5]").allows(unhealthy, 100) is allowed


@pytest.mark.parametrize("most", ["1O%", "", [], 10**9])
def test_beside_a_range_nobody_looks_at_the_other_limit(most: object) -> None:
    assert parse_limit(most, "[3-5]") == Limit(within=(3, 5))


@pytest.mark.parametrize("most", ["40", "040%", "1e1"])
def test_numbers_in_text_are_numbers(most: str) -> None:
    try:
        limit = parse_limit(most, None)
    except Refused:
        assert most == "1e1"
    else:
        assert limit in (Limit(40, None), Limit(0, 40))


@pytest.mark.parametrize("most", ["101%", "-1%", "4O%", "", "%", 1.5, True, [], "9" * 400, 10**9])
def test_what_is_no_limit_is_refused_and_shown(most: object) -> None:
    with pytest.raises(Refused, match=r"maxUnhealthy is .*, not a whole number or a part from 0% to 100%"):
        parse_limit(most, None)


@pytest.mark.parametrize("within", ["[5-3]", "3-5", "[3-]", "[a-b]", 3, "[3-5] ", "[" + "9" * 50 + "-1]"])
def test_what_is_no_range_is_refused(within: object) -> None:
    with pytest.raises(Refused, match="unhealthyRange is"):
        parse_limit("40%", within)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("300s", 300),
        ("5m", 300),
        ("1h30m", 5400),
        ("1.5h", 5400),
        (".5s", 0.5),
        ("1m0.25s", 60.25),
        ("250ms", 0.25),
        ("1000us", 0.001),
        ("1000µs", 0.001),
        ("1000000ns", 0.001),
        ("0", 0),
        ("0s", 0),
    ],
)
def test_durations_are_as_go_writes_them(text: str, seconds: float) -> None:
    assert parse_duration(text, "timeout") == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["0s", "250ms", "30s", "1m0.25s", "5m0s", "1h0m0s", "1h30m5s", "720h0m0s"])
def test_durations_are_written_as_go_does(text: str) -> None:
    assert render_duration(parse_duration(text, "timeout")) == text


@pytest.mark.parametrize("text", ["", "5", "5 m", "-5m", "5min", "m", "1d", None, 300, "1h" * 30, "9999h"])
def test_what_is_no_duration_is_refused(text: object) -> None:
    with pytest.raises(Refused, match="timeout is"):
        parse_duration(text, "timeout")
