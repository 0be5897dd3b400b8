"""`pp-leader pause` and `pp-leader resume`: keep the leader from condemning and freeing, or allow it more."""

from __future__ import annotations

from argparse import Namespace
from contextlib import closing

from pp_hostd.errors import UserError
from pp_hostd.kube.resources import CONFIG_MAPS, NAMESPACES, NODES
from pp_hostd.leader.commands.administrator import Administrator
from pp_hostd.leader.commands.host import find_node
from pp_hostd.leader.commands.status import grant_text, paused_text
from pp_hostd.model.control import MOST_GRANTED, Control, Grant, Pause, parse_control
from pp_hostd.model.keys import CONTROL, GRANT, NAMESPACE, PAUSED, PAUSED_NODE
from pp_hostd.model.record import Unreadable
from pp_hostd.service.output import filled, say
from pp_hostd.service.person import now, one_line, who


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
    say(filled(f"Granted: {grant_text(order)}, than leader.resets_per_hour allows."))


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
