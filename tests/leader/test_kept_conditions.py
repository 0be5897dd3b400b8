"""A condition whose status stays keeps the time of its transition, in every status that the leader reports."""

from __future__ import annotations

from typing import Any, Callable

import pytest

from pp_hostd.leader.remedies.node_fence.configuration import CONDITIONS as OF_CONFIGURATION
from pp_hostd.leader.remedies.node_fence.configuration import ConfigurationStatus
from pp_hostd.leader.remedies.node_fence.fence import CONDITIONS as OF_FENCE
from pp_hostd.leader.remedies.node_fence.fence import Progress
from pp_hostd.leader.remedies.node_fence.fence import rendered as rendered_fence
from pp_hostd.leader.requests.health_checks.check import CONDITIONS as OF_CHECK
from pp_hostd.leader.requests.health_checks.check import Status
from pp_hostd.leader.requests.health_checks.steps import rendered as rendered_check
from pp_hostd.leader.requests.thresholds.steps import rendered as rendered_configuration
from pp_hostd.leader.steps.status import Told

LONG_AGO, NOW = "2026-03-01T12:00:00Z", "2026-03-02T12:00:00Z"
Json = dict[str, Any]
Rendered = Callable[[tuple[Told, ...], list[Json]], list[Json]]


def of_check(conditions: tuple[Told, ...], stored: list[Json]) -> list[Json]:
    found: Json = rendered_check(Status(conditions=conditions), {"status": {"conditions": stored}}, NOW)
    return list(found["status"]["conditions"])


def of_configuration(conditions: tuple[Told, ...], stored: list[Json]) -> list[Json]:
    status = ConfigurationStatus(conditions=conditions)
    found: Json = rendered_configuration(status, {"status": {"conditions": stored}}, NOW)
    return list(found["status"]["conditions"])


def of_fence(conditions: tuple[Told, ...], stored: list[Json]) -> list[Json]:
    return list(rendered_fence(Progress(conditions=conditions), {"conditions": stored}, NOW, NOW)["conditions"])


@pytest.mark.parametrize(
    ("rendered", "own"),
    [(of_check, OF_CHECK), (of_configuration, OF_CONFIGURATION), (of_fence, OF_FENCE)],
    ids=["NodeHealthCheck", "NodeRemedyConfiguration", "NodeFence"],
)
def test_a_condition_that_stays_keeps_its_time(rendered: Rendered, own: tuple[str, ...]) -> None:
    stays, turns, foreign = own[0], own[1], "example.com/Reviewed"
    stored = [{"type": each, "status": "True", "lastTransitionTime": LONG_AGO} for each in (stays, turns, foreign)]
    conditions = (turns, "False", "Turned", "turned"), (stays, "True", "Other", "in other words")
    found = rendered(conditions, stored)
    assert {each["type"]: each["lastTransitionTime"] for each in found} == {
        turns: NOW,
        stays: LONG_AGO,
        foreign: LONG_AGO,
    }
    told = [tuple(each.get(key, "") for key in ("type", "status", "reason", "message")) for each in found]
    assert told == [*conditions, (foreign, "True", "", "")]
    new, *_ = rendered(conditions, [])
    assert new["lastTransitionTime"] == NOW
