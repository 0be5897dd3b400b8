"""The figures of the pictures: from the tables of the pages, and from the timeline that the settings promise."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pp_hostd.model.settings import Settings
from pp_hostd.timing import timeline
from tests.pages import DOCS, rows

SETTINGS = Settings()
PROMISE = timeline(SETTINGS)


@dataclass(frozen=True)
class Moment:
    """A row of a page's table: `after` as it stands there, such as "16.0 s"."""

    after: str
    who: str
    told: str

    @property
    def seconds(self) -> float:
        return float(self.after.split()[0].replace(",", ""))


def moments(page: Path, heading: str) -> list[Moment]:
    """The first table at or after this text: when, who, what."""
    return [Moment(*row) for row in rows(page.read_text(), heading)[1:]]


def pulled_cable() -> list[Moment]:
    """One run of `make bench ONLY=cable`, as docs/leader.md tells it."""
    return moments(DOCS / "leader.md", "## What it looks like")


def outage() -> list[Moment]:
    """One host in the simulator's day control-plane-outage, as docs/concepts.md tells it."""
    return moments(DOCS / "concepts.md", "## When the control plane fails")
