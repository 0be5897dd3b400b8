"""The leader's changes to a Node: its own marks, and nothing that others have put there."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from pp_hostd.leader.steps.nodes import complete, cordon, mark_freeing, recreated, uncordon, unheard
from pp_hostd.model.backup import Backup
from pp_hostd.model.keys import (
    CONDEMNATION_ID,
    CONDEMNED,
    CONFIRMED_DEAD,
    CORDONED,
    FREED,
    FREEING,
    OUT_OF_SERVICE,
)

Json = dict[str, Any]
FOREIGN = {"key": "example.com/gpu", "effect": "NoSchedule"}
ALSO_FOREIGN = {"key": "example.com/gpu", "value": "2", "effect": "NoExecute"}
NOW = datetime(2026, 3, 1, tzinfo=timezone.utc)
OURS = {"key": CONDEMNED, "value": "7", "effect": "NoExecute"}
OUT = {"key": OUT_OF_SERVICE, "value": "nodeshutdown", "effect": "NoExecute"}


def node(*taints: Json, annotations: Json | None = None, **spec: object) -> Json:
    return {
        "metadata": {"name": "worker", **({"annotations": annotations} if annotations else {})},
        "spec": {**spec, **({"taints": list(taints)} if taints else {})},
    }


def backup(*taints: Json, **spec: object) -> Backup:
    kept = {**spec, **({"taints": list(taints)} if taints else {})}
    return Backup("worker", "uid", 7, {"zone": "a", "rack": "1"}, {"owner": "db", "note": "x"}, kept)


def test_a_schedulable_node_is_cordoned_and_remembered_as_such() -> None:
    assert cordon(node(FOREIGN), 7) == {
        "metadata": {"annotations": {CORDONED: "7"}},
        "spec": {"unschedulable": True, "taints": [FOREIGN, OURS]},
    }


def test_a_node_that_somebody_else_cordoned_only_gets_the_taint() -> None:
    assert cordon(node(unschedulable=True), 7) == {"spec": {"taints": [OURS]}}


def test_a_taint_with_an_older_id_is_replaced() -> None:
    assert cordon(node({**OURS, "value": "6"}, FOREIGN, unschedulable=True), 7) == {"spec": {"taints": [FOREIGN, OURS]}}


def test_a_node_that_is_cordoned_already_is_left_alone() -> None:
    assert cordon(node(FOREIGN, OURS, unschedulable=True), 7) == {}


@pytest.mark.parametrize("out_of_service", [False, True])
def test_the_marker_comes_with_the_taint_that_frees_where_that_is_wanted(out_of_service: bool) -> None:
    marked = {"metadata": {"annotations": {FREEING: "7"}}}
    tainted = {"spec": {"taints": [OURS, OUT]}}
    assert mark_freeing(node(OURS), 7, out_of_service=out_of_service) == (
        {**marked, **tainted} if out_of_service else marked
    )


def test_all_our_marks_are_taken_off_and_the_node_is_schedulable_as_before() -> None:
    marks = {FREEING: "7", CONFIRMED_DEAD: "{}", CORDONED: "7", FREED: "5", "owner": "db"}
    assert uncordon(node(FOREIGN, OURS, OUT, annotations=marks, unschedulable=True)) == {
        "metadata": {"annotations": {FREEING: None, CONFIRMED_DEAD: None, CORDONED: None}},
        "spec": {"unschedulable": None, "taints": [FOREIGN]},
    }


def test_what_somebody_else_cordoned_or_took_out_of_service_stays_so() -> None:
    assert uncordon(node(FOREIGN, OURS, OUT, unschedulable=True)) == {"spec": {"taints": [FOREIGN, OUT]}}


def test_a_node_without_marks_is_left_alone() -> None:
    assert uncordon(node(FOREIGN, OUT, unschedulable=True)) == {}


@pytest.mark.parametrize(
    ("is_machine", "marks"),
    [(False, {FREED: "7"}), (True, {FREED: "7", CONDEMNATION_ID: "7"})],
    ids=["machine", "node"],
)
def test_a_node_is_made_anew_from_its_backup_with_the_mark_of_the_freed(is_machine: bool, marks: Json) -> None:
    stored = backup(FOREIGN, podCIDR="10.1.0.0/24")
    made = recreated(stored, NOW, is_machine=is_machine)
    assert made["metadata"] == {
        "name": "worker",
        "labels": {"zone": "a", "rack": "1"},
        "annotations": {"owner": "db", "note": "x", **marks},
    }
    assert made["spec"] == {"podCIDR": "10.1.0.0/24", "taints": [FOREIGN]}
    assert stored == backup(FOREIGN, podCIDR="10.1.0.0/24")


def test_a_node_is_made_anew_with_a_fresh_word_that_nobody_has_heard_of_it() -> None:
    (condition,) = recreated(backup(), NOW, is_machine=False)["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("Ready", "Unknown")
    assert condition["lastTransitionTime"] == "2026-03-01T00:00:00Z"


def test_only_a_node_without_a_ready_condition_is_said_to_be_unheard_of() -> None:
    pressure = {"type": "DiskPressure", "status": "False"}
    patch = unheard({**node(), "status": {"conditions": [pressure]}}, NOW)
    assert [(each["type"], each["status"]) for each in patch["status"]["conditions"]] == [
        ("DiskPressure", "False"),
        ("Ready", "Unknown"),
    ]
    assert unheard({**node(), "status": {"conditions": [{"type": "Ready", "status": "False"}]}}, NOW) == {}


def test_a_node_that_came_back_gets_what_it_lacks_and_keeps_what_it_has() -> None:
    back = node({**FOREIGN, "value": "kept"}, annotations={"owner": "web"}, providerID="kept")
    back["metadata"]["labels"] = {"zone": "b", "new": "1"}
    lost = backup(FOREIGN, ALSO_FOREIGN, providerID="other", podCIDR="10.1.0.0/24", podCIDRs=["10.1.0.0/24"])
    assert complete(back, lost, is_machine=True) == {
        "metadata": {"labels": {"rack": "1"}, "annotations": {"note": "x", FREED: "7", CONDEMNATION_ID: "7"}},
        "spec": {
            "podCIDR": "10.1.0.0/24",
            "podCIDRs": ["10.1.0.0/24"],
            "taints": [{**FOREIGN, "value": "kept"}, ALSO_FOREIGN],
        },
    }


def test_a_node_that_lacks_nothing_is_left_alone() -> None:
    whole = recreated(backup(FOREIGN, podCIDR="10.1.0.0/24"), NOW, is_machine=False)
    assert complete(whole, backup(FOREIGN, podCIDR="10.1.0.0/24"), is_machine=False) == {}


def test_the_mark_of_an_earlier_condemnation_is_brought_up_to_date_but_an_id_never_lowered() -> None:
    old = recreated(backup(), NOW, is_machine=True)
    old["metadata"]["annotations"].update({FREED: "5", CONDEMNATION_ID: "9"})
    assert complete(old, backup(), is_machine=True) == {"metadata": {"annotations": {FREED: "7"}}}
