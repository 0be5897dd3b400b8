"""The users of the embedded API, and their rights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pp_hostd.embedded import access
from pp_hostd.embedded.access import ANONYMOUS, Access, Action, Rule, User, load
from pp_hostd.embedded.status import StatusError
from pp_hostd.errors import UserError

READ_PODS = Rule(users=("reader",), groups=("team",), api_groups=("",), resources=("pods",), verbs=("get", "list"))
ACCESS = Access({"secret": User("reader")}, [READ_PODS])


def may(user: User, action: Action, access: Access = ACCESS) -> bool:
    try:
        access.check(user, action)
    except StatusError as refusal:
        assert (refusal.code, refusal.reason) == (403, "Forbidden")
        return False
    return True


def test_a_token_tells_the_user() -> None:
    assert ACCESS.user("Bearer secret", None) == User("reader")


def test_an_unknown_token_is_unauthorized() -> None:
    with pytest.raises(StatusError) as caught:
        ACCESS.user("Bearer wrong", None)
    assert caught.value.code == 401


def test_a_certificate_tells_user_and_groups() -> None:
    subject = ((("organizationName", "team"),), (("organizationName", "other"),), (("commonName", "jane"),))
    assert ACCESS.user("", {"subject": subject}) == User("jane", ("team", "other"))


def test_whoever_shows_nothing_is_anonymous_and_may_do_nothing() -> None:
    assert ACCESS.user("", None) == ANONYMOUS
    assert not may(ANONYMOUS, Action("get", "", "pods", name="x"))


@pytest.mark.parametrize("user", [User("reader"), User("jane", ("team",))])
def test_a_rule_is_for_its_users_and_groups(user: User) -> None:
    assert may(user, Action("get", "", "pods", name="x"))


@pytest.mark.parametrize(
    "action",
    [
        Action("delete", "", "pods", name="x"),
        Action("get", "", "nodes", name="x"),
        Action("get", "apps", "pods", name="x"),
        Action("get", "", "pods", "status", name="x"),
    ],
    ids=["another verb", "another resource", "another group", "a subresource"],
)
def test_a_rule_covers_nothing_else(action: Action) -> None:
    assert not may(User("reader"), action)


def test_a_rule_may_name_objects() -> None:
    access = Access({}, [Rule(("jane",), (), ("*",), ("*",), ("*",), ("roster",))])
    assert may(User("jane"), Action("patch", "", "configmaps", name="roster"), access)
    assert not may(User("jane"), Action("patch", "", "configmaps", name="control"), access)
    assert not may(User("jane"), Action("list", "", "configmaps"), access)


def test_masters_may_do_everything() -> None:
    assert may(User("x", ("system:masters",)), Action("delete", "", "nodes", name="x"))


NODE = User("system:node:a", ("system:nodes",))
LEASE = ("coordination.k8s.io", "leases", "", "kube-node-lease")


@pytest.mark.parametrize(
    ("action", "allowed"),
    [
        (Action("get", "", "nodes", name="a"), True),
        (Action("patch", "", "nodes", "status", name="a"), True),
        (Action("watch", "", "nodes", field_selector="metadata.name=a"), True),
        (Action("get", "", "nodes", name="b"), False),
        (Action("get", "", "nodes", name="b", field_selector="metadata.name=a"), False),
        (Action("list", "", "nodes"), False),
        (Action("list", "", "nodes", field_selector="metadata.name=b"), False),
        (Action("delete", "", "nodes", name="a"), False),
        (Action("update", *LEASE, "a"), True),
        (Action("delete", *LEASE, "a"), True),
        (Action("get", *LEASE, "b"), False),
        (Action("list", *LEASE), False),
        (Action("get", "coordination.k8s.io", "leases", "", "default", "a"), False),
        (Action("list", "", "pods", field_selector="spec.nodeName=a"), True),
        (Action("list", "", "pods"), False),
        (Action("create", "", "events", namespace="default"), True),
        (Action("list", "", "events"), False),
        (Action("get", "machine.openshift.io", "machines", "", "default", "a"), False),
        (Action("get", "", "configmaps", "", "default", "roster"), False),
    ],
)
def test_a_node_has_its_own_things_and_no_others(action: Action, allowed: bool) -> None:
    assert may(NODE, action) == allowed


@pytest.mark.parametrize("user", [User("system:node:a"), User("a", ("system:nodes",))])
def test_name_and_group_together_make_a_node(user: User) -> None:
    assert not may(user, Action("get", "", "nodes", name="a"))


def writes(action: Action, old: dict[str, Any], new: dict[str, Any]) -> bool:
    try:
        access.check_node_write("a", action, old, new)
    except StatusError as refusal:
        assert refusal.code == 403
        return False
    return True


def test_a_node_creates_itself_only() -> None:
    assert writes(Action("create", "", "nodes"), {}, {"metadata": {"name": "a"}})
    assert not writes(Action("create", "", "nodes"), {}, {"metadata": {"name": "b"}})
    assert not writes(Action("create", "", "nodes"), {}, {})


def test_a_node_leaves_its_taints_alone() -> None:
    tainted = {"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}}
    assert not writes(Action("patch", "", "nodes", name="a"), tainted, {"spec": {}})
    assert not writes(Action("update", "", "nodes", name="a"), {"spec": {}}, tainted)
    assert writes(Action("patch", "", "nodes", name="a"), tainted, {**tainted, "metadata": {"annotations": {"x": "y"}}})


def test_users_and_rules_come_from_a_file(tmp_path: Path) -> None:
    rule = {"users": ["jane"], "apiGroups": [""], "resources": ["nodes"], "verbs": ["get"], "resourceNames": ["a"]}
    user = {"name": "jane", "groups": [], "token": "secret"}
    path = tmp_path / "users"
    path.write_text(json.dumps({"users": [user], "rules": [rule]}))
    access = load(str(path))
    jane = access.user("bearer secret", None)
    assert may(jane, Action("get", "", "nodes", name="a"), access)
    assert not may(jane, Action("get", "", "nodes", name="b"), access)


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"users": [{}], "rules": []}', '{"users": [], "rules": [1]}', "\xff"]
)
def test_a_file_of_users_that_makes_no_sense_is_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "users"
    path.write_text(content, encoding="latin-1")
    with pytest.raises(UserError, match=str(path)):
        load(str(path))
