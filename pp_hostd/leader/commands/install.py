"""`pp-leader install` and `uninstall`: put what the manifests say into the cluster, and take it out again."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Collection, Iterable, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any

import yaml

from pp_hostd.errors import UserError
from pp_hostd.kube.client import Json
from pp_hostd.kube.resources import CONFIG_MAPS, LEASES, MACHINES, NODE_HEALTH_CHECKS, NODES, Resource
from pp_hostd.leader.access.leftovers import Found, condition_removal, objections, removal
from pp_hostd.leader.access.manifests import AGENT_ROLE, KINDS, installed_machines, manifests
from pp_hostd.leader.commands.administrator import Administrator
from pp_hostd.leader.commands.default_check import APPLIED_TWICE, chosen_check, made_by_install, make_default_check
from pp_hostd.leader.commands.enroll import LEFT_ON_HOST
from pp_hostd.leader.definition import DEFINITIONS, defined, is_ours
from pp_hostd.leader.registry import REGISTRY
from pp_hostd.leader.requests.health_checks import HEALTH_CHECKS
from pp_hostd.model.keys import NAMESPACE, AgentsUse
from pp_hostd.model.lease import LEASE, given_up_spec
from pp_hostd.model.settings import Settings
from pp_hostd.service.output import now, say

if TYPE_CHECKING:
    from pp_hostd.leader.commands.administrator import Administrator


MACHINES_ARE, AGENTS_USE = "node", "certificate"
NOT_PRINTED = (
    f"# Where all of this is new, install also makes the Lease {NAMESPACE}/{LEASE}. An apply must never touch it."
)


def install(arguments: Namespace) -> int:
    check = chosen_check(arguments)
    if arguments.dry_run:
        flows = _flows(arguments, arguments.flows or ())
        machines = _fitting(arguments.machines or MACHINES_ARE, flows)
        wanted = manifests(machines, AgentsUse(arguments.agents_use or AGENTS_USE), flows)
        printed = yaml.safe_dump_all([*wanted, *([] if check is None else [check])], sort_keys=False, width=120)
        say(printed + NOT_PRINTED + ("" if check is None else APPLIED_TWICE))
        return 0
    # Only from here on does it need the official client.
    from pp_hostd.leader.commands.administrator import Administrator, Applied

    with closing(Administrator(arguments.kubeconfig)) as administrator:
        done = set()
        for manifest in manifests(*_chosen(arguments, administrator)):
            kind, metadata = KINDS[manifest["kind"]], manifest["metadata"]
            what = kind.describe(metadata.get("namespace"), metadata["name"])
            if kind is DEFINITIONS and _is_others(administrator, metadata["name"]):
                say(f"{'left':9}  {what}, which somebody else installed")
                continue
            applied = administrator.apply(kind, manifest)
            say(f"{applied.value:9}  {what}")
            done.add(applied)
        # Nobody can have led before, so the first leader need not wait. Elsewhere, whoever held a Lease that is missing
        # now may still act (rule 14).
        if done == {Applied.CREATED}:
            spec = {**given_up_spec(now()), "leaseTransitions": 0}
            administrator.create(LEASES, {"metadata": {"name": LEASE}, "spec": spec}, NAMESPACE)
            say(f"{Applied.CREATED.value:9}  {LEASES.describe(NAMESPACE, LEASE)}")
        if check is not None:
            make_default_check(administrator, check, arguments.wait)
    return 0


def _is_others(administrator: Administrator, definition: str) -> bool:
    found = administrator.get(DEFINITIONS, definition)
    return found is not None and not is_ours(found)


def _fitting(machines: str, flows: Collection[str]) -> str:
    """The kind of machines, if these flows can do with it."""
    more = [each.name for each in REGISTRY.all if each.name in flows and each.needs_machines]
    if machines == "node" and more:
        hint = "Say what the machines are: --machines openshift or --machines cluster-api."
        raise UserError(f"{' and '.join(more)} need Machines, and in this cluster Nodes stand for themselves", hint)
    return machines


def _chosen(arguments: Namespace, administrator: Administrator) -> tuple[str, AgentsUse, Collection[str]]:
    """Returns the person's choice, else the installed one: an install that is only repeated takes no rights away."""
    role = administrator.get(KINDS["ClusterRole"], AGENT_ROLE) or {}
    binding = administrator.get(KINDS["ClusterRoleBinding"], AGENT_ROLE) or {}
    named = {subject["name"] for subject in binding.get("subjects") or ()}
    machines = installed_machines(role) or MACHINES_ARE
    use = next((use.value for use in AgentsUse if use.group in named), AGENTS_USE)
    leader = administrator.get(KINDS["ClusterRole"], "pp-hostd:leader") or {}
    touched = _touched(leader.get("rules") or ())
    flows = [each.name for each in REGISTRY.all if _touched(each.rights(MACHINES[machines][0])) <= touched]
    chosen = _flows(arguments, arguments.flows or flows)
    return _fitting(arguments.machines or machines, chosen), AgentsUse(arguments.agents_use or use), chosen


def _flows(arguments: Namespace, flows: Collection[str]) -> Collection[str]:
    return {*flows, HEALTH_CHECKS.name} if arguments.health_check else flows


def _touched(rules: Iterable[Mapping[str, Any]]) -> set[str]:
    """The kinds of objects that these rules grant something of."""
    return {plural for rule in rules for plural in rule.get("resources", ())}


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
    for name in made_by_install(administrator):
        _delete(administrator, NODE_HEALTH_CHECKS, {"name": name})
    # For all kinds of machines they have the same names; where Nodes stand for themselves, there are less of them.
    for manifest in reversed(manifests("openshift", AgentsUse.CERTIFICATE, REGISTRY.flows)):
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
    of_any = MACHINES["openshift"][0]  # where Nodes stand for themselves, there are less of them
    ours = [defined(definition) for each in REGISTRY.requesters for definition in each.definitions(of_any)]
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
    found = [each["metadata"] for each in administrator.list(kind)]
    names = ["/".join(filter(None, (each.get("namespace"), each["name"]))) for each in found]
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
    marked = removal(api_object) is not None and administrator.change(kind, name, namespace, removal)
    if kind is NODES and condition_removal(api_object) is not None:
        marked |= administrator.change(kind, name, namespace, condition_removal, "status")
    if marked:
        say(f"unmarked  {kind.describe(namespace, name)}")


def _delete(administrator: Administrator, kind: Resource, metadata: Json) -> None:
    namespace, name = metadata.get("namespace"), metadata["name"]
    deleted = administrator.delete(kind, name, namespace)
    say(f"{'deleted' if deleted else 'absent':8}  {kind.describe(namespace, name)}")
