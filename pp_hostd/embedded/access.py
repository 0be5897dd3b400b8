"""Who may do what: users by token or certificate, and simple rules. What nodes may do beside: see `nodes`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pp_hostd.embedded import nodes
from pp_hostd.embedded.rules import ANONYMOUS, Action, Rule, User
from pp_hostd.embedded.status import StatusError, forbidden
from pp_hostd.errors import UserError
from pp_hostd.files import read_whole

_RULE_KEYS = ("users", "groups", "apiGroups", "resources", "verbs", "resourceNames")
_LIMIT_BYTES = 1024 * 1024
_EVERYONE_READS = ("/healthz", "/livez", "/readyz")


class Access:
    """The users and their rules."""

    def __init__(self, tokens: Mapping[str, User], rules: Sequence[Rule]) -> None:
        self._tokens = tokens
        self._rules = rules

    def user(self, authorization: str, certificate: Mapping[str, Any] | None) -> User:
        """Who that is, by the certificate or else by the token; an unknown token is refused."""
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
        allowed, reason = nodes.may(user.node, action) if user.node else (False, "")
        if allowed:
            return
        scope = f'in the namespace "{action.namespace}"' if action.namespace else "at the cluster scope"
        what = f'cannot {action.verb} resource "{action.what}" in API group "{action.group}" {scope}'
        why = f'User "{user.name}" {what}' + (f": {reason}" if reason else "")
        raise forbidden(action.group, action.resource, action.name, why)

    def check_path(self, user: User, path: str) -> None:
        """The same for paths that are no resources."""
        if "system:masters" not in user.groups and path not in _EVERYONE_READS:
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
