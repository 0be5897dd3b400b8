"""The marks of pp-hostd on Nodes: a node's credential changes what its agent writes, and no other mark.

Each attempt is made twice: by an agent with the rights that `install` gives, and by a node with all rights that there
are and no NodeRestriction, which only the policy can stop.
"""

from __future__ import annotations

import itertools

import pytest

from pp_hostd.kube.client import Json
from pp_hostd.kube.resources import NODES
from pp_hostd.leader.access.policies import MACHINE_ANNOTATIONS
from pp_hostd.model.keys import (
    AGENT,
    AGENT_INFO,
    CONDEMNATION_ID,
    CONDEMNED,
    CONFIRMED_DEAD,
    CORDONED,
    EXTERNAL_REMEDIATION,
    FREED,
    FREEING,
    OUT_OF_SERVICE,
    PAUSED_NODE,
    SUSPECTS,
)
from tests.leader.access.attempts import Attempt, World
from tests.leader.access.people import LEADER, agent, almighty

ANNOTATIONS = [
    AGENT,
    AGENT_INFO,
    SUSPECTS,
    FREEING,
    FREED,
    CORDONED,
    CONFIRMED_DEAD,
    PAUSED_NODE,
    EXTERNAL_REMEDIATION,
    CONDEMNATION_ID,
    "pp-hostd.io/to-come",
    *MACHINE_ANNOTATIONS,
]
TAINT = {"key": CONDEMNED, "value": "7", "effect": "NoExecute"}
FREEING_TAINT = {"key": OUT_OF_SERVICE, "value": "nodeshutdown", "effect": "NoExecute"}
FOREIGN_TAINT = {"key": "example.com/dedicated", "effect": "NoSchedule"}
BARE, MARKED = "bare", "marked"


def annotation(key: str, value: str | None) -> Json:
    return {"metadata": {"annotations": {key: value}}}


def label(value: str | None) -> Json:
    return {"metadata": {"labels": {CONDEMNED: value}}}


def taints(*each: Json) -> Json:
    return {"spec": {"taints": list(each)}}


SMUGGLED: Json = {"metadata": {"annotations": {AGENT: "8", FREEING: "8"}}}
MOVED: Json = {"metadata": {"annotations": {FREEING: None}, "labels": {FREEING: "7"}}}
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "7"}
OWNED: Json = {"metadata": {"ownerReferences": [OWNER]}}
HELD: Json = {"metadata": {"finalizers": ["example.com/held"]}}
IN_METADATA = {
    BARE: [*(annotation(key, "7") for key in ANNOTATIONS), label(""), SMUGGLED, OWNED, HELD],
    MARKED: [annotation(key, value) for key in ANNOTATIONS for value in (None, "8")]
    + [label(None), label("other"), SMUGGLED, MOVED, OWNED, HELD],
}
IN_SPEC = {
    BARE: [taints(TAINT), taints({**TAINT, "effect": "NoSchedule"}), taints(FREEING_TAINT)],
    MARKED: [
        taints(),
        taints(FOREIGN_TAINT),
        taints({**TAINT, "value": "8"}),
        taints({**TAINT, "effect": "NoSchedule"}),
        taints(TAINT, FREEING_TAINT),
        {"spec": {"unschedulable": None}},
    ],
}
ATTEMPTS = [
    Attempt(verb, NODES, node, change, subresource=subresource)
    for node in (BARE, MARKED)
    for verb in ("patch", "update")
    for subresource, changes in ((None, IN_METADATA[node] + IN_SPEC[node]), ("status", IN_METADATA[node]))
    for change in changes
]
FRESH = [*IN_METADATA[BARE], *IN_SPEC[BARE]]


@pytest.fixture(scope="module", autouse=True)
def nodes(world: World) -> None:
    world.create(NODES, BARE, {"metadata": {"name": BARE}})
    marks = {"annotations": dict.fromkeys(ANNOTATIONS, "7"), "labels": {CONDEMNED: ""}}
    world.create(
        NODES, MARKED, {"metadata": {"name": MARKED, **marks}, "spec": {"taints": [TAINT], "unschedulable": True}}
    )


def is_of_the_agent(attempt: Attempt, who: str) -> bool:
    changed = attempt.body.get("metadata", {}).get("annotations", {}).keys()
    return attempt.name == who and changed in ({AGENT}, {AGENT_INFO}, {SUSPECTS})


REFUSED = [
    (attempt, who) for attempt, who in itertools.product(ATTEMPTS, (BARE, MARKED)) if not is_of_the_agent(attempt, who)
]


@pytest.mark.parametrize(("attempt", "who"), REFUSED, ids=str)
def test_no_node_changes_marks_on_its_own_node_or_on_another(world: World, attempt: Attempt, who: str) -> None:
    before = world.read(NODES, attempt.name)
    assert world.make(attempt, agent(who)).status_code == 403
    reply = world.make(attempt, almighty(who))
    assert reply.status_code == 403
    assert "'nodes.pp-hostd.io'" in reply.json()["message"]
    assert world.read(NODES, attempt.name) == before


