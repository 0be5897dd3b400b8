"""The rights of leader and agents, as RBAC grants them: the least that works.

An agent's own Node needs no grant: Kubernetes lets every node read and change that. What RBAC can't tell apart (whose
annotation, which key) is left to the policies; reads it can only limit by name, so no ConfigMap of ours holds a secret.
"""

from __future__ import annotations

from collections.abc import Collection

from pp_hostd.kube.client import Json
from pp_hostd.kube.resources import (
    BARE_METAL_HOSTS,
    CAPI_CLUSTERS,
    CONFIG_MAPS,
    EVENTS,
    KUBELET_LEASES,
    LEASES,
    MACHINES,
    NODES,
    PODS,
    POISON_PILL_REMEDIATIONS,
    PROPOSED_REMEDIATIONS,
    REMEDIATIONS,
    VOLUME_ATTACHMENTS,
    Resource,
    template_of,
)
from pp_hostd.kube.signing_request import REQUESTS
from pp_hostd.leader.access.granted import ONLY_POISON_PILL, GrantedFlow
from pp_hostd.model.identities import LEADERS, AgentsUse
from pp_hostd.model.keys import LEADER, NAMESPACE, ROSTER
from pp_hostd.model.lease import LEASE
from pp_hostd.model.renewal import SIGNER

RBAC_GROUP = "rbac.authorization.k8s.io"
READ = "get list watch"
HEALTH_CHECKS = "pp-hostd:health-checks"
_GATHERED_BY = (
    "cluster.x-k8s.io/aggregate-to-manager",  # Cluster API
    "rbac.ext-remediation/aggregate-to-ext-remediation",  # OpenShift, medik8s
)


def leader_roles(machines: str, flows: Collection[GrantedFlow] = ONLY_POISON_PILL) -> list[Json]:
    """For leaders of a cluster whose machines are of this kind (the setting api.machines), with these flows."""
    kind, more = MACHINES[machines][0], set(flows) - {GrantedFlow.POISON_PILL}
    everywhere = [
        _rule(NODES, f"{READ} create patch delete"),
        _sub_rule(NODES),  # Ready=Unknown of a Node that came back without conditions
        *([] if kind is NODES else [_rule(kind, f"{READ} patch delete" if more else f"{READ} patch")]),
        *([_rule(CAPI_CLUSTERS, READ)] if machines == "cluster-api" else []),  # whether they are paused
        *([_rule(BARE_METAL_HOSTS, f"{READ} patch")] if GrantedFlow.POWER_CYCLE in flows else []),
        *(_for_remediations(kind) if GrantedFlow.EXTERNAL_REMEDIATION in flows else []),
        _rule(PODS, "list delete"),
        _rule(VOLUME_ATTACHMENTS, "list delete"),
        _rule(EVENTS, "get create patch"),
        *_for_renewals(),
    ]
    at_home = [
        _rule(CONFIG_MAPS, "list watch create update delete"),
        _rule(CONFIG_MAPS, "get patch", LEADER),
        _rule(LEASES, "create"),  # which RBAC can't limit to a name
        _rule(LEASES, "get patch", LEASE),
    ]
    return [
        *_granted("leader", LEADERS, everywhere),
        *_granted("leader", LEADERS, at_home, NAMESPACE),
        *_granted("leader", LEADERS, [_rule(LEASES, "get")], KUBELET_LEASES),
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
    return [_rule(REQUESTS, "get list create"), _sub_rule(REQUESTS, "approval"), approve]


def _for_remediations(machines: Resource) -> list[Json]:
    """Of whichever kind the cluster serves; and the conditions of a Machine that is left to its owner."""
    kinds = [versions[0] for versions in REMEDIATIONS.values()]
    objects = [_rule(kind, f"{READ} patch") for kind in kinds]
    return [*objects, *(_sub_rule(kind) for kind in (*kinds, machines))]


def health_check_roles(flows: Collection[GrantedFlow]) -> list[Json]:
    """What health checks need to make our objects of our templates. Their own roles gather it by these labels.
    Where the flow is off it grants nothing, so that an install which leaves the flow out takes the rights away."""
    kinds = (POISON_PILL_REMEDIATIONS, PROPOSED_REMEDIATIONS) if GrantedFlow.EXTERNAL_REMEDIATION in flows else ()
    rules = [rule for kind in kinds for rule in (_rule(template_of(kind), READ), _rule(kind, f"{READ} create delete"))]
    metadata = {"name": HEALTH_CHECKS, "labels": dict.fromkeys(_GATHERED_BY, "true")}
    return [{"apiVersion": f"{RBAC_GROUP}/v1", "kind": "ClusterRole", "metadata": metadata, "rules": rules or None}]


def agent_roles(machines: str, use: AgentsUse) -> list[Json]:
    """For the agents of that cluster. Each reads every machine: peers ask about each other's."""
    at_home = [
        _rule(CONFIG_MAPS, "get"),  # the orders, and the backup of a node that is missing
        _rule(CONFIG_MAPS, "list watch", ROSTER),
    ]
    return [
        *_granted("agent", use.group, [_rule(MACHINES[machines][0], READ)]),
        *_granted("agent", use.group, at_home, NAMESPACE),
    ]


def _rule(kind: Resource, verbs: str, *names: str) -> Json:
    rule: Json = {"apiGroups": [kind.group], "resources": [kind.plural], "verbs": verbs.split()}
    return {**rule, "resourceNames": list(names)} if names else rule


def _sub_rule(kind: Resource, subresource: str = "status") -> Json:
    return {"apiGroups": [kind.group], "resources": [f"{kind.plural}/{subresource}"], "verbs": ["patch"]}


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
