"""Everything that `pp-leader install` puts into a cluster: rights are guarded before they are granted."""

from __future__ import annotations

from collections.abc import Collection

from pp_hostd.kube.client import Json
from pp_hostd.kube.renewing import REQUESTS
from pp_hostd.kube.resources import (
    CAPI_CLUSTERS,
    CONFIG_MAPS,
    EVENTS,
    KUBELET_LEASES,
    LEASES,
    MACHINES,
    NAMESPACES,
    NODES,
    PODS,
    SERVICE_ACCOUNTS,
    VOLUME_ATTACHMENTS,
    Resource,
)
from pp_hostd.leader.access.policies import ADMISSION, policies
from pp_hostd.leader.definition import DEFINITIONS
from pp_hostd.leader.interfaces import RBAC_GROUP, READ, rule, sub_rule
from pp_hostd.leader.registry import REGISTRY, Registry
from pp_hostd.model.keys import LEADER, LEADERS, NAMESPACE, ROSTER, AgentsUse
from pp_hostd.model.lease import LEASE
from pp_hostd.model.renewal import SIGNER


def leader_roles(machines: str, flows: Collection[str] = (), registry: Registry = REGISTRY) -> list[Json]:
    """For leaders of a cluster whose machines are of this kind (the setting api.machines), with these flows."""
    kind = MACHINES[machines][0]
    granted = [flow for flow in registry.all if flow.name in flows]
    more = [each for flow in granted for each in flow.rights(kind)]
    everywhere = [
        rule(NODES, f"{READ} create patch delete"),
        sub_rule(NODES),  # our own conditions, and Ready=Unknown of a Node that came back without any
        *([] if kind is NODES else [rule(kind, f"{READ} patch")]),
        *([rule(CAPI_CLUSTERS, READ)] if machines == "cluster-api" else []),  # whether they are paused
        *(each for number, each in enumerate(more) if each not in more[:number]),
        rule(PODS, "list delete"),
        rule(VOLUME_ATTACHMENTS, "list delete"),
        rule(EVENTS, "get create patch"),
        *_for_renewals(),
    ]
    at_home = [
        rule(CONFIG_MAPS, "list watch create update delete"),
        rule(CONFIG_MAPS, "get patch", LEADER),
        rule(LEASES, "create"),  # which RBAC can't limit to a name
        rule(LEASES, "get patch", LEASE),
        *(each for flow in granted for each in flow.rights_at_home()),
    ]
    return [
        *_granted("leader", LEADERS, everywhere),
        *_granted("leader", LEADERS, at_home, NAMESPACE),
        *_granted("leader", LEADERS, [rule(LEASES, "get")], KUBELET_LEASES),
    ]


def _for_renewals() -> list[Json]:
    """To renew its own certificate and to approve others'. Which ones, the policies say and the leader checks.

    An agent needs no grant for its own: Kubernetes lets every node create and read requests.
    """
    approve = {
        "apiGroups": [REQUESTS.group],
        "resources": ["signers"],
        "resourceNames": [SIGNER],
        "verbs": ["approve"],
    }
    return [rule(REQUESTS, "get list create"), sub_rule(REQUESTS, "approval"), approve]


AGENT_ROLE = "pp-hostd:agent"


def agent_roles(machines: str, use: AgentsUse) -> list[Json]:
    """For the agents of that cluster. Each reads every machine: peers ask about each other's."""
    at_home = [
        rule(CONFIG_MAPS, "get"),  # the orders, and the backup of a node that is missing
        rule(CONFIG_MAPS, "list watch", ROSTER),
    ]
    return [
        *_granted("agent", use.group, [rule(MACHINES[machines][0], READ)]),
        *_granted("agent", use.group, at_home, NAMESPACE),
    ]


def installed_machines(agent_role: Json) -> str | None:
    """The kind of machines that this ClusterRole of agents is for; None if it grants no right on any kind."""
    rules = agent_role.get("rules") or ()
    read = {(group, plural) for each in rules for group in each["apiGroups"] for plural in each["resources"]}
    served = ((name, kinds[0]) for name, kinds in MACHINES.items())
    return next((name for name, kind in served if (kind.group, kind.plural) in read), None)


def _granted(who: str, group: str, rules: list[Json], namespace: str = "") -> list[Json]:
    """A role and its binding to the group, in the namespace or everywhere."""
    scope, where = ("", {"namespace": namespace}) if namespace else ("Cluster", {})
    name = f"pp-hostd:{who}"
    role = {"apiGroup": RBAC_GROUP, "kind": f"{scope}Role", "name": name}
    subject = {"apiGroup": RBAC_GROUP, "kind": "Group", "name": group}
    contents: dict[str, Json] = {"Role": {"rules": rules}, "RoleBinding": {"roleRef": role, "subjects": [subject]}}
    return [
        {"apiVersion": f"{RBAC_GROUP}/v1", "kind": scope + kind, "metadata": {"name": name, **where}, **content}
        for kind, content in contents.items()
    ]


KINDS = {
    kind.kind: kind
    for kind in (
        NAMESPACES,
        DEFINITIONS,
        Resource(ADMISSION, "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", namespaced=False),
        Resource(
            ADMISSION, "v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", namespaced=False
        ),
        Resource(RBAC_GROUP, "v1", "ClusterRole", "clusterroles", namespaced=False),
        Resource(RBAC_GROUP, "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False),
        Resource(RBAC_GROUP, "v1", "Role", "roles"),
        Resource(RBAC_GROUP, "v1", "RoleBinding", "rolebindings"),
        SERVICE_ACCOUNTS,
    )
}
"""How the API serves the manifests, by their kind."""


def manifests(
    machines: str, agents_use: AgentsUse, flows: Collection[str] = (), registry: Registry = REGISTRY
) -> list[Json]:
    """For a cluster whose machines are of this kind (the setting api.machines), and for these flows of the leader."""
    # The API would add this label, on which a policy relies, and then find it changed by the next apply.
    metadata = {"name": NAMESPACE, "labels": {"kubernetes.io/metadata.name": NAMESPACE}}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    granted, kind = [each for each in registry.requesters if each.name in flows], MACHINES[machines][0]
    ours = [definition for each in granted for definition in each.definitions(kind)]
    others = [role for each in registry.requesters for role in each.roles(kind, each in granted)]
    roles = [*leader_roles(machines, flows, registry), *agent_roles(machines, agents_use), *others]
    return [namespace, *ours, *policies(), *roles]
