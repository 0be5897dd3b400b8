"""`pp-leader restore`: recreate a missing Node from its backup, also where nothing of pp-hostd runs any more."""

from __future__ import annotations

from argparse import Namespace
from contextlib import closing

from pp_hostd.errors import UserError
from pp_hostd.kube.client import Json
from pp_hostd.kube.resources import CONFIG_MAPS, NODES
from pp_hostd.leader.commands.administrator import Administrator
from pp_hostd.leader.commands.host import Host, own_config_maps, read_host, settings_of
from pp_hostd.leader.commands.status import read_leadership
from pp_hostd.leader.steps import nodes
from pp_hostd.model.backup import Backup
from pp_hostd.model.condemnation import NotRequested
from pp_hostd.model.keys import NAMESPACE, backup_name, is_ours
from pp_hostd.model.machine import Machine
from pp_hostd.model.record import Unreadable
from pp_hostd.service.output import filled, now, say


def restore(arguments: Namespace) -> int:
    name = arguments.node
    with closing(Administrator(arguments.kubeconfig)) as administrator:
        settings = settings_of(arguments, administrator)
        is_machine = settings.api.machines == "node"
        backup = _backup(administrator, name)
        _check(administrator, backup, is_machine)
        if not administrator.create(NODES, nodes.recreated(backup, now(), is_machine=is_machine)):
            raise UserError(f"Node {name} has just come back by itself", f"See: pp-leader explain {name}")
        said = f"Node {name} is back, as it was before condemnation {backup.id}. "
        if arguments.drop_backup:
            administrator.delete(CONFIG_MAPS, backup_name(name), NAMESPACE)
            said += "Its backup is dropped."
        else:
            said += f"Its backup stays until a leader drops it. {_dropping(name)}"
        say(filled(said))
        _tell_condemned(read_host(administrator, settings, name))
    return 0


def _dropping(name: str) -> str:
    return f"To drop that now: kubectl delete configmap -n {NAMESPACE} {backup_name(name)}"


def _tell_condemned(host: Host) -> None:
    """No leader is left to lift it, and its agent starts nothing meanwhile."""
    if isinstance(host.machine, Machine) and not isinstance(host.machine.condemnation, NotRequested):
        what = host.kind.describe(host.machine.namespace, host.machine.name)
        say(filled(f"Its {what} is still requested or condemned. To lift that: pp-leader absolve {host.name}"))


def _backup(administrator: Administrator, name: str) -> Backup:
    stored = own_config_maps(administrator).backups
    where = f"ConfigMap {NAMESPACE}/{backup_name(name)}"
    if name not in stored:
        others = f"There are backups of: {', '.join(sorted(stored))}." if stored else "There are no backups at all."
        raise UserError(f"there is no backup of Node {name} ({where})", others)
    backup = stored[name].backup
    if isinstance(backup, Unreadable):
        see = f"Correct it by hand: kubectl edit configmap -n {NAMESPACE} {backup_name(name)}"
        raise UserError(f"{where}: {backup}", see)
    return backup


def _check(administrator: Administrator, backup: Backup, is_machine: bool) -> None:
    """A leader frees the workloads before the Node comes back; nobody should come between."""
    name = backup.name
    node = administrator.get(NODES, name)
    if node is not None:
        lost = nodes.complete(node, backup, is_machine=is_machine)
        raise UserError(f"Node {name} is there", _lacking(lost, _dropping(name)))
    leadership = read_leadership(administrator, now())
    if leadership.leads and not backup.early:  # whose Node somebody else has deleted: no leader gives that back
        hint = f"See: pp-leader explain {name}. To do it by hand, stop pp-leader on the control-plane hosts first."
        raise UserError(f"{leadership.sentence()}, and recreates Node {name} once its workloads are freed", hint)


def _lacking(patch: Json, dropping: str) -> str:
    """Returns a sentence that names all that the Node lacks of its backup, except our own marks."""
    metadata, spec = patch.get("metadata", {}), patch.get("spec", {})
    named = [
        f"{part[:-1]} {key}" for part in ("labels", "annotations") for key in metadata.get(part, {}) if not is_ours(key)
    ]
    named += [f"spec.{key}" for key in spec]
    if not named:
        return f"It has all that is in its backup. {dropping}"
    return f"Of its backup it lacks: {', '.join(named)}. To see both: kubectl get node, kubectl get configmap -o yaml."
