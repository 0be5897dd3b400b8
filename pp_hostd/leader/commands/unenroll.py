"""`pp-leader unenroll`: the quiet way out for a host: no promise, not in the roster, no mark of ours on its Node."""

from __future__ import annotations

from argparse import Namespace
from contextlib import closing

from pp_hostd.errors import UserError
from pp_hostd.kube.client import Json
from pp_hostd.kube.resources import CONFIG_MAPS, NODES
from pp_hostd.leader.access.leftovers import removal
from pp_hostd.leader.commands.administrator import Administrator
from pp_hostd.leader.commands.condemn import already
from pp_hostd.leader.commands.host import find_node, own_config_maps, read_host, settings_of
from pp_hostd.leader.commands.leadership import read_leadership
from pp_hostd.leader.commands.waiting import awaited
from pp_hostd.model.keys import CONDEMNATION_ID, ENROLLED, NAMESPACE, ROSTER
from pp_hostd.model.node import Node, parse_node
from pp_hostd.model.observed import is_early
from pp_hostd.model.promise import GateClosed, Withdrawn
from pp_hostd.model.record import Unreadable
from pp_hostd.model.roster import parse_roster
from pp_hostd.model.settings import Settings
from pp_hostd.service.output import filled, say
from pp_hostd.service.person import confirm, now

LEFT_ON_HOST = "systemctl disable --now pp-hostd; systemctl disable pp-hostd-gate; rm -r /etc/pp-hostd"
WARNING = (
    "WARNING: you confirm that the host of Node {name} is gone for good. If it still runs, it may be reset when "
    "it loses the API, and nobody frees its workloads then."
)


def unenroll(arguments: Namespace) -> int:
    settings, name, wait_seconds = settings_of(arguments), arguments.node, arguments.wait
    with closing(Administrator(arguments.kubeconfig)) as administrator:
        there = not _only_enrolled(administrator, name)
        if there:
            _check(administrator, settings, name, force=arguments.force)
        if arguments.force:
            say(filled(WARNING.format(name=name)))
            confirm(name, yes=arguments.yes)
        elif there:
            _await_withdrawal(administrator, name, wait_seconds)
        else:
            raise UserError(
                f"{name} is enrolled, and has no Node that would show whether its host is armed", _gone(name)
            )
        if there:  # again: that took time
            _check(administrator, settings, name, force=arguments.force)
        administrator.patch(CONFIG_MAPS, ENROLLED, NAMESPACE, {"data": {name: None}})
        _await_roster(administrator, name, wait_seconds)
        administrator.change(NODES, name, None, _bare)
    say(
        filled(
            f"{name} is out: its peers no longer count it, and the leader does nothing about it. To clean up its host:"
        )
    )
    say(f"  {LEFT_ON_HOST}")
    say(filled("Anyone who had its files still knows the peers' key. If that matters: pp-leader rotate-key"))
    return 0


def _only_enrolled(administrator: Administrator, name: str) -> bool:
    """Whether its Node is gone, and nobody gives it back."""
    ours = own_config_maps(administrator)
    given_back = {each for each, stored in ours.backups.items() if not is_early(stored)}
    return name in ours.enrolled - given_back and administrator.get(NODES, name) is None


def _gone(name: str) -> str:
    return f"If that host is gone for good: pp-leader unenroll {name} --force"


def _check(administrator: Administrator, settings: Settings, name: str, *, force: bool) -> None:
    """Refuse while the leader has to do with it."""
    host = read_host(administrator, settings, name)
    if host.node is None or host.node.node.freeing is not None:
        raise UserError(f"the workloads of {name} are being freed", f"Let the leader finish: pp-leader explain {name}")
    if force and host.machine is None:
        return  # it went with its host
    asked = already(host)
    if asked:
        raise UserError(asked, f"Let the leader finish, or take it back: pp-leader absolve {name}")


def _await_withdrawal(administrator: Administrator, name: str, wait_seconds: float) -> None:
    if _promises_nothing(administrator, name):
        return
    say(filled(f"The host of Node {name} is armed. To withdraw its promise, and to keep it unarmed, run there:"))
    say("  systemctl disable --now pp-hostd; systemctl disable pp-hostd-gate")
    say(f"The command waits for that for {wait_seconds:g} s.")
    if not awaited(lambda: _promises_nothing(administrator, name), wait_seconds, f"the host of Node {name}"):
        raise UserError(f"nothing was changed: the host of Node {name} is still armed", _gone(name))


def _promises_nothing(administrator: Administrator, name: str) -> bool:
    node = parse_node(find_node(administrator, name))
    return isinstance(node, Node) and isinstance(node.agent, (GateClosed, Withdrawn, type(None)))


def _await_roster(administrator: Administrator, name: str, wait_seconds: float) -> None:
    """Until the leader has written one without it."""
    leadership = read_leadership(administrator, now())
    wait_seconds = wait_seconds if leadership.leads else 0
    if not awaited(lambda: not _listed(administrator, name), wait_seconds, f"a roster without {name}"):
        raise UserError(
            f"{name} is no longer enrolled, but the roster still lists it: {leadership.sentence()}",
            f"Once a leader has written another roster, to finish: pp-leader unenroll {name}",
        )


def _listed(administrator: Administrator, name: str) -> bool:
    stored = administrator.get(CONFIG_MAPS, ROSTER, NAMESPACE)
    if stored is None:
        return False
    roster = parse_roster(stored.get("data", {}).get(ROSTER))
    if isinstance(roster, Unreadable):
        raise UserError(f"ConfigMap {NAMESPACE}/{ROSTER}: {roster}", "A leader writes none while it can't be read.")
    return any(member.name == name and member.until is None for member in roster.members())


def _bare(node: Json) -> Json | None:
    """The Node without our marks, but for the id of its last condemnation: ids only grow, whoever enrolls it again
    (rule 4)."""
    patch = removal(node)
    if patch is None:
        return None
    annotations = patch["metadata"].get("annotations", {})
    annotations.pop(CONDEMNATION_ID, None)
    return patch
