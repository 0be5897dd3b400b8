"""Wall-clock times as Kubernetes writes them (RFC 3339). For people and records only; no bound is measured by them."""

from __future__ import annotations

import re
from datetime import datetime, timezone

# datetime.fromisoformat of Python 3.9 knows neither `Z` nor fractions of 1 or 9 digits.
_RFC_3339 = re.compile(r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-]\d\d:\d\d))")
_DURATION = re.compile("([1-9][0-9]{0,5})([smhd])")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def parse_duration(text: str) -> int | None:
    """The seconds of `90s`, `30m`, `4h` or `2d`, or None when the text is no duration."""
    match = _DURATION.fullmatch(text)
    return None if match is None else int(match[1]) * _UNITS[match[2]]


def parse_moment(text: str) -> datetime | None:
    """The time in UTC, to the microsecond, or None when the text is no time."""
    match = _RFC_3339.fullmatch(text)
    if match is None:
        return None
    day, clock, fraction, offset = match.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{clock}.{fraction or '':0<6.6}{offset or '+00:00'}")
        return moment.astimezone(timezone.utc)
    except (ValueError, OverflowError):
        return None


def render_moment(moment: datetime) -> str:
    """`2026-03-01T12:00:00Z`, with a fraction only when there is one."""
    return moment.astimezone(timezone.utc).replace(tzinfo=None).isoformat() + "Z"
