"""Sentences of `pp-leader explain` about thresholds."""

from __future__ import annotations

from typing import Any

import pytest

from pp_hostd.leader.facts.nodes import NodeFacts, parse_node_facts
from pp_hostd.leader.remedies.node_fence.configuration import Configuration, ConfigurationsSeen, parse_configuration
from pp_hostd.leader.requests.thresholds import THRESHOLDS
from pp_hostd.model.control import Control, Pause
from pp_hostd.model.keys import PAUSED_NODE
from pp_hostd.model.observed import ClustersSeen, Observed
from tests.leader.fence.test_configuration import threshold
from tests.leader.health.test_report import AT, beside, node

PAUSED = Control(Pause("eve", AT, "upgrade"), None)


def configuration(name: str = "workers", annotations: Any = None, **more: Any) -> Configuration:
    metadata = {"name": name, "uid": name, "resourceVersion": "1", "annotations": annotations or {}}
    found = parse_configuration({"metadata": metadata, "spec": {**threshold(), **more}})
    assert isinstance(found, Configuration)
    return found


def observed(facts: list[NodeFacts], *configurations: Configuration, **more: Any) -> Observed:
    seen = ConfigurationsSeen({each.name: each for each in configurations}, {each.name: each for each in facts})
    return Observed(parts={ConfigurationsSeen: seen}, **{**beside(), **more})


def deleting() -> NodeFacts:
    ready = {"type": "Ready", "status": "Unknown", "lastTransitionTime": "2026-03-01T00:00:00Z"}
    metadata = {"name": "w", "uid": "w", "deletionTimestamp": "2026-03-01T00:00:00Z"}
    found = parse_node_facts({"metadata": metadata, "status": {"conditions": [ready]}}, {})
    assert isinstance(found, NodeFacts)
    return found


WELL = [node(f"well-{number}") for number in range(4)]
SICK = node("w", "Unknown", 90)
HELD = "NodeRemedyConfiguration workers does not have it fenced, though it has had Ready=Unknown for at least 90 s: "
OF_CLUSTER = beside(cluster="default/prod")
CASES: dict[str, tuple[Observed, list[str]]] = {
    "none": (observed([SICK]), []),
    "another": (
        observed([SICK], configuration(nodeSelector="pool=a")),
        ["No NodeRemedyConfiguration selects it."],
    ),
    "calm": (
        observed([node("w")], configuration()),
        ["NodeRemedyConfiguration workers selects it, and it has reached no threshold."],
    ),
    "awaited": (
        observed([*WELL, node("w", "Unknown", 89)], configuration()),
        [
            "NodeRemedyConfiguration workers has it fenced at 2026-03-01T12:00:02Z, once it has had Ready=Unknown for "
            "at least 90 s."
        ],
    ),
    "reached": (
        observed([*WELL, SICK], configuration()),
        [
            "NodeRemedyConfiguration workers has it fenced (NodeFence node-fence-w): it has had Ready=Unknown for at "
            "least 90 s."
        ],
    ),
    "two": (
        observed([*WELL, node("w")], configuration("a"), configuration("b")),
        ["The NodeRemedyConfigurations a and b select Node w: none of them has it fenced until one alone does."],
    ),
    "paused": (
        observed([*WELL, SICK], configuration(), control=PAUSED),
        [f"{HELD}paused by eve: upgrade. To go on: pp-leader resume."],
    ),
    "its own pause": (
        observed([*WELL, SICK], configuration(annotations={PAUSED_NODE: ""})),
        [f"{HELD}NodeRemedyConfiguration workers is paused by the annotation {PAUSED_NODE}."],
    ),
    "a Cluster's pause": (
        observed([*WELL, SICK], configuration(), clusters=ClustersSeen({"default/prod": "spec.paused"}), **OF_CLUSTER),
        [f"{HELD}Cluster default/prod is paused (spec.paused). To go on: end that pause."],
    ),
    "deleted": (observed([*WELL, deleting()], configuration()), [f"{HELD}its Node is being deleted."]),
    "unread": (observed([*WELL, SICK], configuration(), nodes={}), [f"{HELD}the leader can't read its Node."]),
    "a storm": (
        observed([*WELL[:1], SICK, node("v", "Unknown", 90)], configuration()),
        [f"{HELD}2 of 3 Nodes have reached a threshold, and at most 1 may at once: no flow begins."],
    ),
    "unreadable": (
        observed([SICK], configuration(thresholdConfigs=[])),
        [
            "NodeRemedyConfiguration workers has nobody fenced: its spec is unreadable: thresholdConfigs is empty: no "
            "Node would ever be fenced.",
            "No NodeRemedyConfiguration selects it.",
        ],
    ),
}


@pytest.mark.parametrize(("seen", "sentences"), CASES.values(), ids=CASES)
def test_each_case_is_explained(seen: Observed, sentences: list[str]) -> None:
    assert THRESHOLDS.explained(seen, "w", AT, None) == sentences
