"""`pp-leader fence show` of nodes that NodeRemedyConfigurations select: their thresholds, ladders and errors."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pp_hostd.kube.resources import CONFIG_MAPS, NODE_REMEDY_CONFIGURATIONS, NODES
from tests.contract.objects import sample
from tests.leader.access.attempts import Attempt
from tests.leader.desk import Desk, desk
from tests.leader.fence.test_methods_run import LADDER, TERMINATE

__all__ = ["desk"]

READY: dict[str, Any] = {
    "nodeConditionType": "Ready",
    "nodeConditionStatus": "Unknown",
    "nodeConditionPeriod": "2m",
}


@pytest.fixture(autouse=True)
def _fresh(desk: Desk) -> None:
    desk.world.create(NODES, "", sample(NODES, "worker-1", labels={"type": "compute"}))
    for found in desk.world.make(Attempt("list", NODE_REMEDY_CONFIGURATIONS, "")).json()["items"]:
        desk.remove(NODE_REMEDY_CONFIGURATIONS, found["metadata"]["name"], None)


def select(desk: Desk, name: str, selector: str = "type=compute", **threshold: Any) -> None:
    remedies = threshold.pop("remedyConfigs", [])
    spec = {"nodeSelector": selector, "thresholdConfigs": [{**READY, **threshold}], "remedyConfigs": remedies}
    body = {"metadata": {"name": name}, "spec": spec}
    assert desk.world.make(Attempt("create", NODE_REMEDY_CONFIGURATIONS, "", body)).status_code == 201


def shown(desk: Desk) -> str:
    said = desk.run("fence", "show", "worker-1")
    assert (said.code, said.complaint) == (0, "")
    return said.prose


def test_a_threshold_without_remedies_has_the_lists_carried_out(desk: Desk) -> None:
    select(desk, "workers")
    select(desk, "others", "type=storage")
    told = "NodeRemedyConfiguration workers: Ready=Unknown for at least 120 s begins a flow, and the lists above are"
    prose = shown(desk)
    assert told in prose
    assert "others" not in prose and "ERROR" not in prose


def test_a_ladder_is_shown_with_what_each_remedy_frees(desk: Desk) -> None:
    select(desk, "workers", **LADDER)
    assert (
        "begins a flow. Remedies, one after the other: - repair: a Job, for at most 60 s; frees nothing "
        "- terminate: a Job, for at most 600 s; fences power: then all workloads are freed "
        "Recovery: - mark-schedulable"
    ) in shown(desk)


def test_a_ladder_is_a_flow_of_its_own_in_json(desk: Desk) -> None:
    select(desk, "workers", **LADDER)
    found = json.loads(desk.run("fence", "show", "worker-1", "--json").output)
    _, flow = found["plan"]["flows"]
    assert (flow["configuration"], flow["threshold"]) == ("workers", "Ready=Unknown for at least 120 s")
    assert [each["name"] for each in flow["steps"]["Remedies"]] == ["repair", "terminate"]
    assert list(flow["steps"]) == ["Remedies", "Recovery"]


def test_a_list_may_name_a_job_of_the_configuration_that_has_it_carried_out(desk: Desk) -> None:
    desk.store("fence-config-worker-1", {"config.properties": "power_management=terminate"})
    assert "ERROR: there is no method terminate" in shown(desk)
    select(desk, "workers", remedyConfigs=[TERMINATE])
    prose = shown(desk)
    desk.remove(CONFIG_MAPS, "fence-config-worker-1")
    assert "Power-Management: - terminate: a Job, for at most 600 s; fences power" in prose
    assert "ERROR" not in prose


def test_a_remedy_that_nobody_describes_is_an_error(desk: Desk) -> None:
    select(desk, "workers", remedy1={"name": "repair"}, remedyConfigs=[TERMINATE])
    prose = shown(desk)
    assert "Remedies, one after the other: - no method that can be run Recovery: - no method " in prose
    assert prose.count("ERROR: there is no method repair: it is none of mark-unschedulable,") == 1


def test_two_configurations_for_one_node_are_an_error(desk: Desk) -> None:
    select(desk, "workers")
    select(desk, "compute")
    told = "NodeRemedyConfiguration compute and NodeRemedyConfiguration workers select this node, and so none of them"
    assert f"ERROR: {told} begins a flow" in shown(desk)


def test_a_configuration_that_nobody_can_read_is_an_error(desk: Desk) -> None:
    select(desk, "workers", nodeConditionPeriod="soon")
    assert "ERROR: NodeRemedyConfiguration workers: its spec is unreadable: thresholdConfigs[0]:" in shown(desk)
