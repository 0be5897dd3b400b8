"""The rights of leader and agents, as RBAC grants them: the least that works.

An agent's own Node needs no grant: Kubernetes lets every node read and change that. What RBAC can't tell apart (whose
annotation, which key) is left to the policies; reads it can only limit by name, so no ConfigMap of ours holds a secret.
"""

from __future__ import annotations

from collections.abc import Collection

from pp_hostd.kube.client import Json
from pp_hostd.kube.resources import (
    CAPI_CLUSTERS,
    CONFIG_MAPS,
    EVENTS,
    KUBELET_LEASES,
    LEASES,
    MACHINES,
    NODES,
    PODS,
    VOLUME_ATTACHMENTS,
)
from pp_hostd.kube.signing_request import REQUESTS
from pp_hostd.leader.access.rules import RBAC_GROUP, READ, rule, sub_rule
from pp_hostd.leader.registry import REGISTRY, Registry
from pp_hostd.model.identities import LEADERS, AgentsUse
from pp_hostd.model.keys import LEADER, NAMESPACE, ROSTER
from pp_hostd.model.lease import LEASE
from pp_hostd.model.renewal import SIGNER


def leader_roles(machines: str, flows: Collection[str] = (), registry: Registry = REGISTRY) -> list[Json]:
    """For leaders of a cluster whose machines are of this kind (the setting api.machines), with these flows."""
    kind = MACHINES[machines][0]
    more = [each for flow in registry.all if flow.name in flows for each in flow.rights(kind)]
    everywhere = [
        rule(NODES, f"{READ} create patch delete"),
        sub_rule(NODES),  # Ready=Unknown of a Node that came back without conditions
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