@pytest.mark.parametrize("who", [BARE, MARKED])
@pytest.mark.parametrize("verb", ["patch", "update"])
@pytest.mark.parametrize("subresource", [None, "status"])
@pytest.mark.parametrize("key", [AGENT, AGENT_INFO, SUSPECTS])
@pytest.mark.parametrize("value", ["a promise", None])
def test_every_node_changes_what_its_own_agent_writes(
    world: World, verb: str, subresource: str | None, who: str, key: str, value: str | None
) -> None:
    attempt = Attempt(verb, NODES, who, annotation(key, value), subresource=subresource)
    for credential in (agent(who), almighty(who)):
        reply = world.make(attempt, credential, dry=True)
        assert reply.status_code == 200
        assert reply.json()["metadata"].get("annotations", {}).get(key) == value


def test_a_promise_is_really_stored_by_the_agent_of_a_node(world: World) -> None:
    world.create(NODES, "promising", {"metadata": {"name": "promising"}})
    assert world.make(Attempt("patch", NODES, "promising", annotation(AGENT, "armed")), agent("promising")).ok
    assert world.read(NODES, "promising")["metadata"]["annotations"] == {AGENT: "armed"}


@pytest.mark.parametrize("change", FRESH, ids=str)
@pytest.mark.parametrize("name", ["fresh", "anothers"])
def test_a_node_made_afresh_bears_no_marks_but_those_of_its_own_agent(world: World, change: Json, name: str) -> None:
    attempt = Attempt("create", NODES, name, {**change, "metadata": {**change.get("metadata", {}), "name": name}})
    allowed = is_of_the_agent(attempt, "fresh")
    assert world.make(attempt, agent("fresh"), dry=True).status_code == (201 if allowed else 403)
    reply = world.make(attempt, almighty("fresh"), dry=True)
    assert reply.status_code == (201 if allowed else 403)
    assert allowed or "'nodes.pp-hostd.io'" in reply.json()["message"]


@pytest.mark.parametrize("who", [BARE, MARKED])
@pytest.mark.parametrize("verb", ["delete", "deletecollection"])
def test_no_node_deletes_a_node(world: World, verb: str, who: str) -> None:
    for name in (BARE, MARKED):
        assert world.make(Attempt(verb, NODES, name), agent(who)).status_code == 403
        reply = world.make(Attempt(verb, NODES, name), almighty(who))
        assert reply.status_code == 403
        assert "deletes no Node" in reply.json()["message"]


def test_whoever_is_in_the_group_of_agents_is_bound_by_the_policies_under_any_name(world: World) -> None:
    stranger = (BARE, ("system:masters", "pp-hostd:agents"))
    reply = world.make(Attempt("patch", NODES, BARE, annotation(AGENT, "7")), stranger)
    assert reply.status_code == 403
    assert "'nodes.pp-hostd.io'" in reply.json()["message"]


READY = {"status": {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-03-01T12:00:00Z"}]}}
ATTACH = annotation("volumes.kubernetes.io/controller-managed-attach-detach", "true")
OF_KUBELETS = [
    Attempt(verb, NODES, node, change, subresource=subresource)
    for node in (BARE, MARKED)
    for verb in ("patch", "update")
    for subresource, change in (("status", READY), ("status", ATTACH), (None, ATTACH))
]


@pytest.mark.parametrize("attempt", OF_KUBELETS, ids=str)
def test_a_kubelet_keeps_up_its_own_node(world: World, attempt: Attempt) -> None:
    assert world.make(attempt, (f"system:node:{attempt.name}", ("system:nodes",)), dry=True).status_code == 200


@pytest.mark.parametrize("cordoned", [True, None])
def test_a_node_that_is_not_condemned_may_cordon_itself(world: World, cordoned: bool | None) -> None:
    world.create(NODES, "leaving", {"metadata": {"name": "leaving"}, "spec": {"unschedulable": not cordoned}})
    attempt = Attempt("patch", NODES, "leaving", {"spec": {"unschedulable": cordoned}})
    assert world.make(attempt, agent("leaving")).status_code == 200


def test_a_kubelet_makes_its_node_afresh(world: World) -> None:
    kubelet = ("system:node:again", ("system:nodes",))
    labels = {"kubernetes.io/hostname": "again"}
    node = {"metadata": {"name": "again", "labels": labels}, **READY, **taints(FOREIGN_TAINT)}
    assert world.make(Attempt("create", NODES, "again", node), kubelet).status_code == 201
    world.make(Attempt("delete", NODES, "again"))
    assert world.make(Attempt("create", NODES, "again", node), kubelet).status_code == 201


def test_as_many_annotations_as_a_node_can_have_do_not_stop_its_kubelet(world: World) -> None:
    crowd = {f"example.com/{number}": "" for number in range(12000)}
    world.create(NODES, "crowded", {"metadata": {"name": "crowded", "annotations": crowd}})
    attempt = Attempt("patch", NODES, "crowded", READY, subresource="status")
    assert world.make(attempt, ("system:node:crowded", ("system:nodes",))).status_code == 200


WITHOUT_PUT = [each for each in ATTEMPTS if each.verb == "patch" and each.subresource is None]


@pytest.mark.parametrize("attempt", WITHOUT_PUT, ids=str)
def test_leaders_and_people_change_any_mark(world: World, attempt: Attempt) -> None:
    assert world.make(attempt, LEADER, dry=True).status_code == 200
    assert world.make(attempt, dry=True).status_code == 200
