"""The leadership: who leads by the Lease, and the leader's report on its work in the ConfigMap `leader`.

It does no I/O, so that commands and the leader's own page judge alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pp_hostd.frozen import frozen
from pp_hostd.model.control import Grant, Maintenance, Pause
from pp_hostd.model.keys import HISTORY, STATUS
from pp_hostd.model.leader_status import CourseTold, LeaderStatus, Told, parse_history, parse_leader_status
from pp_hostd.model.lease import Lease, host_of_holder, parse_lease
from pp_hostd.model.moment import parse_moment, render_moment
from pp_hostd.model.record import Unreadable

Json = Mapping[str, Any]


@frozen
class Leadership:
    """`holder` is empty when nobody holds the Lease; `idle_seconds` have passed since it was renewed, by two clocks on
    the wall, so it is for people alone (rule 13). `status` and `history` are None if no leader has said any yet."""

    holder: str
    idle_seconds: float | None
    duration_seconds: float
    status: LeaderStatus | Unreadable | None
    history: tuple[Told, ...] | Unreadable | None

    @property
    def host(self) -> str:
        """The host of the holder."""
        return host_of_holder(self.holder)

    @property
    def leads(self) -> bool:
        """Whether somebody does, as far as can be told from here."""
        return bool(self.holder) and self.idle_seconds is not None and self.idle_seconds <= self.duration_seconds

    @property
    def leader(self) -> LeaderStatus | None:
        """The status of the active leader; None if nobody leads, or it has said none that can be read."""
        return self.status if self.leads and isinstance(self.status, LeaderStatus) else None

    def course(self, node: str) -> CourseTold | None:
        """The course of the last leader for this node, by its own word; None if it has told none."""
        told = self.status.next_actions if isinstance(self.status, LeaderStatus) else ()
        return next((each for each in told if each.node == node), None)

    def sentence(self) -> str:
        if not self.holder:
            return "nobody leads. See on the control-plane hosts: systemctl status pp-leader"
        if self.leads:
            return f"{self.host} leads"
        idle = "never" if self.idle_seconds is None else f"{self.idle_seconds:.0f} s ago"
        return (
            f"nobody leads, it seems: {self.host} holds the Lease for {self.duration_seconds:g} s at a time and has "
            f"renewed it {idle}, by the clock of this host. See there: systemctl status pp-leader"
        )


def leadership_of(lease: Json | None, config_map: Json | None, at: datetime) -> Leadership:
    """By the Lease and the ConfigMap `leader`, as the API shows them; None where there is none."""
    parsed = None if lease is None else parse_lease(lease)
    said = (config_map or {}).get("data") or {}
    return Leadership(
        holder=parsed.holder if isinstance(parsed, Lease) else "",
        idle_seconds=idle_seconds(lease, at),
        duration_seconds=parsed.duration_seconds if isinstance(parsed, Lease) else 0,
        status=parse_leader_status(said[STATUS]) if STATUS in said else None,
        history=parse_history(said[HISTORY]) if HISTORY in said else None,
    )


def idle_seconds(lease: Json | None, at: datetime) -> float | None:
    """How long ago a Lease was renewed, by its holder's clock and ours; None if it never was."""
    renewed = parse_moment(str(((lease or {}).get("spec") or {}).get("renewTime")))
    return None if renewed is None else max(0.0, (at - renewed).total_seconds())


def paused_text(paused: Pause | Unreadable) -> str:
    """By whom, since when, and why."""
    if isinstance(paused, Unreadable):
        return f"{paused}; so the leader condemns and frees no node. To make it readable: pp-leader resume"
    return f"by {paused.who} since {render_moment(paused.when_wallclock)}: {paused.why}"


def maintenance_text(order: Maintenance | Unreadable, at: datetime) -> str:
    """By whom, until when, and why."""
    if isinstance(order, Unreadable):
        return f"{order}; agents do not obey it. To remove it: pp-leader maintenance --off"
    state = "until" if at < order.until_wallclock else "over since"
    return f"by {order.who}, {state} {render_moment(order.until_wallclock)}: {order.why}"


def grant_text(order: Grant | Unreadable, at: datetime) -> str:
    """How many more, by whom, and when."""
    if isinstance(order, Unreadable):
        return f"{order}; nothing is granted. To grant it: pp-leader resume --more NUMBER"
    over = "" if order.counts_at(at.timestamp()) else " (over)"
    return f"{order.more} more by {order.who}, in the hour after {render_moment(order.when_wallclock)}{over}"


def due_text(next_action: CourseTold, at: datetime) -> str:
    """When it goes on, as far as that is known."""
    if next_action.refused:
        return "blocked: needs an operator"
    if next_action.due_wallclock is None:
        return ""
    return f"due in {max(0.0, (next_action.due_wallclock - at).total_seconds()):.0f} s"
