"""`pp-leader pause`, `resume` and `maintenance`: what the leader and all hosts may do while people work."""

from __future__ import annotations

from argparse import Namespace
from contextlib import closing
from datetime import timedelta

from pp_hostd.errors import UserError
from pp_hostd.kube.resources import CONFIG_MAPS, NAMESPACES, NODES
from pp_hostd.leader.commands.administrator import Administrator
from pp_hostd.leader.commands.host import find_node
from pp_hostd.leader.commands.waiting import awaited
from pp_hostd.leader.leadership import grant_text, maintenance_text, paused_text
from pp_hostd.model.control import (
    LONGEST_CLUSTER_MAINTENANCE_SECONDS,
    MOST_GRANTED,
    Control,
    Grant,
    Maintenance,
    Pause,
    parse_control,
)
from pp_hostd.model.keys import AGENT, CONTROL, GRANT, MAINTENANCE, NAMESPACE, PAUSED, PAUSED_NODE
from pp_hostd.model.moment import parse_duration
from pp_hostd.model.promise import Armed, parse_agent_record
from pp_hostd.model.record import Unreadable
from pp_hostd.service.output import filled, now, one_line, say, who


def pause(arguments: Namespace) -> int:
    order = Pause(who(arguments.who), now(), one_line(arguments.why))
    with closing(Administrator(arguments.kubeconfig)) as administrator:
        before = _read(administrator, arguments.node)
        if isinstance(before, Pause):  # whose reason may be another, and should not be lost
            say(filled(f"Nothing to do: it is paused already {paused_text(before)}"))
            return 0
        _write(administrator, arguments.node, order.render())
    say(filled(f"Paused: {_whom(arguments.node)} A Node that was deleted before still comes back."))
    return 0


def resume(arguments: Namespace) -> int:
    with closing(Administrator(arguments.kubeconfig)) as administrator:
        before = _read(administrator, arguments.node)
        if arguments.more is not None:
            _grant(administrator, who(arguments.who), arguments.more)
        if before is None and arguments.more is not None:
            return 0
        if before is None:
            say("Nothing to do: it is not paused.")
            return 0
        _write(administrator, arguments.node, None)
    say(filled(f"Resumed. It was paused {paused_text(before)}" if isinstance(before, Pause) else "Resumed."))
    return 0


def _grant(administrator: Administrator, by: str, more: int) -> None:
    """On top of what is granted already: so many more may begin from now on."""
    if not 1 <= more <= MOST_GRANTED:
        raise UserError(f"--more {more}: is no number of remediations", f"Allowed: 1 to {MOST_GRANTED}.")
    before = _read_control(administrator).grant
    if isinstance(before, Grant) and before.counts_at(now().timestamp()):
        more = min(before.more + more, MOST_GRANTED)
    order = Grant(by, now(), more)
    write_order(administrator, GRANT, order.render())
    say(filled(f"Granted: {grant_text(order, now())}, than leader.resets_per_hour allows."))


def _whom(node: str | None) -> str:
    return f"the leader does nothing about {node}." if node else "the leader condemns and frees no node."


def _read(administrator: Administrator, node: str | None) -> Pause | Unreadable | None:
    if node is None:
        return _read_control(administrator).paused
    annotations = find_node(administrator, node)["metadata"].get("annotations", {})
    return parse_control({PAUSED: annotations[PAUSED_NODE]} if PAUSED_NODE in annotations else None).paused


def _read_control(administrator: Administrator) -> Control:
    return parse_control((administrator.get(CONFIG_MAPS, CONTROL, NAMESPACE) or {}).get("data"))


def _write(administrator: Administrator, node: str | None, order: str | None) -> None:
    if node is not None:
        if not administrator.patch(NODES, node, None, {"metadata": {"annotations": {PAUSED_NODE: order}}}):
            raise UserError(f"Node {node} is gone", f"See: pp-leader explain {node}")
        return
    write_order(administrator, PAUSED, order)


def write_order(administrator: Administrator, key: str, order: str | None) -> None:
    """Put an order for the whole cluster into the ConfigMap `control`, or take it back."""
    data = {"data": {key: order}}
    if administrator.patch(CONFIG_MAPS, CONTROL, NAMESPACE, data):
        return
    if administrator.get(NAMESPACES, NAMESPACE) is None:
        raise UserError(f"there is no Namespace {NAMESPACE}: pp-hostd is not set up", "See: pp-leader install --help")
    if not administrator.create(CONFIG_MAPS, {"metadata": {"name": CONTROL}, **data}, NAMESPACE):
        raise UserError(f"somebody else writes to ConfigMap {NAMESPACE}/{CONTROL}", "Try again.")


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
    say(filled(f"Maintenance of all hosts {maintenance_text(order, now())}. Hosts look for such an order every 30 s."))
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
    ended = f"The maintenance {maintenance_text(before, now())} is ended."
    say(filled(f"{ended} Hosts are armed again when they have proof."))
    return 0


def _show(administrator: Administrator) -> int:
    order = read_maintenance(administrator)
    told = "There is no maintenance of all hosts." if order is None else f"Maintenance {maintenance_text(order, now())}"
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
