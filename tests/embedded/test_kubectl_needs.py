"""The requests by which kubectl finds its way, and what it is told where the embedded API can't follow."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pp_hostd.embedded.access import Access, User
from pp_hostd.embedded.api import APPLY_PATCH, STRATEGIC_PATCH, Api, Reply, Request
from pp_hostd.embedded.tables import WANTED
from pp_hostd.kube.resources import NODES, PODS
from tests.embedded.conftest import START_WALLCLOCK, VirtualTime, new_store

ADMIN, READER = User("admin", ("system:masters",)), User("reader")


@pytest.fixture
def api() -> Api:
    clock = VirtualTime()
    store = new_store(clock)
    ready = {"type": "Ready", "status": "Unknown"}
    status = {"conditions": [ready], "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}
    store.create(NODES, "", {"metadata": {"name": "w1"}, "spec": {"unschedulable": True}, "status": status})
    pod = {"metadata": {"name": "db-0"}, "spec": {"nodeName": "w1", "containers": [{"name": "db", "image": "db"}]}}
    store.create(PODS, "default", pod)
    clock.now = START_WALLCLOCK + 90
    return Api(store, Access({"admin": ADMIN, "reader": READER}, []))


def ask(
    api: Api, method: str, path: str, body: Any = None, *, kind: str = "", accept: str = "", user: str = "admin"
) -> tuple[int, Any]:
    headers = {"authorization": f"Bearer {user}", "content-type": kind, "accept": accept}
    raw = b"" if body is None else json.dumps(body).encode()
    reply = api.answer(Request(method, path, headers if user else {}, raw, None), lambda: None)
    assert isinstance(reply, Reply)
    return reply.status, json.loads(reply.body) if reply.body.startswith(b"{") else reply.body


def rows_of(api: Api, path: str) -> list[list[str]]:
    code, table = ask(api, "GET", path, accept=f"application/json;{WANTED},application/json")
    assert (code, table["kind"]) == (200, "Table")
    head = [each["name"] for each in table["columnDefinitions"]]
    return [head, *(row["cells"] for row in table["rows"])]


def test_every_group_leads_to_its_kinds_with_their_verbs(api: Api) -> None:
    _, groups = ask(api, "GET", "/apis")
    versions = [f"/apis/{each['groupVersion']}" for group in groups["groups"] for each in group["versions"]]
    listed = {each["name"]: each for path in ["/api/v1", *versions] for each in ask(api, "GET", path)[1]["resources"]}
    assert {"nodes", "pods", "pods/eviction", "leases", "nodehealthchecks", "nodehealthchecks/status"} <= set(listed)
    assert listed["nodehealthchecks"]["shortNames"] == ["nhc"]
    assert listed["nodes"]["namespaced"] is False
    assert "watch" in listed["pods"]["verbs"]


def test_the_server_says_for_each_kind_that_it_checks_fields_itself(api: Api) -> None:
    paths = ask(api, "GET", "/openapi/v3")[1]["paths"]
    _, document = ask(api, "GET", paths["api/v1"]["serverRelativeURL"])
    (patch,) = document["paths"]["/api/v1/nodes/%7Bname%7D"].values()
    assert patch["x-kubernetes-group-version-kind"] == {"group": "", "version": "v1", "kind": "Node"}
    assert patch["parameters"][0]["name"] == "fieldValidation"


@pytest.mark.parametrize(("user", "code"), [("admin", 200), ("reader", 200), ("", 403)])
def test_whoever_is_known_may_discover(api: Api, user: str, code: int) -> None:
    assert ask(api, "GET", "/apis", user=user)[0] == code


def test_a_table_of_nodes_shows_how_they_are(api: Api) -> None:
    assert rows_of(api, "/api/v1/nodes") == [
        ["Name", "Status", "Roles", "Version", "Age", "Internal-IP"],
        ["w1", "NotReady,SchedulingDisabled", "<none>", "<none>", "90s", "10.0.0.1"],
    ]


def test_a_table_of_one_pod_shows_where_it_is(api: Api) -> None:
    assert rows_of(api, "/api/v1/namespaces/default/pods/db-0") == [
        ["Name", "Ready", "Status", "Restarts", "Age", "IP", "Node"],
        ["db-0", "0/1", "Pending", "0", "90s", "<none>", "w1"],
    ]


def test_a_kind_without_columns_of_its_own_shows_name_and_age(api: Api) -> None:
    assert rows_of(api, "/api/v1/namespaces")[0] == ["Name", "Age"]


def test_who_wants_no_table_gets_objects(api: Api) -> None:
    assert ask(api, "GET", "/api/v1/nodes", accept="application/json")[1]["kind"] == "NodeList"


@pytest.mark.parametrize(
    ("patch", "code"),
    [({"spec": {"unschedulable": None}}, 200), ({"spec": {"taints": []}}, 415), ({"spec": {"$patch": "replace"}}, 415)],
)
def test_a_strategic_patch_is_taken_where_it_means_what_a_merge_patch_means(api: Api, patch: Any, code: int) -> None:
    found, answer = ask(api, "PATCH", "/api/v1/nodes/w1", patch, kind=STRATEGIC_PATCH)
    assert found == code
    assert code == 200 or "--type=merge" in answer["message"]


@pytest.mark.parametrize(
    ("method", "path", "code", "hint"),
    [
        ("PATCH", "/api/v1/nodes/w1", 415, "kubectl apply without --server-side"),
        ("GET", "/api/v1/namespaces/default/pods/db-0/log", 501, "runs no containers"),
        ("POST", "/api/v1/namespaces/default/pods/db-0/exec", 501, "runs no containers"),
    ],
)
def test_a_refusal_says_what_is_missing(api: Api, method: str, path: str, code: int, hint: str) -> None:
    found, answer = ask(api, method, path, {}, kind=APPLY_PATCH)
    assert (found, answer["kind"]) == (code, "Status")
    assert hint in answer["message"]
