"""A person's orders for the whole cluster: the ConfigMap `control`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pp_hostd.frozen import frozen
from pp_hostd.model.budget import HOUR_SECONDS
from pp_hostd.model.keys import GRANT, MAINTENANCE, PAUSED
from pp_hostd.model.moment import render_moment
from pp_hostd.model.record import MAX_RECORD_CHARACTERS, PROSE, Fields, Unreadable, document, read, render

LONGEST_CLUSTER_MAINTENANCE_SECONDS = 86400
"""An order for the whole cluster that is longer was a mistake: agents refuse it."""
MOST_GRANTED = 1000
"""So many remediations may be granted at most."""


@frozen
class Pause:
    """The leader condemns and frees nothing."""

    who: str
    when_wallclock: datetime
    why: str

    def render(self) -> str:
        return render({"who": self.who, "when": render_moment(self.when_wallclock), "why": self.why})


@frozen
class Maintenance:
    """Planned work: the agents withdraw and disarm until then."""

    who: str
    when_wallclock: datetime
    why: str
    until_wallclock: datetime

    @property
    def seconds(self) -> float:
        """How long it was ordered for."""
        return (self.until_wallclock - self.when_wallclock).total_seconds()

    def fields(self) -> dict[str, Any]:
        when, until = render_moment(self.when_wallclock), render_moment(self.until_wallclock)
        return {"who": self.who, "when": when, "why": self.why, "until": until}

    def render(self) -> str:
        return render(self.fields())


@frozen
class Grant:
    """So many more remediations may begin than leader.resets_per_hour allows, in the hour after this."""

    who: str
    when_wallclock: datetime
    more: int

    def counts_at(self, wallclock_seconds: float) -> bool:
        """Two clocks may differ: so it may be one from the future, but not from any."""
        return abs(wallclock_seconds - self.when_wallclock.timestamp()) < HOUR_SECONDS

    def render(self) -> str:
        return render({"who": self.who, "when": render_moment(self.when_wallclock), "more": self.more})


@frozen
class Control:
    """All orders; None where none is given.

    The safe side of one that can't be read: someone wanted the leader to stand still, so it does; nobody disarms;
    nothing is granted.
    """

    paused: Pause | Unreadable | None
    maintenance: Maintenance | Unreadable | None
    grant: Grant | Unreadable | None = None


def parse_control(data: object) -> Control:
    """Returns the orders in the ConfigMap's data; no data is no order."""
    pause, maintenance = read("the pause", _pause, data), read("the maintenance", _maintenance, data)
    return Control(pause, maintenance, read("the grant of more remediations", _grant, data))


def _pause(data: object) -> Pause | None:
    order = _order(data, PAUSED)
    return None if order is None else Pause(*_signed(order))


def _maintenance(data: object) -> Maintenance | None:
    order = _order(data, MAINTENANCE)
    return None if order is None else read_maintenance(order)


def _grant(data: object) -> Grant | None:
    order = _order(data, GRANT)
    if order is None:
        return None
    return Grant(order.text("who", PROSE), order.moment("when"), order.count("more", MOST_GRANTED))


def read_maintenance(order: Fields) -> Maintenance:
    """The order in these fields, or a refusal: it may stand in other records, too."""
    return Maintenance(*_signed(order), order.moment("until"))


def _order(data: object, key: str) -> Fields | None:
    orders = Fields({} if data is None else data, "data")
    return document(orders.anything(key), MAX_RECORD_CHARACTERS) if key in orders else None


def _signed(order: Fields) -> tuple[str, datetime, str]:
    return order.text("who", PROSE), order.moment("when"), order.text("why", PROSE)
