"""A flow that gave up begins again by a person's word: all is run once more, and no outcome of before counts."""

from __future__ import annotations

from dataclasses import replace

from pp_hostd.kube.resources import NODE_REMEDY_CONFIGURATIONS
from pp_hostd.leader.remedies.node_fence.configuration import Configuration, ConfigurationsSeen, parse_configuration
from pp_hostd.model.observed import Observed
from tests.leader.fence.fence_world import FenceWorld
from tests.leader.fence.test_methods_run import TERMINATE
from tests.leader.virtual_host import HOST

ONCE = {"grace_timeout": "0s", "boot_timeout": "120s", "giveup_retries": "0", "step_retries": "0"}


def given_up(world: FenceWorld) -> None:
    world.run(lambda: "gave up" in world.next_action(), 3600)


def test_a_device_that_answers_again_is_asked_again() -> None:
    world = FenceWorld()
    world.by_ipmi()
    world.configure_cluster(**ONCE)
    world.mode = "silent"
    world.cut_off()
    world.fence()
    given_up(world)
    world.mode = "obeys"
    world.retry()
    world.run(lambda: world.is_at("Recovery", "Final"))
    assert world.free()
    assert not world.node(HOST).node.unschedulable


class LadderWorld(FenceWorld):
    """The leader sees the configuration `workers`."""

    def observed(self) -> Observed:
        found, body = super().observed(), self.api.get(NODE_REMEDY_CONFIGURATIONS.plural, "workers")
        configuration = None if body is None else parse_configuration(body)
        seen = {"workers": configuration} if isinstance(configuration, Configuration) else {}
        return replace(found, parts={**found.parts, ConfigurationsSeen: ConfigurationsSeen(seen)})


def test_a_job_of_before_proves_nothing() -> None:
    """The host was dead then, and runs again now."""
    world = LadderWorld()
    world.configure_cluster(**ONCE)
    world.cut_off()
    ladder = {"remedy1": {"name": "terminate", "clean-resource": True}, "remedyConfigs": [TERMINATE]}
    world.threshold("Ready", "Unknown", **ladder)
    world.run(lambda: bool(world.jobs()))
    world.end_job("Failed")
    given_up(world)
    world.end_job("Complete")
    world.retry()
    world.run(lambda: len(world.jobs()) == 2)
    world.spend(60.0)
    assert world.pods[HOST] == 2
    world.switch(False)
    world.end_job()
    world.run(world.free)
