"""One host as the cluster shows it to a command: its Node, its machine, and what of ours is about it."""

from __future__ import annotations

import math
import os
from argparse import Namespace
from collections.abc import Iterable
from difflib import get_close_matches

from pp_hostd import config
from pp_hostd.errors import UserError
from pp_hostd.frozen import frozen, replace
from pp_hostd.kube.client import Json
from pp_hostd.kube.resources import CONFIG_MAPS, MACHINES, NODES, Resource
from pp_hostd.leader.access.manifests import AGENT_ROLE, KINDS, installed_machines
from pp_hostd.leader.commands.administrator import Administrator
from pp_hostd.leader.interfaces import Requester
from pp_hostd.leader.node_memory import Term
from pp_hostd.leader.plan.plan import plan
from pp_hostd.leader.plan.view import Electorates, Target, View
from pp_hostd.leader.registry import REGISTRY, Registry
from pp_hostd.leader.watches import OwnConfigMaps, Watches
from pp_hostd.model.backup import Backup
from pp_hostd.model.condemnation import NotRequested, Requested
from pp_hostd.model.keys import NAMESPACE
from pp_hostd.model.machine import Machine, machine_of_node, parse_machine
from pp_hostd.model.machine_details import NO_HOST, MachineDetails, parse_machine_details
from pp_hostd.model.observed import BackupSeen, MachineSeen, NodeSeen, Observed, parse_node_seen
from pp_hostd.model.record import NAME, Unreadable
from pp_hostd.model.settings import Settings

MACHINES_HINT = "Does the cluster have machines of that kind? pp-leader install --machines and api.machines name it."


@frozen
class Host:
    """`node` is None while it is missing, and a leader holds a backup of it. `machine` is None where there is none of
    the `machine_key` that the Node names, and Unreadable where it names none that can be read. `kind` is the
    machine's."""

    name: str
    settings: Settings
    node: NodeSeen | None
    machine_key: str
    machine: Machine | Unreadable | None
    kind: Resource
    observed: Observed
    details: MachineDetails = NO_HOST
    registry: Registry = REGISTRY

    @property
    def enrolled(self) -> bool:
        return self.name in self.observed.enrolled

    @property
    def view(self) -> View:
        """As a plan of the leader looks at it."""
        machine = self.machine
        machines = {machine.machine_key: self._seen(machine)} if isinstance(machine, Machine) else {}
        observed = replace(self.observed, machines=machines)
        term = Term(own_node="", began_at=-math.inf)
        target = Target(self.name, self.machine_key)
        return View.of_target(self.settings, observed, Electorates(observed.roster), term, target, now=0.0)

    @property
    def backup(self) -> BackupSeen | None:
        return self.observed.backups.get(self.name)

    def only_machine(self) -> Machine:
        """The machine, for a command that can't do without."""
        if self.node is None and self.kind is NODES:
            raise UserError(
                f"Node {self.name} is missing, and is its own machine", f"See: pp-leader explain {self.name}"
            )
        if self.machine is None:
            what = self.kind.describe(*_parts(self.machine_key))
            raise UserError(f"Node {self.name} has no machine: there is no {what}", MACHINES_HINT)
        if isinstance(self.machine, Unreadable):
            raise UserError(f"Node {self.name} has no machine: {self.machine}", MACHINES_HINT)
        return self.machine

    def against(self) -> str:
        """Why the leader would do nothing about a request for it, as things stand, by its own plan; empty if none.

        It sees only this host, so what the state of others may hold back for a while is not told.
        """
        machine = self.machine
        if not isinstance(machine, Machine):
            return f"its machine: {machine or 'there is none'}"
        if isinstance(machine.condemnation, NotRequested):
            machine = replace(machine, condemnation=Requested(machine.condemnation.last_id))
        machines = {machine.machine_key: self._seen(machine)}
        asked = replace(self.observed, machines=machines, requests=(machine.machine_key,))
        next_actions = plan(
            self.settings, asked, Term(own_node="", began_at=-math.inf), (), 0.0, self.registry
        ).next_actions
        return next((next_action.sentence for next_action in next_actions if next_action.refused), "")

    def _seen(self, machine: Machine) -> MachineSeen:
        return MachineSeen(machine, unbroken_since=0, host=self.details)


def settings_of(arguments: Namespace, administrator: Administrator) -> Settings:
    """Returns the leader's settings if its configuration is here, else the defaults. The kind of the machines is the
    one that the person names, else that of the configuration, else the installed one."""
    path, machines = arguments.config, arguments.machines
    if path is None and os.path.lexists(arguments.config_path):
        path = arguments.config_path
    if path is None and machines is None:
        machines = _installed_machines(administrator)
    settings = Settings() if path is None else config.load(path).settings
    return settings if machines is None else replace(settings, api=replace(settings.api, machines=machines))


