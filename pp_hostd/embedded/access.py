"""Rights: users by token or certificate, simple rules, and what a node may do with its own credentials."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pp_hostd.embedded.discovery import is_discovery
from pp_hostd.embedded.kinds import Object, at
from pp_hostd.embedded.status import StatusError, forbidden
from pp_hostd.errors import UserError
from pp_hostd.files import read_whole
from pp_hostd.frozen import frozen


@frozen
class User:
    """A name and the groups it is in."""

    name: str
    groups: tuple[str, ...] = ()

    @property
    def node(self) -> str:
        """The node whose credentials these are; empty for everyone else."""
        prefix = "system:node:"
        return self.name[len(prefix) :] if "system:nodes" in self.groups and self.name.startswith(prefix) else ""


ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))


@frozen
class Action:
    """A request as rules see it."""

    verb: str
    group: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    field_selector: str = ""

    @property
    def what(self) -> str:
        """The resource, with its subresource if one is meant."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


@frozen
class Rule:
    """Rights of some users and groups; `*` stands for every verb, API group or resource; no names: every object."""

    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    def allows(self, user: User, action: Action) -> bool:
        """Whether this rule is for that user and covers that action."""
        if user.name not in self.users and not set(user.groups) & set(self.groups):
            return False
        wanted = ((self.verbs, action.verb), (self.api_groups, action.group), (self.resources, action.what))
        return all(one in some or "*" in some for some, one in wanted) and (not self.names or action.name in self.names)


def node_may(node: str, action: Action) -> tuple[bool, str]:
    """Tells whether the node may do this; if not, also why."""
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


def check_node_write(node: str, action: Action, old: Object, new: Object) -> None:
    """A node writes its own Node and Lease only, and leaves its taints to others."""
    name = action.name or at(new, "metadata.name")
    if action.resource in ("nodes", "leases") and name != node:
        why = f'node "{node}" is not allowed to modify {action.resource} "{name}"'
        raise forbidden(action.group, action.resource, action.name, why)
    if action.what == "nodes" and old and (at(old, "spec.taints") or []) != (at(new, "spec.taints") or []):
        raise forbidden("", "nodes", action.name, f'node "{node}" is not allowed to modify taints')


_RULE_KEYS = ("users", "groups", "apiGroups", "resources", "verbs", "resourceNames")
_LIMIT_BYTES = 1024 * 1024
_EVERYONE_READS = ("/healthz", "/livez", "/readyz")


class Access:
    """The users and their rules."""

    def __init__(self, tokens: Mapping[str, User], rules: Sequence[Rule]) -> None:
        self._tokens = tokens
        self._rules = rules

    def user(self, authorization: str, certificate: Mapping[str, Any] | None) -> User:
        """Returns the user, by the certificate or else by the token; refuses an unknown token."""
        if certificate:
            subject = [pair for part in certificate["subject"] for pair in part]
            groups = tuple(value for key, value in subject if key == "organizationName")
            name = dict(subject).get("commonName")
            return User(name, groups) if name else ANONYMOUS
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer":
            return ANONYMOUS
        if token not in self._tokens:
            raise StatusError(401, "Unauthorized", "Unauthorized")
        return self._tokens[token]

    def check(self, user: User, action: Action) -> None:
        """Refuse what is not allowed."""
        if "system:masters" in user.groups or any(rule.allows(user, action) for rule in self._rules):
            return
        allowed, reason = node_may(user.node, action) if user.node else (False, "")
        if allowed:
            return
        scope = f'in the namespace "{action.namespace}"' if action.namespace else "at the cluster scope"
        what = f'cannot {action.verb} resource "{action.what}" in API group "{action.group}" {scope}'
        why = f'User "{user.name}" {what}' + (f": {reason}" if reason else "")
        raise forbidden(action.group, action.resource, action.name, why)

    def check_path(self, user: User, path: str) -> None:
        """The same for paths that are no resources."""
        if "system:masters" in user.groups or path in _EVERYONE_READS:
            return
        if user == ANONYMOUS or not is_discovery(path):
            raise StatusError(403, "Forbidden", f'forbidden: User "{user.name}" cannot get path "{path}"', {})


def load(path: str) -> Access:
    """Read users and rules from a JSON file; rules are spelt as in a ClusterRole."""
    text = read_whole(path, _LIMIT_BYTES)
    try:
        read = json.loads(text)
        tokens = {user["token"]: User(user["name"], tuple(user["groups"])) for user in read["users"]}
        rules = [Rule(*(tuple(rule.get(key, ())) for key in _RULE_KEYS)) for rule in read["rules"]]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        shape = '{"users": [{"name": "", "groups": [], "token": ""}], "rules": [{"users": [], "verbs": []}]}'
        hint = f"It must be JSON such as {shape}; a rule's keys: {', '.join(_RULE_KEYS)}."
        raise UserError(f"{path}: is no file of users: {type(error).__name__}: {error}", hint) from None
    return Access(tokens, rules)
