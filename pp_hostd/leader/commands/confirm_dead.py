"""`pp-leader confirm-dead`: a person's word that a host is dead, as evidence where no promise can be waited for."""

from __future__ import annotations

from argparse import Namespace
from contextlib import closing

from pp_hostd.errors import UserError
from pp_hostd.kube.client import Json
from pp_hostd.kube.resources import KUBELET_LEASES, LEASES, NODES
from pp_hostd.leader.commands.administrator import Administrator
from pp_hostd.leader.commands.condemn import already, request
from pp_hostd.leader.commands.explain import hindrances
from pp_hostd.leader.commands.host import Host, find_node, read_host, settings_of
from pp_hostd.leader.commands.leadership import Leadership, idle_seconds, read_leadership
from pp_hostd.leader.remedies.poison_pill.certainty import KUBELET_SILENT_SECONDS, boot_of
from pp_hostd.model.confirmation import Confirmation
from pp_hostd.model.keys import CONFIRMED_DEAD
from pp_hostd.model.moment import render_moment
from pp_hostd.model.node import Node, parse_node
from pp_hostd.service.output import filled, say
from pp_hostd.service.person import confirm, now, who

WARNING = (
    "WARNING: you confirm that the host of Node {name} is switched off, or broken for good, and that nobody "
    "switches it on before its Node is back. If it still runs, there will be two copies of its workloads, and they "
    "destroy what is on volumes that both write to."
)


def confirm_dead(arguments: Namespace) -> int:
    settings, name, person = settings_of(arguments), arguments.node, who(arguments.who)
    with closing(Administrator(arguments.kubeconfig)) as administrator:
        host = read_host(administrator, settings, name)
        if host.node is None:
            raise UserError(
                f"Node {name} is missing: the leader takes it for dead already", f"See: pp-leader explain {name}"
            )
        before, asked, word = host.node.node, already(host), host.node.confirmed
        if asked and isinstance(word, Confirmation) and word.boot == boot_of(before.agent):  # whose word it is stays
            when = render_moment(word.when_wallclock)
            say(filled(f"Nothing to do: {word.who} has confirmed it at {when}. See: pp-leader explain {name}"))
            return 0
        for sentence in (WARNING.format(name=name), *_signs_of_life(administrator, name)):
            say(filled(sentence))
        confirm(name, yes=arguments.yes)
        _check(find_node(administrator, name), before)
        if not asked:  # first: the leader takes away a confirmation without a request
            request(administrator, host)
        store(administrator, before, Confirmation(person, now(), boot_of(before.agent)))
        leadership = read_leadership(administrator, now())
        for sentence in _outcome(read_host(administrator, settings, name), leadership, person):
            say(filled(sentence))
    return 0


def _signs_of_life(administrator: Administrator, name: str) -> list[str]:
    idle = idle_seconds(administrator.get(LEASES, name, KUBELET_LEASES), now())
    if idle is None or idle > KUBELET_SILENT_SECONDS:
        return []
    return [f"WARNING: its kubelet has renewed its Lease {idle:.0f} s ago. The host seems to be alive!"]


def _check(node: Json, before: Node) -> None:
    """The word is about the boot that was there before the person was asked: a host that has booted since is alive."""
    found = parse_node(node)
    if not isinstance(found, Node) or found.uid != before.uid or boot_of(found.agent) != boot_of(before.agent):
        said = f"Node {before.name} has changed meanwhile: its host has booted again, or was replaced"
        raise UserError(f"not confirmed: {said}", f"See: pp-leader explain {before.name}")


def store(administrator: Administrator, before: Node, confirmation: Confirmation) -> None:
    """Write it down, unless the Node is another by then."""

    def change(node: Json) -> Json:
        _check(node, before)
        return {"metadata": {"annotations": {CONFIRMED_DEAD: confirmation.render()}}}

    if not administrator.change(NODES, before.name, None, change):
        raise UserError(f"not confirmed: Node {before.name} is gone", f"See: pp-leader explain {before.name}")


def _outcome(host: Host, leadership: Leadership, person: str) -> list[str]:
    against = host.against()
    then = f"Still the leader does nothing about it: {against}." if against else "The leader now frees its workloads."
    follow = f"To follow it: pp-leader explain {host.name}"
    return [f"Confirmed by {person}. {then}", *hindrances(host, leadership), follow]