def _installed_machines(administrator: Administrator) -> str:
    """As `pp-leader install` was told, or chose."""
    kind = KINDS["ClusterRole"]
    role = administrator.get(kind, AGENT_ROLE)
    machines = None if role is None else installed_machines(role)
    if machines is None:
        told = "grants no right on any kind of machines" if role else "is not there, so pp-hostd is not installed"
        hint = "Install it (pp-leader install), or say --machines openshift, --machines cluster-api or --machines node."
        raise UserError(f"{kind.describe(None, AGENT_ROLE)} {told}: it would tell what the machines are", hint)
    return machines


def read_host(administrator: Administrator, settings: Settings, name: str) -> Host:
    """A UserError with names that are like it, if there is no such Node, nor a backup of one."""
    ours = own_config_maps(administrator)
    stored = ours.backups.get(name)
    node = find_node(administrator, name, *ours.backups) if stored is None else administrator.get(NODES, name)
    seen = None if node is None else parse_node_seen(node, settings.api.machines)
    if isinstance(seen, Unreadable):
        raise UserError(f"Node {name}: {seen}", f"See: kubectl get node {name} -o yaml")
    if node is None and stored is not None and isinstance(stored.backup, Backup):
        node = stored.backup.node()
    machine_key = machine_of_node(node or {}, settings.api.machines)
    kind, found = _machine(administrator, settings.api.machines, machine_key)
    machine = found if found is None or isinstance(found, Unreadable) else parse_machine(found)
    details, parts = _read_by_remedies(administrator, settings, found)
    observed = Observed(
        nodes={} if seen is None else {name: seen},
        marked=(name,) if seen is not None and seen.marked else (),
        backups={} if stored is None else {name: stored},
        roster=ours.roster,
        control=ours.control,
        enrolled=ours.enrolled,
        parts=parts,
    )
    called = "" if isinstance(machine_key, Unreadable) else machine_key
    return Host(name, settings, seen, called, machine, kind, observed, details)


def read_requests(administrator: Administrator, settings: Settings, requesters: Iterable[Requester]) -> Observed:
    """Reads what a leader with these requesters would watch, and MachineHealthChecks whether or not it carries them
    out."""
    settings = replace(settings, health=replace(settings.health, machine_health_checks=True))
    watches = Watches(settings.api.machines, settings, Registry((), tuple(requesters)))
    for watch in watches.watches:
        versions = (administrator.list(version, watch.namespace) for version in watch.versions)
        watch.show_all(watch.keep(each) for each in next(filter(None, versions), []))
    return watches.observed


def own_config_maps(administrator: Administrator) -> OwnConfigMaps:
    ours = OwnConfigMaps()
    for config_map in administrator.list(CONFIG_MAPS, NAMESPACE):
        ours.show(ours.keep(config_map))
    return ours


def find_node(administrator: Administrator, name: str, *missing: str) -> Json:
    """The Node, or a UserError with names that are like it, of Nodes or of those that are missing."""
    node = administrator.get(NODES, name) if NAME.pattern.fullmatch(name) else None
    if node is None:
        names = [each["metadata"]["name"] for each in administrator.list(NODES)]
        close = get_close_matches(name, [*names, *missing])
        hint = f"Did you mean {' or '.join(close)}?" if close else "See: kubectl get nodes"
        raise UserError(f"there is no Node {name}", hint)
    return node


def _machine(
    administrator: Administrator, machines: str, machine_key: str | Unreadable
) -> tuple[Resource, Json | Unreadable | None]:
    """In the newest version that serves it."""
    versions = MACHINES[machines]
    if isinstance(machine_key, Unreadable):
        return versions[0], machine_key
    for kind in versions:
        namespace, name = _parts(machine_key)
        found = administrator.get(kind, name, namespace)
        if found is not None:
            return kind, found
    return versions[0], None


def _read_by_remedies(
    administrator: Administrator, settings: Settings, machine: Json | Unreadable | None
) -> tuple[MachineDetails, dict[type, object]]:
    """Returns the details of a Machine beside its condemnation, and the objects that remedies read for themselves. Only
    remedies that are on read anything."""
    readings = [reading for reading in (each.reading(settings) for each in REGISTRY.remedies) if reading is not None]
    used = [reading for reading in readings if not all(watch.unused for watch in reading.watches)]
    if not used or machine is None or isinstance(machine, Unreadable):
        return NO_HOST, {}
    for watch in (watch for reading in used for watch in reading.watches):
        watch.show_all(watch.keep(each) for each in administrator.list(watch.versions[0]))
    parts = [reading.part() for reading in used]
    details = parse_machine_details(machine)
    found = MachineDetails(details) if isinstance(details, Unreadable) else details
    return found, {type(part): part for part in parts}


def _parts(machine_key: str) -> tuple[str | None, str]:
    namespace, _, name = machine_key.rpartition("/")
    return namespace or None, name
