"""`pp-leader status` and `pp-leader history`: who leads, and what the leader says of itself and its work."""

from __future__ import annotations

import json
from argparse import Namespace
from contextlib import closing
from datetime import datetime
from typing import Any

from pp_hostd.errors import UserError
from pp_hostd.frozen import frozen
from pp_hostd.kube.client import Json
from pp_hostd.kube.resources import CONFIG_MAPS, LEASES
from pp_hostd.leader.commands.administrator import Administrator
from pp_hostd.model.control import Control, Grant, Maintenance, Pause, parse_control
from pp_hostd.model.keys import CONTROL, HISTORY, LEADER, NAMESPACE, STATUS
from pp_hostd.model.leader_status import (
    CourseTold,
    LeaderStatus,
    Told,
    parse_history,
    parse_leader_status,
    render_history,
)
from pp_hostd.model.lease import LEASE, Lease, parse_lease
from pp_hostd.model.moment import parse_moment, render_moment
from pp_hostd.model.record import Unreadable
from pp_hostd.service.output import labelled, now, say, say_json, table


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
            return f"{self.holder} leads"
        idle = "never" if self.idle_seconds is None else f"{self.idle_seconds:.0f} s ago"
        return (
            f"nobody leads, it seems: {self.holder} holds the Lease for {self.duration_seconds:g} s at a time and has "
            f"renewed it {idle}, by the clock of this host. See there: systemctl status pp-leader"
        )


def read_leadership(administrator: Administrator, now: datetime) -> Leadership:
    found = administrator.get(LEASES, LEASE, NAMESPACE)
    lease = None if found is None else parse_lease(found)
    config_map = administrator.get(CONFIG_MAPS, LEADER, NAMESPACE) or {}
    said = config_map.get("data") or {}
    return Leadership(
        holder=lease.holder if isinstance(lease, Lease) else "",
        idle_seconds=idle_seconds(found, now),
        duration_seconds=lease.duration_seconds if isinstance(lease, Lease) else 0,
        status=parse_leader_status(said[STATUS]) if STATUS in said else None,
        history=parse_history(said[HISTORY]) if HISTORY in said else None,
    )


def idle_seconds(lease: Json | None, now: datetime) -> float | None:
    """How long ago a Lease was renewed, by its holder's clock and ours; None if it never was."""
    renewed = parse_moment(str(((lease or {}).get("spec") or {}).get("renewTime")))
    return None if renewed is None else max(0.0, (now - renewed).total_seconds())


EXIT_LEADERLESS = 3


def status(arguments: Namespace) -> int:
    with closing(Administrator(arguments.kubeconfig)) as administrator:
        leadership = read_leadership(administrator, now())
        control = administrator.get(CONFIG_MAPS, CONTROL, NAMESPACE) or {}
    orders = parse_control(control.get("data"))
    if arguments.json:
        say_json(_as_json(leadership, orders))
    else:
        say(_as_text(leadership, orders, now()))
    return 0 if leadership.leads else EXIT_LEADERLESS


def history(arguments: Namespace) -> int:
    with closing(Administrator(arguments.kubeconfig)) as administrator:
        told = read_leadership(administrator, now()).history or ()
    if isinstance(told, Unreadable):
        raise UserError(str(told), "See: pp-leader status")
    if arguments.json:
        say_json(json.loads(render_history(told))["lines"])
    elif told:
        rows = [[render_moment(each.when_wallclock), each.node, each.stage, each.sentence] for each in told]
        say(table(["WHEN", "NODE", "STAGE", "WHAT"], rows))
    else:
        say("No leader has done anything yet.")
    return 0


def paused_text(paused: Pause | Unreadable) -> str:
    """By whom, since when, and why."""
    if isinstance(paused, Unreadable):
        return f"{paused}; so the leader condemns and frees no node. To make it readable: pp-leader resume"
    return f"by {paused.who} since {render_moment(paused.when_wallclock)}: {paused.why}"


def maintenance_text(order: Maintenance | Unreadable) -> str:
    """By whom, until when, and why."""
    if isinstance(order, Unreadable):
        return f"{order}; agents do not obey it. To remove it: pp-leader maintenance --off"
    state = "until" if now() < order.until_wallclock else "over since"
    return f"by {order.who}, {state} {render_moment(order.until_wallclock)}: {order.why}"


def grant_text(order: Grant | Unreadable) -> str:
    """How many more, by whom, and when."""
    if isinstance(order, Unreadable):
        return f"{order}; nothing is granted. To grant it: pp-leader resume --more NUMBER"
    over = "" if order.counts_at(now().timestamp()) else " (over)"
    return f"{order.more} more by {order.who}, in the hour after {render_moment(order.when_wallclock)}{over}"


def due_text(next_action: CourseTold, at: datetime) -> str:
    """When it goes on, as far as that is known."""
    if next_action.refused:
        return "blocked: needs an operator"
    if next_action.due_wallclock is None:
        return ""
    return f"due in {max(0.0, (next_action.due_wallclock - at).total_seconds()):.0f} s"


def _as_json(leadership: Leadership, orders: Control) -> dict[str, Any]:
    said = leadership.status
    return {
        "leads": leadership.leads,
        "holder": leadership.holder,
        "renewed_seconds_ago": leadership.idle_seconds,
        "paused": None if orders.paused is None else paused_text(orders.paused),
        "maintenance": None if orders.maintenance is None else maintenance_text(orders.maintenance),
        "granted": None if orders.grant is None else grant_text(orders.grant),
        "status": json.loads(said.render()) if isinstance(said, LeaderStatus) else None,
        "unreadable": str(said) if isinstance(said, Unreadable) else None,
    }


def _as_text(leadership: Leadership, orders: Control, at: datetime) -> str:
    said = leadership.status
    rows = [("leader", leadership.sentence())]
    if orders.paused is not None:
        rows.append(("paused", paused_text(orders.paused)))
    if orders.maintenance is not None:
        rows.append(("maintenance", maintenance_text(orders.maintenance)))
    if orders.grant is not None:
        rows.append(("granted", grant_text(orders.grant)))
    if isinstance(said, Unreadable):
        rows.append(("trouble", str(said)))
    if not isinstance(said, LeaderStatus):
        return labelled(rows)
    current = leadership.leads and leadership.holder == said.leader
    rows.append(("leads since" if current else "last said", _term(said, current)))
    rows += [("mode", said.mode), ("roster", _roster(said)), ("budget", _budget(said))]
    if said.certificate_ends_wallclock is not None:
        rows.append(("certificate", f"ends at {render_moment(said.certificate_ends_wallclock)}"))
    rows += [("trouble", said.trouble)] if said.trouble else []
    return f"{labelled(rows)}\n\n{_next_actions(said, at)}"


def _term(said: LeaderStatus, current: bool) -> str:
    since = render_moment(said.since_wallclock)
    return since if current else f"by {said.leader}, who began to lead at {since}"


def _roster(said: LeaderStatus) -> str:
    return f"version {said.roster}, {said.nodes} nodes" if said.roster else "none yet"


def _budget(said: LeaderStatus) -> str:
    return f"{said.resets_left} of {said.resets_per_hour} remediations may still begin (leader.resets_per_hour)"


def _next_actions(said: LeaderStatus, at: datetime) -> str:
    if not said.next_actions:
        return "No remediation is requested or running."
    rows = []
    for next_action in said.next_actions:
        since, due = render_moment(next_action.since_wallclock), due_text(next_action, at)
        rows.append([next_action.node, next_action.stage, since, f"{next_action.sentence}{due and f' ({due})'}"])
    return table(["NODE", "STAGE", "SINCE", "WHAT"], rows)
