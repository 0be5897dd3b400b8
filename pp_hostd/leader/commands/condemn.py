"""`pp-leader condemn`, `absolve` and `confirm-dead`: request remediation, withdraw that, and confirm a host's death."""

from __future__ import annotations

from argparse import Namespace
from contextlib import closing

from pp_hostd.errors import UserError
from pp_hostd.kube.client import Json
from pp_hostd.kube.events import About, event_about
from pp_hostd.kube.resources import EVENTS, KUBELET_LEASES, LEASES, NODES
from pp_hostd.leader.commands.administrator import Administrator
from pp_hostd.leader.commands.await_remediation import absolve_command, await_remediation
from pp_hostd.leader.commands.explain import hindrances, prospect
from pp_hostd.leader.commands.host import Host, find_node, read_host, settings_of
from pp_hostd.leader.commands.status import read_leadership
from pp_hostd.leader.leadership import Leadership, idle_seconds
from pp_hostd.leader.remedies.poison_pill.certainty import KUBELET_SILENT_SECONDS
from pp_hostd.model.condemnation import Condemned, Confirmation, NotRequested, Requested, parse_condemnation
from pp_hostd.model.keys import CONDEMNATION_ID, CONFIRMED_DEAD
from pp_hostd.model.leader_status import Told
from pp_hostd.model.moment import render_moment
from pp_hostd.model.node import Node, boot_of, is_of_this_boot, parse_node
from pp_hostd.model.promise import Committed, GateClosed
from pp_hostd.model.record import Unreadable
from pp_hostd.service.output import confirm, filled, now, one_line, say, who
from pp_hostd.service.screen import this_screen


def condemn(arguments: Namespace) -> int:
    name = arguments.node
    why = f": {one_line(arguments.why)}" if arguments.why else ""
    order = f"{who()} requests its remediation{why}"
    with closing(Administrator(arguments.kubeconfig)) as administrator:
        host = read_host(administrator, settings_of(arguments, administrator), name)
        asked, before = already(host), read_leadership(administrator, now()).history
        if asked:
            say(filled(f"Nothing to do: {asked}. See: pp-leader explain {name}"))
            _follow(arguments, administrator, host, before)
            return 0
        for sentence in (prospect(host), *hindrances(host, read_leadership(administrator, now()))):
            say(filled(sentence))
        confirm(name, yes=arguments.yes)
        untold = _tell(administrator, host, order) if request(administrator, host) else ""
        follow = f"To follow it: pp-leader explain {name}. To withdraw it: {absolve_command(name)}"
        say(filled(f"Requested.{untold} {follow}"))
        _follow(arguments, administrator, host, before)
    return 0


def _follow(
    arguments: Namespace, administrator: Administrator, host: Host, before: tuple[Told, ...] | Unreadable | None
) -> None:
    """To its end, if the person wants to wait for that."""
    if not arguments.wait:
        return
    machine = host.only_machine()

    def is_requested() -> bool:
        found = administrator.get(host.kind, machine.name, machine.namespace)
        return found is None or not isinstance(parse_condemnation(found["metadata"]), NotRequested)

    screen, known = this_screen(no_color=arguments.no_color), before if isinstance(before, tuple) else ()
    await_remediation(
        host.name, known, lambda: read_leadership(administrator, now()), is_requested, screen, arguments.timeout
    )


def absolve(arguments: Namespace) -> int:
    name = arguments.node
    with closing(Administrator(arguments.kubeconfig)) as administrator:
        host = read_host(administrator, settings_of(arguments, administrator), name)
        machine = host.only_machine()
        if not administrator.change(host.kind, machine.name, machine.namespace, _lift):
            say(filled(f"Nothing to do: no remediation of {name} is requested or running."))
            return 0
        leadership = read_leadership(administrator, now())
        said = ["Withdrawn. The leader undoes its changes to the Node.", *_too_late(host)]
        said += [] if leadership.leads else [f"Now {leadership.sentence()}."]
        said.append(
            f"The requester may request it again; to keep the leader off it: pp-leader pause --node {name} --why ..."
        )
        for sentence in said:
            say(filled(sentence))
    return 0


