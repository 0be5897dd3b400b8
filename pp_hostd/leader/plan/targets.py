"""Whom a plan looks at: nodes, machines and hosts that are not plainly well, and how they belong together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pp_hostd.model.bare_metal_host import PowerRequest
from pp_hostd.model.condemnation import NotRequested
from pp_hostd.model.machine import machine_of_node
from pp_hostd.model.machine_host import HostReference
from pp_hostd.model.observed import Observed
from pp_hostd.model.record import Unreadable
from pp_hostd.model.remediation import Remediation
from pp_hostd.model.settings import Settings


class Target(NamedTuple):
    """A Node, its machine and its BareMetalHost; each is empty where nothing tells it."""

    node: str
    machine: str
    host: str

    @property
    def key(self) -> str:
        """Under which its case is remembered."""
        return self.node or self.machine or f"BareMetalHost {self.host}"


def targets(settings: Settings, observed: Observed) -> tuple[list[Target], list[Target]]:
    """All that is not plainly well, in the order of names; then machines without a Node, or with one of another's."""
    held = dict(_held(observed))
    found = {name: _machine_of(observed, name, settings.api.machines) for name in (*observed.backups, *observed.marked)}
    alone: set[Target] = set()
    doubtful: list[Target] = []
    for subject in sorted(set(observed.requests).intersection(observed.machines)):
        name = observed.machines[subject].machine.node or ""
        seen = observed.nodes.get(name)
        named = seen is None or seen.subject == subject
        if name and named and found.get(name, "") in ("", subject):
            found[name] = subject
        elif not name and (subject in held or _stands_on_host(settings, observed, subject)):
            alone.add(Target("", subject, _host_of(observed, subject, held)))
        elif not isinstance(observed.machines[subject].machine.condemnation, NotRequested):
            doubtful.append(Target(name, subject, ""))
    chosen = {Target(name, subject, _host_of(observed, subject, held)) for name, subject in found.items()} | alone
    return sorted({*chosen, *_left(observed, {each.host for each in chosen})}), doubtful


def _held(observed: Observed) -> Iterator[tuple[str, str]]:
    """Of machines whose host our request keeps off: the machine, and that host."""
    for name in observed.hosts.held:
        request = observed.hosts.seen[name].request
        machine = observed.machines.get(request.machine) if isinstance(request, PowerRequest) else None
        if isinstance(request, PowerRequest) and machine is not None and machine.machine.uid == request.uid:
            yield request.machine, name


def _left(observed: Observed, known: set[str]) -> Iterator[Target]:
    """Hosts that our request keeps off, and that nothing else leads to: nobody asks for the machine any more, or it
    is gone. Whoever led before, none may stay off."""
    for name in observed.hosts.held:
        request = observed.hosts.seen[name].request
        if name in known or not isinstance(request, PowerRequest):
            continue
        seen = observed.machines.get(request.machine)
        same = seen is not None and seen.machine.uid == request.uid
        yield Target(request.node, request.machine if same else "", name)


def host_of(observed: Observed, subject: str) -> str:
    """The BareMetalHost that is kept off for this machine; else the one that it names, if that is there."""
    return _host_of(observed, subject, dict(_held(observed)))


def machine_of(observed: Observed, found: Remediation) -> str:
    """The machine that this object is for, or that of the Node that it names, which may be missing; or nothing."""
    if not found.node:
        return found.machine
    seen = observed.nodes.get(found.node)
    if seen is not None and isinstance(seen.subject, str):
        return seen.subject
    of_node = (name for name, each in observed.machines.items() if each.machine.node == found.node)
    return next(of_node, "")


def _stands_on_host(settings: Settings, observed: Observed, subject: str) -> bool:
    return settings.power.cycle and observed.machines[subject].host.host is not None


def _host_of(observed: Observed, subject: str, held: dict[str, str]) -> str:
    """The host that is kept off for this machine; else the one that it names, if that is there."""
    if subject in held or subject not in observed.machines:
        return held.get(subject, "")
    reference = observed.machines[subject].host.host
    if not isinstance(reference, HostReference):
        return ""
    name = reference.subject or observed.hosts.names.get(reference.uid, "")
    host = observed.hosts.seen.get(name)
    return name if host is not None and reference.uid in ("", host.uid) else ""


def _machine_of(observed: Observed, name: str, machines: str) -> str:
    """The machine that the Node names, or that it named before it was deleted."""
    seen, stored = observed.nodes.get(name), observed.backups.get(name)
    if seen is not None:
        return "" if isinstance(seen.subject, Unreadable) else seen.subject
    if stored is None or isinstance(stored.backup, Unreadable):
        return ""
    subject = machine_of_node(stored.backup.node(), machines)
    return "" if isinstance(subject, Unreadable) else subject
