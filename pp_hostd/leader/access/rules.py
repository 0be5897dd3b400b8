"""The rules of RBAC of which roles are made."""

from __future__ import annotations

from pp_hostd.kube.resources import Resource
from pp_hostd.leader.steps.api import Json

RBAC_GROUP = "rbac.authorization.k8s.io"
READ = "get list watch"


def rule(kind: Resource, verbs: str, *names: str) -> Json:
    rule: Json = {"apiGroups": [kind.group], "resources": [kind.plural], "verbs": verbs.split()}
    return {**rule, "resourceNames": list(names)} if names else rule


def sub_rule(kind: Resource, subresource: str = "status") -> Json:
    return {"apiGroups": [kind.group], "resources": [f"{kind.plural}/{subresource}"], "verbs": ["patch"]}
