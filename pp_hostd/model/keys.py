"""The names that pp-hostd has in the cluster: namespace, annotations, labels, taints, ConfigMaps, users and groups."""

from __future__ import annotations

import enum

NAMESPACE = "pp-hostd"
PREFIX = "pp-hostd.io/"

# On the Machine (or, in clusters without machines, on the Node).
EXTERNAL_REMEDIATION = "host.metal3.io/external-remediation"
CONDEMNATION_ID = PREFIX + "condemnation-id"
CONDEMNED = PREFIX + "condemned"
"""The label of a condemned machine, and the key of the NoExecute taint on its Node."""

FLOW = PREFIX + "flow"
"""Which flow a request for this machine starts, whatever else would."""
REQUESTED_BY = PREFIX + "requested-by"
"""The remediation object that has this machine remedied."""
HOST = "metal3.io/BareMetalHost"
CLUSTER_NAME = "cluster.x-k8s.io/cluster-name"
"""A label: the Cluster to which Cluster API's Machine belongs, in the same namespace."""
PAUSED_MACHINE = "cluster.x-k8s.io/paused"
SKIP_REMEDIATION = "cluster.x-k8s.io/skip-remediation"
"""Cluster API's own words: nobody is to work on this Machine, or on any of this Cluster; nobody is to remedy it. Any
value counts."""

# On the BareMetalHost.
REBOOT = "reboot.metal3.io"
"""A host with any `reboot.metal3.io/<suffix>` is kept off until the last of them is gone."""
BOOTING = PREFIX + "booting"
"""The power-off request that the leader took back last, while it waits until the host of a kept Node is back."""
PAUSED_HOST = "baremetalhost.metal3.io/paused"
DETACHED_HOST = "baremetalhost.metal3.io/detached"

# On the Node.
AGENT = PREFIX + "agent"
AGENT_INFO = PREFIX + "agent-info"
"""The agent's version and its certificate's end, for people: no rule rests on it."""
SUSPECTS = PREFIX + "suspects"
"""The hosts that this Node's agent can't reach."""
FREEING = PREFIX + "freeing"
FENCED_BOOT = PREFIX + "fenced-boot"
"""On a Node whose workloads were freed though its host may live on: the boot that must not get its storage back."""
FREED = PREFIX + "freed"
REQUESTED_AGAIN = PREFIX + "requested-again"
"""On a recreated Node: the condemnation for which the one before it was deleted."""
REPLACES = PREFIX + "replaces"
"""On a Node that somebody else has replaced: the uid of the one whose backup has completed it."""
CORDONED = PREFIX + "cordoned"
"""The leader cordoned the Node, which was schedulable before."""
CONFIRMED_DEAD = PREFIX + "confirmed-dead"
REMEDIATION_TIMESTAMP = PREFIX + "remediation-timestamp"
REMEDIATION_PODNAME = PREFIX + "remediation-podname"
"""The last Job that the leader has run for this Node, whose pods bear its name, and when it was made."""
PAUSED_NODE = PREFIX + "paused"
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
UNREACHABLE = PREFIX + "Unreachable"
"""A condition of the Node, which the leader keeps: no agent that was asked reaches its host."""
PROTECTED = PREFIX + "Protected"
"""A condition of the Node, which the leader keeps: the host is bound by a promise to reset itself."""
RECREATED = "RecreatedByPpHostd"
"""The reason of Ready=Unknown on a Node that the leader has recreated, until its kubelet reports."""

# ConfigMaps in our namespace, and the keys of their data.
ROSTER = "roster"
CONTROL = "control"
ENROLLED = "enrolled"
LEADER = "leader"
BUDGET = "budget"
STATUS = "status"
HISTORY = "history"
PAUSED = "paused"
MAINTENANCE = "maintenance"
GRANT = "more-resets"
BACKUP_KEY = "node"
EARLY_BACKUP_KEY = "node-before"
"""Of a backup that licenses nothing: a leader that does not know this key takes the backup for unreadable."""
STORED_AFTER = "stored-after"
"""The version of the backup before this one, so that no two versions have the same content."""


def backup_name(node: str) -> str:
    """The ConfigMap that holds the backup of this Node."""
    return f"backup-{node}"


def is_ours(key: str) -> bool:
    """Whether an annotation, label or taint speaks of pp-hostd's own work, and so is never restored (rule 12)."""
    return key.startswith(PREFIX) or key == EXTERNAL_REMEDIATION


LEADER_USER = "pp-hostd:leader"
LEADERS = "pp-hostd:leaders"
AGENTS = "pp-hostd:agents"
NODES_GROUP = "system:nodes"
NODE_USER = "system:node:"
"""With the node's name behind it: kubelets are called so, and so are agents, which gives them their own Node."""


def enrolment(user: str) -> str:
    """The command with which an administrator gives this user another certificate."""
    node = user[len(NODE_USER) :] if user.startswith(NODE_USER) else "NODE"
    return "pp-leader enroll --leader" if user == LEADER_USER else f"pp-leader enroll {node}"


class AgentsUse(enum.Enum):
    """Which credential the agents show."""

    CERTIFICATE = "certificate"
    """One of their own, in the group AGENTS."""
    KUBELET = "kubelet"
    """The kubelet's."""

    @property
    def group(self) -> str:
        """The group that is given the agents' rights."""
        return AGENTS if self is AgentsUse.CERTIFICATE else NODES_GROUP
