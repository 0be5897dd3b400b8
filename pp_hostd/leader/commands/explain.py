"""`pp-leader explain`: how a node stands, what is done about it and why, and what would change that, in sentences."""

from __future__ import annotations

from argparse import Namespace
from contextlib import closing
from datetime import datetime

from pp_hostd.leader.commands.administrator import Administrator
from pp_hostd.leader.commands.host import Host, read_host, read_requests, settings_of
from pp_hostd.leader.commands.status import read_leadership
from pp_hostd.leader.leadership import Leadership, due_text, paused_text
from pp_hostd.leader.plan.plan import remedy_for
from pp_hostd.model.condemnation import Condemned, Confirmation, NotRequested, Requested
from pp_hostd.model.keys import NAMESPACE, backup_name
from pp_hostd.model.machine import Machine
from pp_hostd.model.moment import render_moment
from pp_hostd.model.observed import Observed
from pp_hostd.model.promise import AgentRecord, Armed, Committed, GateClosed, Withdrawn
from pp_hostd.model.record import Unreadable
from pp_hostd.service.output import filled, now, say, say_json

NO_REQUESTS = Observed()


def explain(arguments: Namespace) -> int:
    with closing(Administrator(arguments.kubeconfig)) as administrator:
        settings = settings_of(arguments, administrator)
        host = read_host(administrator, settings, arguments.node)
        requests = read_requests(administrator, settings, host.registry.requesters)
        leadership = read_leadership(administrator, now())
    sentences = explained(host, leadership, now(), requests)
    if arguments.json:
        say_json({"node": host.name, "sentences": sentences})
        return 0
    for sentence in sentences:
        say(filled(sentence, indent=2))
    return 0


def explained(host: Host, leadership: Leadership, at: datetime, requests: Observed = NO_REQUESTS) -> list[str]:
    """One sentence after the other: what is so, what is done about it, what would change that. `requests` are the
    objects that requesters read."""
    leader = leadership.leader
    return [
        *_node(host),
        f"Its machine is {_condemnation(host)}.",
        *(sentence for remedy in host.registry.remedies for sentence in remedy.explained(host.view)),
        *(text for each in host.registry.requesters for text in each.explained(requests, host.name, at, leader)),
        *hindrances(host, leadership),
        *_leader(host, leadership, at),
        *_about_no_node(leadership),
        *_prospects(host),
    ]


def prospect(host: Host) -> str:
    """Returns a sentence about the leader's course if remediation of this node is requested now."""
    against, remedy = host.against(), remedy_for(host.registry, host.view)
    if against or isinstance(remedy, str):
        return f"If its remediation is requested, the leader does nothing about it yet: {against or remedy}."
    return f"If its remediation is requested, the leader {remedy.prospect(host.view)}."


def hindrances(host: Host, leadership: Leadership) -> list[str]:
    """Returns sentences about all that keeps the leader from acting, whatever it would do; empty if none."""
    paused = host.observed.control.paused
    said = [] if paused is None else [f"The leader is paused {paused_text(paused)}. To go on: pp-leader resume."]
    if host.node is not None and host.node.paused:
        said.append(
            "This node is paused: the leader does nothing about it. "
            f"To let the leader work: pp-leader resume --node {host.name}."
        )
    if not leadership.leads:
        said.append(f"Now {leadership.sentence()}.")
    return said


def _node(host: Host) -> list[str]:
    enrolled = f"It is not enrolled. To enrol it: pp-leader enroll {host.name}."
    enrolled = "It is enrolled." if host.enrolled else enrolled
    if host.node is None:
        return [f"Node {host.name} is missing: the leader frees its workloads, and then recreates it. {enrolled}"]
    said = [f"Node {host.name} is there. {enrolled}", _record(host.node.node.agent)]
    if host.node.node.tainted:
        said.append("The leader has cordoned it, and tainted it so that no workload runs there.")
    confirmed = host.node.confirmed
    if isinstance(confirmed, Confirmation):
        said.append(f"{confirmed.who} has confirmed at {render_moment(confirmed.when_wallclock)} that it is dead.")
    return said


def _record(record: AgentRecord | Unreadable | None) -> str:
    if record is None:
        return "Its agent has promised nothing: it has not run on this Node yet."
    if isinstance(record, Unreadable):
        return f"Its agent's promise can't be relied on: {record}."
    if isinstance(record, Withdrawn):
        order = record.maintenance
        until = f", in maintenance by {order.who} until {render_moment(order.until_wallclock)}" if order else ""
        return f"Its agent has withdrawn its promise{until}: the host is not armed."
    if isinstance(record, GateClosed):
        return f"Its gate ({record.gate.value}) is closed: nothing was started on the host since it booted."
    promise = record if isinstance(record, Armed) else record.promise
    decided = f"It has decided to reset itself, for condemnation {record.id}. " if isinstance(record, Committed) else ""
    return (
        f"{decided}Its agent has promised: T {promise.self_timeout_seconds:g} s after its last proof it stops "
        f"feeding its watchdog ({promise.watchdog.value}, W {promise.watchdog_timeout_seconds:g} s); gate "
        f"{promise.gate.value}, version {promise.roster_version} of the roster."
    )


def _condemnation(host: Host) -> str:
    if not isinstance(host.machine, Machine):
        return f"not known: {host.machine or f'there is no {host.kind.kind} {host.machine_key}'}"
    condemnation = host.machine.condemnation
    if isinstance(condemnation, Unreadable):
        return f"in doubt: {condemnation}. To make it readable: pp-leader absolve {host.name}"
    if isinstance(condemnation, Condemned):
        return f"condemned since {render_moment(condemnation.since_wallclock)}, under id {condemnation.id}"
    if isinstance(condemnation, Requested):
        return "not condemned yet, but its remediation is requested"
    last = f"; its last condemnation was {condemnation.last_id}" if condemnation.last_id else ""
    return f"well: no remediation is requested{last}"


def _leader(host: Host, leadership: Leadership, at: datetime) -> list[str]:
    next_action = leadership.course(host.name)
    if not leadership.leads:
        return [] if next_action is None else [f"The last leader said about it: {next_action.sentence}."]
    if next_action is None:
        return [f"{leadership.host} leads, and does nothing about it."]
    due = due_text(next_action, at)
    since = render_moment(next_action.since_wallclock)
    return [
        f"{leadership.host} leads. Since {since} ({next_action.stage}): {next_action.sentence}{due and f' ({due})'}."
    ]


def _about_no_node(leadership: Leadership) -> list[str]:
    """Blocked courses that concern no single node, such as a health check that another controller carries out."""
    courses = () if leadership.leader is None else leadership.leader.next_actions
    return [f"Blocked: {each.sentence}." for each in courses if each.refused and not each.node and not each.machine]


def _prospects(host: Host) -> list[str]:
    said = []
    if host.backup is not None:
        where = f"ConfigMap {NAMESPACE}/{backup_name(host.name)}"
        trouble = f", and can't be used: {host.backup.backup}" if isinstance(host.backup.backup, Unreadable) else ""
        said.append(f"A backup of its Node is in {where}{trouble}.")
    if host.node is None:
        said.append(f"Without a leader, recreate it by hand: pp-leader restore {host.name}.")
    elif isinstance(host.machine, Machine) and not isinstance(host.machine.condemnation, NotRequested):
        said.append(f"To withdraw the request: pp-leader absolve {host.name}.")
    else:
        said.append(prospect(host))
    return said
