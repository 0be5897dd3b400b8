"""The remediations that have begun lately: the ConfigMap `budget`, which a leader writes before it begins one."""

from __future__ import annotations

from datetime import datetime, timezone

from pp_hostd.frozen import frozen, replace
from pp_hostd.model.moment import render_moment
from pp_hostd.model.record import MAX_CONFIG_MAP_CHARACTERS, SUBJECT, Fields, Unreadable, document, read, render

HOUR_SECONDS = 3600
MAX_BEGINNINGS = 2000
"""The record lists no more, so no more may begin in an hour."""


@frozen
class Beginning:
    """A remediation of this node (without a Node: of this machine) has begun, or was about to."""

    node: str
    wallclock_seconds: int

    def counts_for_seconds(self, wallclock_seconds: int) -> int:
        """How long it still counts. One from the future counts as one of now: the clock was set back."""
        return HOUR_SECONDS - max(0, wallclock_seconds - self.wallclock_seconds)


@frozen
class Budget:
    """The oldest beginning is first."""

    beginnings: tuple[Beginning, ...] = ()

    def after(self, beginning: Beginning) -> Budget:
        """Returns the budget with this beginning as its last, without those that are older than an hour."""
        now = beginning.wallclock_seconds
        recent = (each for each in self.beginnings if each.counts_for_seconds(now) > 0)
        kept = (replace(each, wallclock_seconds=min(each.wallclock_seconds, now)) for each in recent)
        return Budget((*kept, beginning)[-MAX_BEGINNINGS:])

    def render(self) -> str:
        return render({"beginnings": [{"node": each.node, "when": _when(each)} for each in self.beginnings]})


def parse_budget(text: object) -> Budget | Unreadable:
    return read("the budget", _budget, text)


def _budget(text: object) -> Budget:
    listed = document(text, MAX_CONFIG_MAP_CHARACTERS).elements("beginnings")
    return Budget(tuple(_beginning(Fields(each, "a beginning")) for each in listed))


def _beginning(fields: Fields) -> Beginning:
    return Beginning(fields.text("node", SUBJECT), int(fields.moment("when").timestamp()))


def _when(beginning: Beginning) -> str:
    return render_moment(datetime.fromtimestamp(beginning.wallclock_seconds, timezone.utc))
