"""Wall-clock times in RFC 3339."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pp_hostd.model.moment import parse_moment, render_moment
from tests.model import strategies as draw

NOON = datetime(2026, 3, 1, 12, 0, 0, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("text", "after_noon"),
    [
        ("2026-03-01T12:00:00Z", timedelta()),
        ("2026-03-01t12:00:00z", timedelta()),
        ("2026-03-01T14:00:00+02:00", timedelta()),
        ("2026-03-01T06:30:00-05:30", timedelta()),
        ("2026-03-01T12:00:00.5Z", timedelta(milliseconds=500)),
        ("2026-03-01T12:00:00.000001Z", timedelta(microseconds=1)),
        ("2026-03-01T12:00:00.123456789+00:00", timedelta(microseconds=123456)),
    ],
)
def test_the_forms_of_rfc_3339_are_read(text: str, after_noon: timedelta) -> None:
    assert parse_moment(text) == NOON + after_noon


@pytest.mark.parametrize(
    "text",
    [
        "",
        "true",
        "1772366400",
        "2026-03-01",
        "2026-03-01T12:00:00",  # of which zone?
        "2026-03-01 12:00:00Z",
        "2026-03-01T12:00:00Z\n",
        " 2026-03-01T12:00:00Z",
        "2026-03-01T12:00:00.Z",
        "2026-13-01T12:00:00Z",
        "2026-02-30T12:00:00Z",
        "2026-03-01T25:00:00Z",
        "2026-03-01T12:00:00+99:99",
        "0000-03-01T12:00:00Z",
        "0001-01-01T00:00:00+12:00",
        "9999-12-31T23:59:59-12:00",
        "\u0662026-03-01T12:00:00Z",
        "2026-03-01T12:00:00.\u0665Z",
        "2026-03-01T12:00:00+0\u0662:00",
    ],
)
def test_what_is_no_time_is_none(text: str) -> None:
    assert parse_moment(text) is None


@draw.examples
@given(draw.moments)
def test_a_time_is_read_back_as_it_was_written(moment: datetime) -> None:
    assert parse_moment(render_moment(moment)) == moment


@draw.examples
@given(st.text(max_size=40) | st.from_regex(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", fullmatch=True))
def test_reading_a_time_never_raises(text: str) -> None:
    moment = parse_moment(text)
    assert moment is None or moment.utcoffset() == timedelta()


def test_times_are_written_in_utc_with_a_z() -> None:
    berlin = NOON.astimezone(timezone(timedelta(hours=1)))
    assert render_moment(berlin) == "2026-03-01T12:00:00Z"
