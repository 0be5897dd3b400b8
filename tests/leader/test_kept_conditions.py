"""A condition whose status stays keeps the time of its transition, in every status that the leader reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable

import pytest

from pp_hostd.leader.remedies.node_fence.configuration import ConfigurationStatus
from pp_hostd.leader.remedies.node_fence.fence import Progress
from pp_hostd.leader.remedies.node_fence.fence import rendered as rendered_fence
from pp_hostd.leader.requests.health_checks.check import Status
from pp_hostd.leader.requests.health_checks.steps import rendered as rendered_check
from pp_hostd.leader.requests.thresholds.steps import rendered as rendered_configuration

LONG_AGO, NOW = "2026-03-01T12:00:00Z", "2026-03-02T12:00:00Z"
STORED = [{"type": each, "status": "True", "lastTransitionTime": LONG_AGO} for each in ("Stays", "Turns")]
CONDITIONS = (
    ("Turns", "False", "Turned", "turned"),
    ("Stays", "True", "Other", "in other words"),
    ("New", "True", "", ""),
)


@pytest.mark.parametrize(
    "rendered",
    [
        lambda: rendered_check(Status(conditions=CONDITIONS), {"status": {"conditions": STORED}}, NOW)["status"],
        lambda: rendered_configuration(
            ConfigurationStatus(conditions=CONDITIONS), {"status": {"conditions": STORED}}, NOW
        )["status"],
        lambda: rendered_fence(Progress(conditions=CONDITIONS), {"conditions": STORED}, NOW, NOW),
    ],
    ids=["NodeHealthCheck", "NodeRemedyConfiguration", "NodeFence"],
)
def test_a_condition_that_stays_keeps_its_time(rendered: Callable[[], Mapping[str, Any]]) -> None:
    found = rendered()["conditions"]
    assert {each["type"]: each["lastTransitionTime"] for each in found} == {"Turns": NOW, "Stays": LONG_AGO, "New": NOW}
    assert [tuple(each[key] for key in ("type", "status", "reason", "message")) for each in found] == list(CONDITIONS)
