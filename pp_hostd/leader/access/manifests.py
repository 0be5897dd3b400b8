"""Everything that `pp-leader install` puts into a cluster, in the order in which it does: guarded before granted."""

from __future__ import annotations

from collections.abc import Collection

from pp_hostd.kube.client import Json
from pp_hostd.kube.resources import NAMESPACES, Resource
from pp_hostd.leader.access.policies import ADMISSION, policies
from pp_hostd.leader.access.roles import agent_roles, leader_roles
from pp_hostd.leader.access.rules import RBAC_GROUP
from pp_hostd.leader.registry import REGISTRY, Registry
from pp_hostd.leader.requests.remediation_objects.definitions import DEFINITIONS
from pp_hostd.model.identities import AgentsUse
from pp_hostd.model.keys import NAMESPACE

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
    granted = [each for each in registry.requesters if each.name in flows]
    ours = [definition for each in granted for definition in each.definitions()]
    others = [role for each in registry.requesters for role in each.roles(each in granted)]
    roles = [*leader_roles(machines, flows, registry), *agent_roles(machines, agents_use), *others]
    return [namespace, *ours, *policies(), *roles]
