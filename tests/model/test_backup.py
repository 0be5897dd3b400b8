"""The backup of a Node: what is restored, and what never is."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pp_hostd.model.backup import Backup, back_up, parse_stored_backup
from pp_hostd.model.condemnation import NotRequested, parse_condemnation
from pp_hostd.model.keys import AGENT, BACKUP_KEY, CONDEMNATION_ID, CONDEMNED, CORDONED, EXTERNAL_REMEDIATION, FREEING
from pp_hostd.model.node import condemned_taint
from pp_hostd.model.record import Unreadable
from tests.model import strategies as draw

DEDICATED = {"key": "example.com/dedicated", "value": "db", "effect": "NoSchedule"}
CONTROL_PLANE = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "name": "worker-1",
        "uid": "7d3b1c1e-6f0b-4a8e-9f57-0c4f1b2a3d4e",
        "resourceVersion": "4711",
        "creationTimestamp": "2026-03-01T12:00:00Z",
        "generation": 3,
        "managedFields": [{"manager": "kubelet"}],
        "labels": {"kubernetes.io/hostname": "worker-1", CONDEMNED: ""},
        "annotations": {
            "volumes.kubernetes.io/controller-managed-attach-detach": "true",
            AGENT: '{"v":1,"state":"withdrawn","boot":"b"}',
            FREEING: "8",
            CORDONED: "8",
            EXTERNAL_REMEDIATION: "2026-03-01T12:00:00Z",
            CONDEMNATION_ID: "8",
        },
    },
    "spec": {
        "podCIDR": "10.244.1.0/24",
        "podCIDRs": ["10.244.1.0/24", "fd00:10:244:1::/64"],
        "providerID": "metal3://worker-1",
        "unschedulable": True,
        "taints": [
            DEDICATED,
            CONTROL_PLANE,
            condemned_taint(8),
            {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
            {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"},
            {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"},
        ],
    },
    "status": {"nodeInfo": {"bootID": "b"}, "conditions": [{"type": "Ready", "status": "Unknown"}]},
}
RESTORED: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "name": "worker-1",
        "labels": {"kubernetes.io/hostname": "worker-1"},
        "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
    },
    "spec": {
        "podCIDR": "10.244.1.0/24",
        "podCIDRs": ["10.244.1.0/24", "fd00:10:244:1::/64"],
        "providerID": "metal3://worker-1",
        "taints": [DEDICATED, CONTROL_PLANE],
    },
}


def backed_up(node: object) -> Backup:
    backup = back_up(node, 8)
    assert isinstance(backup, Backup)
    return backup


def test_a_node_comes_back_schedulable_with_all_that_was_not_ours_and_without_status_or_identity() -> None:
    assert backed_up(NODE).node() == RESTORED


def test_the_backup_says_which_node_it_was_and_for_which_condemnation() -> None:
    backup = backed_up(NODE)
    assert (backup.name, backup.uid, backup.id) == ("worker-1", NODE["metadata"]["uid"], 8)


def test_a_node_with_nothing_in_it_can_be_backed_up() -> None:
    backup = backed_up({"metadata": {"name": "worker-1", "uid": "u"}})
    metadata = {"name": "worker-1", "labels": {}, "annotations": {}}
    assert backup.node() == {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {}}


@draw.examples
@given(draw.texts, draw.texts, draw.specs, st.booleans())
def test_nothing_foreign_is_lost_and_the_restored_node_is_not_condemned(
    labels: dict[str, str], annotations: dict[str, str], spec: dict[str, Any], cordoned: bool
) -> None:
    metadata = {
        **NODE["metadata"],
        "labels": {**NODE["metadata"]["labels"], **labels},
        "annotations": {**NODE["metadata"]["annotations"], **annotations},
    }
    backup = parse_stored_backup(
        backed_up({**NODE, "metadata": metadata, "spec": {**spec, "unschedulable": cordoned}}).data()
    )
    assert isinstance(backup, Backup)
    node = backup.node()
    ours = CORDONED in metadata["annotations"]
    assert node["spec"] == {**spec, **({"unschedulable": True} if cordoned and not ours else {})}
    assert node["metadata"]["labels"] == {**RESTORED["metadata"]["labels"], **labels}
    assert node["metadata"]["annotations"] == {**RESTORED["metadata"]["annotations"], **annotations}
    assert parse_condemnation(node["metadata"]) == NotRequested(last_id=0)


@pytest.mark.parametrize(("ours", "restored"), [(True, {}), (False, {"unschedulable": True})])
def test_a_cordon_is_restored_unless_it_is_the_leaders(ours: bool, restored: dict[str, Any]) -> None:
    metadata = {"name": "worker-1", "uid": "u", "annotations": {CORDONED: "7"} if ours else {}}
    stored = parse_stored_backup(backed_up({"metadata": metadata, "spec": {"unschedulable": True}}).data())
    assert isinstance(stored, Backup)
    assert stored.node()["spec"] == restored


def test_an_early_backup_stands_under_a_key_that_older_leaders_take_for_unreadable() -> None:
    early = replace(backed_up(NODE), early=True)
    assert parse_stored_backup(early.data()) == early
    assert BACKUP_KEY not in early.data()
    assert parse_stored_backup({**early.data(), **backed_up(NODE).data()}) == early


def test_what_somebody_wrote_into_the_stored_backup_restores_no_promise() -> None:
    fields = json.loads(backed_up(NODE).render())
    fields["metadata"]["annotations"][AGENT] = "forged"
    fields["spec"]["taints"].append(condemned_taint(8))
    fields["status"] = NODE["status"]
    backup = parse_stored_backup({BACKUP_KEY: json.dumps(fields)})
    assert isinstance(backup, Backup)
    assert backup.node() == RESTORED


@pytest.mark.parametrize(
    ("part", "value", "why"),
    [
        ("metadata", None, "name is missing"),
        ("metadata", [], "metadata is of type list, not an object"),
        ("metadata", {"name": "worker-1"}, "uid is missing"),
        ("metadata", {"name": "worker-1", "uid": "u", "labels": {"a": 1}}, "labels holds something that is not text"),
        ("metadata", {"name": "worker-1", "uid": "u", "annotations": "x"}, "annotations is 'x', not an object"),
        ("spec", "x", "spec is 'x', not an object"),
        ("spec", {"taints": {}}, "taints is of type dict, not a list"),
        ("spec", {"taints": ["x"]}, "a taint is 'x', not an object"),
        ("spec", {"taints": [{"effect": "NoExecute"}]}, "a taint has no key"),
    ],
)
def test_a_node_that_cannot_be_restored_whole_is_not_backed_up(part: str, value: object, why: str) -> None:
    stored = {BACKUP_KEY: json.dumps({"v": 1, "id": 8, **NODE, part: value})}
    for parsed in (back_up({**NODE, part: value}, 8), parse_stored_backup(stored)):
        assert isinstance(parsed, Unreadable)
        assert why in parsed.reason


@pytest.mark.parametrize("odd", [-(10**19), 10**30, float("nan"), "x" * 2**20], ids=lambda odd: str(odd)[:10])
def test_a_node_whose_backup_could_not_be_read_again_is_not_backed_up(odd: object) -> None:
    parsed = back_up({**NODE, "spec": {**NODE["spec"], "podCIDR": odd}}, 8)
    assert isinstance(parsed, Unreadable)


@draw.examples
@given(draw.anything | draw.damaged(NODE))
def test_backing_up_never_raises(source: object) -> None:
    parsed = back_up(source, 8)
    assert isinstance(parsed, Unreadable) or parse_stored_backup(parsed.data()) == parsed
