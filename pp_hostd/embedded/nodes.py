"""What a node may do with its own credentials, `system:node:X` in `system:nodes`: the essence of the node authorizer.

They are good for its own Node, its own Lease, the list of its own pods, and for writing events. That a node changes no
other Node, no other Lease and not its own taints is checked against what it wants to write, all else before it is read.
"""

from __future__ import annotations

from pp_hostd.embedded.kinds import Object, at
from pp_hostd.embedded.rules import Action
from pp_hostd.embedded.status import forbidden


def may(node: str, action: Action) -> tuple[bool, str]:
    """Whether the node may, and if not, why."""
    reads, writes = action.verb in ("get", "list", "watch"), action.verb in ("create", "update", "patch")
    selected = action.field_selector.split(",")
    if (action.group, action.resource) == ("", "nodes"):
        own = action.name == node or (not action.name and f"metadata.name={node}" in selected)
        return writes or (reads and own), f"node '{node}' can only read its own Node object" if reads else ""
    if (action.group, action.resource) == ("coordination.k8s.io", "leases"):
        one = action.name == node and action.verb in ("get", "update", "patch", "delete")
        mine = action.namespace == "kube-node-lease" and (one or action.verb == "create")
        return mine, "can only access node lease with the same name as the requesting node"
    if (action.group, action.resource) == ("", "pods"):
        own = action.verb in ("list", "watch") and f"spec.nodeName={node}" in selected
        return own, "can only list/watch pods with spec.nodeName field selector"
    return (action.group, action.what) == ("", "events") and writes, ""


def check_write(node: str, action: Action, old: Object, new: Object) -> None:
    """A node writes its own Node and Lease only, and leaves its taints to others."""
    name = action.name or at(new, "metadata.name")
    if action.resource in ("nodes", "leases") and name != node:
        why = f'node "{node}" is not allowed to modify {action.resource} "{name}"'
        raise forbidden(action.group, action.resource, action.name, why)
    if action.what == "nodes" and old and (at(old, "spec.taints") or []) != (at(new, "spec.taints") or []):
        raise forbidden("", "nodes", action.name, f'node "{node}" is not allowed to modify taints')
