"""The look around ahead of a flow: it is over when the threshold is reached, and counts no longer than any other."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from pp_hostd.kube.resources import NODE_REMEDY_CONFIGURATIONS
from pp_hostd.leader.remedies.node_fence.steps import BeginFence, LookAround
from pp_hostd.leader.remedies.node_fence.survey import AGAIN_SECONDS
from pp_hostd.leader.requests.thresholds.plan import AHEAD_SECONDS
from pp_hostd.leader.requests.thresholds.steps import CreateFence
from pp_hostd.leader.steps.port import LeaderStep
from pp_hostd.model.control import Pause
from pp_hostd.model.moment import render_moment
from tests.leader.fence.fence_world import FenceWorld
from tests.leader.virtual_cluster import SINCE
from tests.leader.virtual_host import PEERS

PERIOD_SECONDS = 60.0


class TimedWorld(FenceWorld):
    """Its nodes are fenced by a threshold, and its clock tells the time of day."""

    wallclock_ahead_seconds = int(SINCE.timestamp()) - 1000

    def __init__(self) -> None:
        super().__init__()
        self.by_ipmi()
        self.configure_cluster(grace_timeout="0s")
        threshold = {"nodeConditionType": "Ready", "nodeConditionStatus": "Unknown", "nodeConditionPeriod": "60s"}
        spec = {"nodeSelector": {}, "thresholdConfigs": [threshold]}
        self.api.put(NODE_REMEDY_CONFIGURATIONS.plural, "all", {"metadata": {"name": "all"}, "spec": spec})
        self.spend(1.0)
        self.cut_off()
        self.reached_at = self.now + PERIOD_SECONDS

    def report(self, name: str, ready: str, **conditions: str) -> None:
        super().report(name, ready, **conditions)
        since = render_moment(datetime.fromtimestamp(self.wallclock_seconds(), timezone.utc))
        node = self.api.get("nodes", name) or {}
        found = [{**each, "lastTransitionTime": since} for each in node["status"]["conditions"]]
        self.api.patch("nodes", name, {"status": {"conditions": found}})

    def times(self, kind: type[LeaderStep]) -> list[float]:
        return [at for at, step in self.done if isinstance(step, kind)]


def test_agents_are_asked_before_the_threshold_is_reached_and_the_flow_waits_for_nobody() -> None:
    world = TimedWorld()
    world.run(lambda: bool(world.times(BeginFence)))
    (looked_at,) = world.times(LookAround)
    assert world.reached_at - AHEAD_SECONDS <= looked_at < world.reached_at
    assert world.reached_at <= world.now < world.reached_at + 1.0
    world.run(world.free)
    assert len(world.times(LookAround)) == 1


def test_a_host_that_is_reached_then_is_not_fenced() -> None:
    world = TimedWorld()
    world.reached = True
    world.spend(PERIOD_SECONDS + 60.0)
    assert "agents reach its host" in world.next_action()
    assert not world.times(BeginFence)
    assert not world.calls


@pytest.mark.parametrize("paused_seconds", [AGAIN_SECONDS - AHEAD_SECONDS - 1.0, AGAIN_SECONDS + 1.0])
def test_a_look_that_is_too_old_is_made_again(paused_seconds: float) -> None:
    """The host is reached by then, whatever the look ahead has found."""
    world = TimedWorld()
    world.run(lambda: bool(world.times(CreateFence)))
    world.order({"paused": Pause("anna", SINCE, "maintenance").render()})
    world.reached = True
    world.spend(paused_seconds)
    assert not world.times(BeginFence)
    world.order({})
    world.spend(1.0)
    is_old = paused_seconds > AGAIN_SECONDS
    assert len(world.times(LookAround)) == (2 if is_old else 1)
    assert bool(world.times(BeginFence)) is not is_old


def test_a_node_that_becomes_ready_meanwhile_is_left_alone() -> None:
    world = TimedWorld()
    world.run(lambda: bool(world.times(LookAround)))
    world.kubelet = True
    world.come_back()
    world.spend(600.0)
    assert len(world.times(LookAround)) == 1
    assert world.found() is None


def test_a_node_that_is_paused_is_not_asked_about() -> None:
    world = TimedWorld()
    world.order({"paused": Pause("anna", SINCE, "maintenance").render()})
    world.spend(PERIOD_SECONDS + 60.0)
    assert not world.times(LookAround)


@pytest.mark.parametrize("most", [1, 2])
def test_agents_are_asked_about_no_more_nodes_than_may_be_fenced_at_once(most: int) -> None:
    world = TimedWorld()
    world.configure_cluster(max_at_once=str(most))
    for name in PEERS[:2]:
        world.report(name, "Unknown")
    world.spend(PERIOD_SECONDS - 1.0)
    assert len(world.times(LookAround)) == most
