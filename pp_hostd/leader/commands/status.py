"""`pp-leader status` and `pp-leader history`: who leads, and what the leader says of itself and its work."""

from __future__ import annotations

import json
from argparse import Namespace
from contextlib import closing
from datetime import datetime
from typing import Any

from pp_hostd.errors import UserError
from pp_hostd.kube.resources import CONFIG_MAPS, LEASES
from pp_hostd.leader.commands.administrator import Administrator
from pp_hostd.leader.leadership import (
    Leadership,
    due_text,
    grant_text,
    leadership_of,
    maintenance_text,
    paused_text,
)
from pp_hostd.model.control import Control, parse_control
from pp_hostd.model.keys import CONTROL, LEADER, NAMESPACE
from pp_hostd.model.leader_status import (
    LeaderStatus,
    render_history,
)
from pp_hostd.model.lease import LEASE
from pp_hostd.model.moment import render_moment
from pp_hostd.model.record import Unreadable
from pp_hostd.service.output import labelled, now, say, say_json, table


def read_leadership(administrator: Administrator, at: datetime) -> Leadership:
    lease = administrator.get(LEASES, LEASE, NAMESPACE)
    return leadership_of(lease, administrator.get(CONFIG_MAPS, LEADER, NAMESPACE), at)


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


def _as_json(leadership: Leadership, orders: Control) -> dict[str, Any]:
    said = leadership.status
    return {
        "leads": leadership.leads,
        "holder": leadership.holder,
        "renewed_seconds_ago": leadership.idle_seconds,
        "paused": None if orders.paused is None else paused_text(orders.paused),
        "maintenance": None if orders.maintenance is None else maintenance_text(orders.maintenance, now()),
        "granted": None if orders.grant is None else grant_text(orders.grant, now()),
        "status": json.loads(said.render()) if isinstance(said, LeaderStatus) else None,
        "unreadable": str(said) if isinstance(said, Unreadable) else None,
    }


def _as_text(leadership: Leadership, orders: Control, at: datetime) -> str:
    said = leadership.status
    rows = [("leader", leadership.sentence())]
    if orders.paused is not None:
        rows.append(("paused", paused_text(orders.paused)))
    if orders.maintenance is not None:
        rows.append(("maintenance", maintenance_text(orders.maintenance, now())))
    if orders.grant is not None:
        rows.append(("granted", grant_text(orders.grant, now())))
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
