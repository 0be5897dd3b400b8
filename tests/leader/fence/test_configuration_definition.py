"""The definition of NodeRemedyConfiguration: the real API takes what the leader reads, and says what is wrong."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
import yaml

from pp_hostd.kube.resources import NODE_FENCES, NODE_REMEDY_CONFIGURATIONS
from pp_hostd.leader.remedies.node_fence.configuration import Configuration, RemedyRules, parse_configuration
from pp_hostd.leader.remedies.node_fence.fence import NodeFence, Status, Step, parse_fence
from pp_hostd.model.record import Unreadable
from tests.harness.build import binaries
from tests.harness.controlplane import RealCluster
from tests.harness.eventually import HANGS_SECONDS
from tests.leader.access.attempts import Attempt, World
from tests.leader.fence.test_configuration import PROPOSED, THRESHOLD, container, parsed, remedy, threshold

Json = dict[str, Any]


@pytest.fixture(scope="module")
def world(real_cluster: RealCluster) -> Iterator[World]:
    with closing(World(real_cluster)) as world:
        yield world


def stored(world: World, spec: Json) -> tuple[str, RemedyRules | Unreadable | None]:
    """The message if the API refuses it; else what the leader reads of it as the API would store it."""
    body = {"metadata": {"generateName": "a-"}, "spec": spec}
    reply = world.make(Attempt("create", NODE_REMEDY_CONFIGURATIONS, "", body), dry=True)
    assert reply.status_code in (201, 422), reply.text
    if reply.status_code == 422:
        return str(reply.json()["message"]), None
    made = reply.json()
    found = parse_configuration({**made, "metadata": {**made["metadata"], "resourceVersion": "1"}})
    assert isinstance(found, Configuration), found
    return "", found.rules


ADMITTED: dict[str, Json] = {
    "the proposal's": yaml.safe_load(PROPOSED),
    "a text": {**threshold(), "nodeSelector": "type=compute,zone=a"},
    "labels": {**threshold(), "nodeSelector": {"matchLabels": {"a": "b"}}},
    "a boolean": threshold(nodeConditionStatus=True),
    "a ladder of maps": threshold(
        remedy1={"name": "a", "period": "3m", "clean-resource": True}, remedy2={"name": "b"}, recovery={"name": "c"}
    ),
    "a pod": container(env=["token", {"name": "A", "value": "b"}], configmaps=["m"], securityContext={"runAsUser": 1}),
    "storage": remedy(fences="storage", storage=["fast"]),
    "power": remedy(fences="power", timeoutSeconds=60),
}


@pytest.mark.parametrize("spec", ADMITTED.values(), ids=ADMITTED)
def test_the_api_takes_it_and_keeps_all_that_the_leader_reads(world: World, spec: Json) -> None:
    told, rules = stored(world, spec)
    assert told == ""
    assert isinstance(rules, RemedyRules)
    assert rules == parsed(spec)


REFUSED: dict[str, tuple[Json, str]] = {
    "no thresholds": ({}, "spec.thresholdConfigs: Required value"),
    "empty": ({"thresholdConfigs": []}, "should have at least 1 items"),
    "no status": (
        {"thresholdConfigs": [{key: value for key, value in THRESHOLD.items() if key != "nodeConditionStatus"}]},
        "nodeConditionStatus: Required value",
    ),
    "another status": (threshold(nodeConditionStatus="No"), "nodeConditionStatus: Unsupported value"),
    "no duration": (threshold(nodeConditionPeriod="5"), "it is not a duration like 300s, 5m or 1h30m"),
    "no pod": ({**threshold(), "remedyConfigs": [{"name": "a"}]}, "podTemplate: Required value"),
    "no containers": (remedy(podTemplate={"spec": {}}), "containers: Required value"),
    "no image": (remedy(podTemplate={"spec": {"containers": [{"name": "a"}]}}), "image: Required value"),
    "two of a name": ({**threshold(), "remedyConfigs": remedy()["remedyConfigs"] * 2}, "Duplicate value"),
    "no storage": (remedy(fences="storage"), "storage is needed for fences: storage, and allowed for it alone"),
    "storage": (remedy(storage=["a"]), "storage is needed for fences: storage, and allowed for it alone"),
    "another fence": (remedy(fences="network"), "fences: Unsupported value"),
    "no time": (remedy(timeoutSeconds=0), "greater than or equal to 1"),
}


@pytest.mark.parametrize(("spec", "told"), REFUSED.values(), ids=REFUSED)
def test_api_and_leader_refuse_it_and_the_api_says_why(world: World, spec: Json, told: str) -> None:
    assert told in stored(world, spec)[0]
    assert isinstance(parsed(spec), Unreadable)


def test_a_typo_reaches_the_leader_which_refuses_it(world: World) -> None:
    """If the API dropped it, the node's own fence configuration would be carried out instead."""
    told, rules = stored(world, threshold(remdy1={"name": "a"}))
    assert told == ""
    assert isinstance(rules, Unreadable) and "remdy1" in str(rules)


def test_kubectl_shows_what_matters_under_the_short_name(world: World) -> None:
    body = {"metadata": {"name": "shown"}, "spec": {**threshold(), "nodeSelector": "pool=none"}}
    world.create(NODE_REMEDY_CONFIGURATIONS, "", body)
    allowed = {"type": "FencingAllowed", "status": "False", "reason": "TooManyNotResponding"}
    status = {"status": {"selectedNodes": 7, "matchingNodes": 3, "conditions": [allowed]}}
    assert world.make(Attempt("patch", NODE_REMEDY_CONFIGURATIONS, "shown", status, subresource="status")).ok
    kubectl = [str(binaries() / "kubectl"), "--kubeconfig", str(world.cluster.kubeconfig()), "get", "nrc", "shown"]
    done = subprocess.run(kubectl, capture_output=True, text=True, timeout=HANGS_SECONDS, check=True)
    head, row = done.stdout.splitlines()
    assert head.split() == ["NAME", "NODES", "MATCHING", "FENCING", "AGE"]
    assert row.split()[:4] == ["shown", "7", "3", "TooManyNotResponding"]
    assert world.make(Attempt("delete", NODE_REMEDY_CONFIGURATIONS, "shown")).ok


def test_a_person_need_only_name_the_node_of_a_fence_and_names_it_right(world: World) -> None:
    made = {"metadata": {"name": "node-fence-a"}, "node": "a"}
    reply = world.make(Attempt("create", NODE_FENCES, "", made), dry=True)
    assert reply.status_code == 201, reply.text
    found = reply.json()
    fence = parse_fence({**found, "metadata": {**found["metadata"], "resourceVersion": "1"}})
    assert isinstance(fence, NodeFence)
    assert (fence.progress.step, fence.progress.status) == (Step.ISOLATION, Status.NEW)
    refused = world.make(Attempt("create", NODE_FENCES, "", {**made, "node": "b"}), dry=True)
    assert "the name of a NodeFence is node-fence- and the name of its node" in refused.json()["message"]
