"""Figures about the daemon, and how Prometheus reads them."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Union

from pp_hostd import __version__

BOUNDS_SECONDS = (1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0)


class Durations:
    """How many durations were observed, in the buckets of one histogram."""

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS_SECONDS) + 1)
        self._sum_seconds = 0.0

    def observe(self, seconds: float) -> None:
        self._counts[bisect_left(BOUNDS_SECONDS, seconds)] += 1
        self._sum_seconds += seconds

    def samples(self) -> Iterator[tuple[str, Mapping[str, str], float]]:
        """The suffix, label and value of each sample: a bucket holds all durations up to its bound."""
        total = 0
        for bound, count in zip((*BOUNDS_SECONDS, math.inf), self._counts):
            total += count
            yield "_bucket", {"le": "+Inf" if bound == math.inf else f"{bound:g}"}, total
        yield "_sum", {}, round(self._sum_seconds, 3)
        yield "_count", {}, total


Value = Union[float, Durations]


class Metric(NamedTuple):
    """One family: its type is counter, gauge or histogram, a sample is its labels and its value."""

    name: str
    help: str
    type: str
    samples: Sequence[tuple[Mapping[str, str], Value]]


def gauge(name: str, text: str, value: float | None) -> Metric:
    """A gauge without labels; it has no sample while there is no value."""
    return Metric(name, text, "gauge", [] if value is None else [({}, value)])


def build_info(name: str) -> Metric:
    return Metric(name, "1, labelled with the version of the program.", "gauge", [({"version": __version__}, 1)])


def render(metrics: Iterable[Metric]) -> str:
    """The metrics as Prometheus reads them."""
    return "".join(f"{line}\n" for metric in metrics for line in _lines(metric))


def _lines(metric: Metric) -> Iterator[str]:
    yield f"# HELP {metric.name} {_escaped(metric.help)}"
    yield f"# TYPE {metric.name} {metric.type}"
    for labels, value in metric.samples:
        figures = value.samples() if isinstance(value, Durations) else [("", {}, value)]
        for suffix, more, figure in figures:
            pairs = ",".join(f'{name}="{_quoted(text)}"' for name, text in {**labels, **more}.items())
            yield f"{metric.name}{suffix}{{{pairs}}} {figure}" if pairs else f"{metric.name}{suffix} {figure}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', '\\"')
