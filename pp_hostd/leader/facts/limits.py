"""How many may be unhealthy at once: maxUnhealthy and unhealthyRange, and the durations of health checks."""

from __future__ import annotations

import re

from pp_hostd.frozen import frozen
from pp_hostd.model.record import Refused

MOST = 10**6
_RANGE = re.compile(r"\[([0-9]{1,7})-([0-9]{1,7})\]")
_PERCENT = re.compile("([0-9]{1,3})%")
_GO_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_GO_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
MOST_SECONDS = 30 * 86400.0


@frozen
class Limit:
    """Health checks act while no more than so many are unhealthy: a number, or a part of all, rounded down. With a
    range, they act only while the number of unhealthy ones is in it; it wins over the other."""

    number: int = 0
    percent: int | None = None
    within: tuple[int, int] | None = None

    def most(self, expected: int) -> int:
        """So many may be unhealthy of so many that are expected."""
        if self.within is not None:
            return self.within[1]
        return self.number if self.percent is None else expected * self.percent // 100

    def allows(self, unhealthy: int, expected: int) -> bool:
        """Whether those that are unhealthy may be remediated."""
        if self.within is not None:
            return self.within[0] <= unhealthy <= self.within[1]
        return unhealthy <= self.most(expected)

    @property
    def written(self) -> str:
        """As the health check has it: [1-3], 40%, or 3."""
        if self.within is not None:
            return f"[{self.within[0]}-{self.within[1]}]"
        return str(self.number) if self.percent is None else f"{self.percent}%"

    def brief(self, expected: int) -> str:
        """For tables: 2 (40%), 3, or 1 to 3."""
        if self.within is not None:
            return f"{self.within[0]} to {self.within[1]}"
        return str(self.number) if self.percent is None else f"{self.most(expected)} ({self.percent}%)"

    def __str__(self) -> str:
        if self.within is not None:
            return f"unhealthyRange allows {self.within[0]} to {self.within[1]}"
        return f"maxUnhealthy allows {self.number if self.percent is None else f'{self.percent}%'}"


def parse_limit(most: object, within: object, names: tuple[str, str] = ("maxUnhealthy", "unhealthyRange")) -> Limit:
    """`most` is a number or a percentage; `within` a range like [1-3], None if there is none. `names` are those of the
    two fields."""
    if within is not None:  # as for Cluster API, nobody looks at the other then
        return Limit(within=_parse_range(within, names[1]))
    if type(most) is int and abs(most) <= MOST:
        return Limit(max(0, most))
    text = most if isinstance(most, str) else ""
    percent = _PERCENT.fullmatch(text)
    if percent is not None and int(percent[1]) <= 100:
        return Limit(percent=int(percent[1]))
    if text.isdecimal() and text.isascii() and len(text) <= len(str(MOST)) and int(text) <= MOST:
        return Limit(int(text))
    raise Refused(f"{names[0]} is {str(most)[:40]!r}, not a whole number or a part from 0% to 100%")


def _parse_range(text: object, name: str) -> tuple[int, int]:
    found = _RANGE.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise Refused(f"{name} is {str(text)[:40]!r}, not a range like [1-3]")
    least, most = int(found[1]), int(found[2])
    if most < least:
        raise Refused(f"{name} is {found[0]}, which ends before it begins")
    return least, most


def parse_duration(text: object, name: str) -> float:
    """The seconds of a duration as Go writes it: 1m30s, 300s, 1.5h, 0."""
    if text == "0":
        return 0.0
    if not isinstance(text, str) or not text or len(text) > 40 or _GO_PART.sub("", text):
        raise Refused(f"{name} is {str(text)[:40]!r}, not a duration like 300s, 5m or 1h30m")
    seconds = sum(float(number) * _GO_UNITS[unit] for number, unit in _GO_PART.findall(text))
    if seconds > MOST_SECONDS:
        raise Refused(f"{name} is {text}, and {MOST_SECONDS / 86400:g} days are the most")
    return seconds


def render_duration(seconds: float) -> str:
    """As Go writes it: 30s, 5m0s, 1h0m0s, 500ms."""
    if 0 < seconds < 1:
        return f"{seconds * 1000:.10g}ms"
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    of_hours, of_minutes = f"{hours}h" if hours else "", f"{minutes}m" if hours or minutes else ""
    return f"{of_hours}{of_minutes}{rest:.10g}s"
