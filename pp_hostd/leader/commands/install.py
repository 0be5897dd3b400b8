"""`pp-leader install`: make the cluster have what the manifests say."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Collection, Iterable, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any

import yaml

from pp_hostd.errors import UserError
from pp_hostd.kube.resources import LEASES, MACHINES
from pp_hostd.leader.access.manifests import KINDS, manifests
from pp_hostd.leader.registry import REGISTRY
from pp_hostd.leader.requests.remediation_objects.definitions import DEFINITIONS, is_ours
from pp_hostd.model.identities import AgentsUse
from pp_hostd.model.keys import NAMESPACE
from pp_hostd.model.lease import LEASE, given_up_spec
from pp_hostd.service.output import say
from pp_hostd.service.person import now

if TYPE_CHECKING:
    from pp_hostd.leader.commands.administrator import Administrator

MACHINES_ARE, AGENTS_USE = "node", "certificate"
NOT_PRINTED = (
    f"# Where all of this is new, install also makes the Lease {NAMESPACE}/{LEASE}. An apply must never touch it."
)


def install(arguments: Namespace) -> int:
    if arguments.dry_run:
        flows = arguments.flows or ()
        machines = _fitting(arguments.machines or MACHINES_ARE, flows)
        wanted = manifests(machines, AgentsUse(arguments.agents_use or AGENTS_USE), flows)
        say(yaml.safe_dump_all(wanted, sort_keys=False, width=120) + NOT_PRINTED)
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
    """What the person says, else what is installed: an install that is only repeated takes no rights away."""
    role = administrator.get(KINDS["ClusterRole"], "pp-hostd:agent") or {}
    binding = administrator.get(KINDS["ClusterRoleBinding"], "pp-hostd:agent") or {}
    read = {group for rule in role.get("rules") or () for group in rule.get("apiGroups", ())}
    named = {subject["name"] for subject in binding.get("subjects") or ()}
    machines = next((name for name, kinds in MACHINES.items() if kinds[0].group in read), MACHINES_ARE)
    use = next((use.value for use in AgentsUse if use.group in named), AGENTS_USE)
    leader = administrator.get(KINDS["ClusterRole"], "pp-hostd:leader") or {}
    touched = _touched(leader.get("rules") or ())
    flows = [each.name for each in REGISTRY.all if _touched(each.rights(MACHINES[machines][0])) <= touched]
    chosen = arguments.flows or flows
    return _fitting(arguments.machines or machines, chosen), AgentsUse(arguments.agents_use or use), chosen


def _touched(rules: Iterable[Mapping[str, Any]]) -> set[str]:
    """The kinds of objects that these rules grant something of."""
    return {plural for rule in rules for plural in rule.get("resources", ())}
