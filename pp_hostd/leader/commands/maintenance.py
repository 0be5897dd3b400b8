"""`pp-leader maintenance`: every host withdraws its promise and disarms, for planned work on the network."""

from __future__ import annotations

from argparse import Namespace
from contextlib import closing
from datetime import timedelta

from pp_hostd.errors import UserError
from pp_hostd.kube.resources import CONFIG_MAPS, NODES
from pp_hostd.leader.commands.administrator import Administrator
from pp_hostd.leader.commands.pause import write_order
from pp_hostd.leader.commands.status import maintenance_text
from pp_hostd.leader.commands.waiting import awaited
from pp_hostd.model.control import LONGEST_CLUSTER_MAINTENANCE_SECONDS, Maintenance, parse_control
from pp_hostd.model.keys import AGENT, CONTROL, MAINTENANCE, NAMESPACE
from pp_hostd.model.moment import parse_duration
from pp_hostd.model.promise import Armed, parse_agent_record
from pp_hostd.model.record import Unreadable
from pp_hostd.service.output import filled, say
from pp_hostd.service.person import now, one_line, who

EXIT_STILL_ARMED = 1
SHORTEST_SECONDS = 60
MOST_NAMED = 10


def maintenance(arguments: Namespace) -> int:
    with closing(Administrator(arguments.kubeconfig)) as administrator:
        if arguments.off:
            return _end(administrator)
        if arguments.duration is None:
            return _show(administrator)
        return _begin(administrator, arguments)


def read_maintenance(administrator: Administrator) -> Maintenance | Unreadable | None:
    return parse_control((administrator.get(CONFIG_MAPS, CONTROL, NAMESPACE) or {}).get("data")).maintenance


def _begin(administrator: Administrator, arguments: Namespace) -> int:
    begins = now()
    order = Maintenance(who(arguments.who), begins, one_line(arguments.why), begins + _length(arguments.duration))
    write_order(administrator, MAINTENANCE, order.render())
    say(filled(f"Maintenance of all hosts {maintenance_text(order)}. Hosts look for such an order every 30 s."))
    if awaited(lambda: not _armed(administrator), arguments.wait, "the hosts to withdraw"):
        say("No host is armed any more: the work may begin.")
        return 0
    armed = _armed(administrator)
    more = f" and {len(armed) - MOST_NAMED} more" if len(armed) > MOST_NAMED else ""
    say(
        filled(f"Still armed: {', '.join(armed[:MOST_NAMED])}{more}. To see what keeps a host: pp-hostd status, there.")
    )
    return EXIT_STILL_ARMED


def _end(administrator: Administrator) -> int:
    before = read_maintenance(administrator)
    if before is None:
        say("Nothing to do: there is no maintenance of all hosts.")
        return 0
    write_order(administrator, MAINTENANCE, None)
    say(filled(f"The maintenance {maintenance_text(before)} is ended. Hosts are armed again when they have proof."))
    return 0


def _show(administrator: Administrator) -> int:
    order = read_maintenance(administrator)
    told = "There is no maintenance of all hosts." if order is None else f"Maintenance {maintenance_text(order)}"
    say(filled(told))
    return 0


def _length(text: str) -> timedelta:
    seconds = parse_duration(text)
    if seconds is None or not SHORTEST_SECONDS <= seconds <= LONGEST_CLUSTER_MAINTENANCE_SECONDS:
        longest = f"{LONGEST_CLUSTER_MAINTENANCE_SECONDS // 3600}h"
        raise UserError(
            f"--for {text}: is no duration from 1m to {longest}",
            "Allowed: 90s, 30m, 4h. Hosts refuse a longer one: a forgotten order must leave no cluster unprotected.",
        )
    return timedelta(seconds=seconds)


def _armed(administrator: Administrator) -> list[str]:
    """Returns the names of the Nodes on which a promise stands."""
    found = []
    for node in administrator.list(NODES):
        text = (node["metadata"].get("annotations") or {}).get(AGENT)
        if text is not None and isinstance(parse_agent_record(text), Armed):
            found.append(str(node["metadata"]["name"]))
    return sorted(found)
