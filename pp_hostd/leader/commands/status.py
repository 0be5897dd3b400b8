"""`pp-leader status` and `pp-leader history`: the fleet, and what the leaders have done."""

from __future__ import annotations

import gc
import json
import math
import time
from argparse import Namespace
from contextlib import closing, suppress
from datetime import datetime
from functools import partial
from typing import Any

from pp_hostd.errors import UserError
from pp_hostd.kube.resources import CONFIG_MAPS, LEASES, NODES
from pp_hostd.leader.commands.administrator import Administrator
from pp_hostd.leader.commands.fleet_text import fleet_text
from pp_hostd.leader.commands.follow import follow
from pp_hostd.leader.fleet import Fleet, FleetHost, fleet_of, host_of
from pp_hostd.leader.leadership import Leadership, grant_text, leadership_of, maintenance_text, paused_text
from pp_hostd.model.keys import BUDGET, CONTROL, ENROLLED, LEADER, NAMESPACE
from pp_hostd.model.leader_status import LeaderStatus, Told, render_history
from pp_hostd.model.lease import LEASE
from pp_hostd.model.moment import render_moment
from pp_hostd.model.record import Unreadable
from pp_hostd.service.output import now, say, say_json, say_yaml, table
from pp_hostd.service.screen import this_screen

EXIT_LEADERLESS = 3
NODES_PERIODS = 10
STATUS_JSON = "pp-leader status -o json"


def read_leadership(administrator: Administrator, at: datetime) -> Leadership:
    lease = administrator.get(LEASES, LEASE, NAMESPACE)
    return leadership_of(lease, administrator.get(CONFIG_MAPS, LEADER, NAMESPACE), at)


class FleetReader:
    """Looks at the fleet. Thousands of Nodes take a second to read: another look reads them again only once that is
    worth a small part of the time."""

    def __init__(self, administrator: Administrator) -> None:
        self._administrator = administrator
        self._hosts: list[FleetHost] = []
        self._due_at = -math.inf

    def look(self) -> Fleet:
        began_at = time.monotonic()
        if began_at >= self._due_at:
            gc.disable()  # JSON has no cycles; to look for some again and again takes a fifth of the time
            try:
                self._hosts = [host_of(node) for page in self._administrator.pages(NODES) for node in page]
            finally:
                gc.enable()
            self._due_at = began_at + NODES_PERIODS * (time.monotonic() - began_at)
        names = (LEADER, ENROLLED, CONTROL, BUDGET)
        config_maps = {name: self._administrator.get(CONFIG_MAPS, name, NAMESPACE) for name in names}
        return fleet_of(self._hosts, config_maps, self._administrator.get(LEASES, LEASE, NAMESPACE), now())


def status(arguments: Namespace) -> int:
    form = "json" if arguments.json else arguments.output
    if arguments.watch and form in ("json", "yaml"):
        raise UserError(f"--watch prints text, and not {form}", f"Leave --watch out, and ask again: {STATUS_JSON}")
    with closing(Administrator(arguments.kubeconfig, quiet=arguments.watch)) as administrator:
        reader = FleetReader(administrator)
        if arguments.watch:
            with suppress(KeyboardInterrupt):  # the usual end of it, as of pp-hostd status --watch
                follow(reader.look, partial(this_screen, no_color=arguments.no_color), wide=form == "wide")
            return 0
        fleet = reader.look()
    if form in ("json", "yaml"):
        (say_json if form == "json" else say_yaml)(_as_json(fleet))
    else:
        say(fleet_text(fleet, this_screen(no_color=arguments.no_color), wide=form == "wide"))
    return 0 if fleet.leadership.leads else EXIT_LEADERLESS


def read_history(administrator: Administrator) -> tuple[Told, ...]:
    told = read_leadership(administrator, now()).history or ()
    if isinstance(told, Unreadable):
        raise UserError(str(told), "See: pp-leader status")
    return told


def history(arguments: Namespace) -> int:
    with closing(Administrator(arguments.kubeconfig)) as administrator:
        told = read_history(administrator)
    if arguments.json:
        say_json(json.loads(render_history(told))["lines"])
    elif told:
        rows = [[render_moment(each.when_wallclock), each.node, each.stage, each.sentence] for each in told]
        say(table(["WHEN", "NODE", "STAGE", "WHAT"], rows))
    else:
        say("No leader has done anything yet.")
    return 0


def _as_json(fleet: Fleet) -> dict[str, Any]:
    leadership, orders, at = fleet.leadership, fleet.control, fleet.at_wallclock
    said = leadership.status
    return {
        "leads": leadership.leads,
        "holder": leadership.holder,
        "renewed_seconds_ago": leadership.idle_seconds,
        "paused": None if orders.paused is None else paused_text(orders.paused),
        "maintenance": None if orders.maintenance is None else maintenance_text(orders.maintenance, at),
        "granted": None if orders.grant is None else grant_text(orders.grant, at),
        "status": json.loads(said.render()) if isinstance(said, LeaderStatus) else None,
        "unreadable": str(said) if isinstance(said, Unreadable) else None,
        "fleet": fleet.as_json(),
    }