def already(host: Host) -> str:
    """That its remediation is requested or running; empty if not."""
    condemnation = host.only_machine().condemnation
    if isinstance(condemnation, Unreadable):
        raise UserError(f"{host.name}: {condemnation}", f"To make it readable: {absolve_command(host.name)}")
    if isinstance(condemnation, Condemned):
        since = render_moment(condemnation.since_wallclock)
        return f"{host.name} is condemned since {since}, under id {condemnation.id}"
    return f"the remediation of {host.name} is requested already" if isinstance(condemnation, Requested) else ""


def request(administrator: Administrator, host: Host) -> bool:
    """Request its remediation; False if somebody else has done so by now."""
    machine = host.only_machine()

    def ask(api_object: Json) -> Json | None:
        if api_object["metadata"]["uid"] != machine.uid:
            said = f"nothing was changed: {host.kind.describe(machine.namespace, machine.name)} was replaced meanwhile"
            raise UserError(said, f"See: pp-leader explain {host.name}")
        found = parse_condemnation(api_object["metadata"])
        return {"metadata": Requested(found.last_id).render()} if isinstance(found, NotRequested) else None

    return administrator.change(host.kind, machine.name, machine.namespace, ask)


def _lift(machine: Json) -> Json | None:
    """Also what can't be read; the id of the last condemnation stays, for ids only grow (rule 4)."""
    metadata = machine["metadata"]
    if isinstance(parse_condemnation(metadata), NotRequested):
        return None
    ids = {key: text for key, text in metadata.get("annotations", {}).items() if key == CONDEMNATION_ID}
    last = parse_condemnation({"annotations": ids})
    if not isinstance(last, NotRequested):
        hint = f"Set {CONDEMNATION_ID} to a number that is larger than that of any condemnation of this machine before."
        raise UserError(f"{metadata['name']}: {last}", hint)
    return {"metadata": last.render()}


def _too_late(host: Host) -> list[str]:
    """Returns a sentence for each act of the host or the leader that nothing takes back; empty if none."""
    record = None if host.node is None else host.node.node.agent
    said = []
    if host.node is None:
        said.append(f"The leader frees its workloads already, and finishes that: it then recreates Node {host.name}.")
    elif host.node.node.freeing is not None:
        said.append("The leader frees its workloads already, and finishes that.")
    if isinstance(record, Committed):
        said.append("The host has decided to reset itself before this: expect it to reboot.")
    if isinstance(record, GateClosed):
        said.append("The host has booted again, and starts its workloads once it reads that it is not condemned.")
    return said


def _tell(administrator: Administrator, host: Host, sentence: str) -> str:
    """As an Event on the machine, so that those who wonder find out who and why. If that fails, it is requested all the
    same, and this says so."""
    machine = host.only_machine()
    about = About(host.kind, machine.namespace, machine.name, machine.uid)
    event = event_about(about, "Requested", sentence, warning=True, now=now())
    try:
        administrator.create(EVENTS, event, machine.namespace or "default")
    except UserError as error:
        return f" No Event says by whom and why: {error.message}."
    return ""


WARNING = (
    "WARNING: you confirm that the host of Node {name} is switched off, or broken for good, and that nobody "
    "switches it on before its Node is back. If it still runs, there will be two copies of its workloads, and they "
    "destroy what is on volumes that both write to."
)


def confirm_dead(arguments: Namespace) -> int:
    name, person = arguments.node, who(arguments.who)
    with closing(Administrator(arguments.kubeconfig)) as administrator:
        settings = settings_of(arguments, administrator)
        host = read_host(administrator, settings, name)
        if host.node is None:
            raise UserError(
                f"Node {name} is missing: the leader takes it for dead already", f"See: pp-leader explain {name}"
            )
        before, asked, word = host.node.node, already(host), host.node.confirmed
        if asked and isinstance(word, Confirmation) and is_of_this_boot(word, before):  # whose word it is stays
            when = render_moment(word.when_wallclock)
            say(filled(f"Nothing to do: {word.who} has confirmed it at {when}. See: pp-leader explain {name}"))
            return 0
        for sentence in (WARNING.format(name=name), *_signs_of_life(administrator, name)):
            say(filled(sentence))
        confirm(name, yes=arguments.yes)
        _check(find_node(administrator, name), before)
        if not asked:  # first: the leader takes away a confirmation without a request
            request(administrator, host)
        store(administrator, before, Confirmation(person, now(), boot_of(before)))
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
    if not isinstance(found, Node) or found.uid != before.uid or boot_of(found) != boot_of(before):
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
