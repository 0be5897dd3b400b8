"""Who speaks to the API: the users and groups by which rights and policies know leaders and agents."""

from __future__ import annotations

import enum

LEADER_USER = "pp-hostd:leader"
LEADERS = "pp-hostd:leaders"
AGENTS = "pp-hostd:agents"
NODES = "system:nodes"
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
        return AGENTS if self is AgentsUse.CERTIFICATE else NODES
