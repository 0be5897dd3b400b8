"""`pp-leader uninstall`: take everything of ours out of the cluster, unless that would strand a node."""

from __future__ import annotations

from argparse import Namespace
from contextlib import closing

from pp_hostd.errors import UserError
from pp_hostd.kube.client import Json
from pp_hostd.kube.resources import (
    CONFIG_MAPS,
    LEASES,
    MACHINES,
    Resource,
)
from pp_hostd.leader.access.leftovers import Found, objections, removal
from pp_hostd.leader.access.manifests import KINDS, manifests
from pp_hostd.leader.commands.administrator import Administrator
from pp_hostd.leader.commands.unenroll import LEFT_ON_HOST
from pp_hostd.leader.registry import REGISTRY
from pp_hostd.leader.requests.remediation_objects.definitions import DEFINITIONS, defined, is_ours
from pp_hostd.model.identities import AgentsUse
from pp_hostd.model.keys import NAMESPACE
from pp_hostd.model.lease import LEASE
from pp_hostd.model.settings import Settings
from pp_hostd.service.output import say


def uninstall(arguments: Namespace) -> int:
    with closing(Administrator(arguments.kubeconfig)) as administrator:
        _uninstall(administrator)
    return 0


def _uninstall(administrator: Administrator) -> None:
    found = _nodes_and_machines(administrator)
    lease = administrator.get(LEASES, LEASE, NAMESPACE)
    against = objections(lease, found, administrator.list(CONFIG_MAPS, NAMESPACE), _read_by_flows(administrator))
    if against:
        raise UserError("\n  ".join(["this cluster still needs pp-hostd, and nothing was changed:", *against]))
    for kind, api_object in found:
        unmark(administrator, kind, api_object)
    for manifest in reversed(manifests("node", AgentsUse.CERTIFICATE, REGISTRY.flows)):  # for all, of the same names
        kind = KINDS[manifest["kind"]]
        kept = _kept(administrator, manifest) if kind is DEFINITIONS else ""
        if kept:
            say(f"{'left':8}  {kind.describe(None, manifest['metadata']['name'])}, {kept}")
        else:
            _delete(administrator, kind, manifest["metadata"])
    say("To clean up each host, whose gate would otherwise hold its kubelet for ever:")
    say(f"  {LEFT_ON_HOST}")


def _read_by_flows(administrator: Administrator) -> list[Found]:
    """The objects of the kinds that remedies and requesters read."""
    readings = filter(None, (each.reading(Settings()) for each in REGISTRY.all))
    kinds = [watch.versions[0] for reading in readings for watch in reading.watches]
    ours = [defined(definition) for each in REGISTRY.requesters for definition in each.definitions()]
    needed = [kind for kind in kinds if kind not in ours or _is_ours(administrator, kind)]
    return [(kind, each) for kind in needed for each in administrator.list(kind)]


def _is_ours(administrator: Administrator, kind: Resource) -> bool:
    found = administrator.get(DEFINITIONS, f"{kind.plural}.{kind.group}")
    return found is not None and is_ours(found)


def _kept(administrator: Administrator, definition: Json) -> str:
    """Why this definition stays, or nothing: with it all objects of its kind would go, and others may rely on it."""
    kind, name = defined(definition), definition["metadata"]["name"]
    if administrator.get(DEFINITIONS, name) is None:
        return ""
    if not _is_ours(administrator, kind):
        return "which somebody else installed"
    names = [f"{each['metadata']['namespace']}/{each['metadata']['name']}" for each in administrator.list(kind)]
    if not names:
        return ""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"of which there is {names[0]}{more}. To remove it with them: kubectl delete crd {name}"


def _nodes_and_machines(administrator: Administrator) -> list[Found]:
    found: list[Found] = []
    for versions in MACHINES.values():
        listed = ([(kind, each) for each in administrator.list(kind)] for kind in versions)
        found += next(filter(None, listed), [])  # several versions serve the same objects
    return found


def unmark(administrator: Administrator, kind: Resource, api_object: Json) -> None:
    """Take our marks off a Node or Machine, though it may have changed since it was read."""
    name, namespace = api_object["metadata"]["name"], api_object["metadata"].get("namespace")
    if removal(api_object) is not None and administrator.change(kind, name, namespace, removal):
        say(f"unmarked  {kind.describe(namespace, name)}")


def _delete(administrator: Administrator, kind: Resource, metadata: Json) -> None:
    namespace, name = metadata.get("namespace"), metadata["name"]
    deleted = administrator.delete(kind, name, namespace)
    say(f"{'deleted' if deleted else 'absent':8}  {kind.describe(namespace, name)}")
