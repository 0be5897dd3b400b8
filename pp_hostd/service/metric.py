"""Figures about the daemon, and how Prometheus reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple


class Metric(NamedTuple):
    """One family: its type is counter or gauge, a sample is its labels and its value."""

    name: str
    help: str
    type: str
    samples: Sequence[tuple[Mapping[str, str], float]]


def render(metrics: Iterable[Metric]) -> str:
    """The metrics as Prometheus reads them."""
    return "".join(f"{line}\n" for metric in metrics for line in _lines(metric))


def _lines(metric: Metric) -> Iterator[str]:
    yield f"# HELP {metric.name} {_escaped(metric.help)}"
    yield f"# TYPE {metric.name} {metric.type}"
    for labels, value in metric.samples:
        pairs = ",".join(f'{name}="{_quoted(text)}"' for name, text in labels.items())
        yield f"{metric.name}{{{pairs}}} {value}" if pairs else f"{metric.name} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', '\\"')
