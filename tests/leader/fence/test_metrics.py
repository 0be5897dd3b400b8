"""The figures of NodeFences that a leader serves to Prometheus."""

from __future__ import annotations

import asyncio

from pp_hostd.kube.resources import NODE_FENCES, NODES
from pp_hostd.leader.election import Election
from pp_hostd.leader.fence_metrics import MOST_PROBLEMS, FenceMetrics
from pp_hostd.leader.leader_term import LeaderTerm
from pp_hostd.leader.remedies.node_fence.fence import Cause, NodeFence, Progress, fence_name
from pp_hostd.leader.remedies.node_fence.steps import BeginFence, WriteFence
from pp_hostd.leader.steps.port import StepEnded, StepNews
from pp_hostd.model.observed import Observed
from pp_hostd.model.step import Written
from pp_hostd.service.journal import Journal
from pp_hostd.service.metric import render
from tests.agent.objects import boottime, running, until
from tests.contract.objects import sample
from tests.leader.fence.fence_world import FenceWorld
from tests.leader.test_shell_leader_term import SETTINGS, cluster
from tests.peers.talk import KEYRING


class CountedWorld(FenceWorld):
    """`metrics` have heard all that steps told."""

    def __init__(self, **cluster: str) -> None:
        self.metrics = FenceMetrics()
        super().__init__()
        self.by_ipmi()
        self.configure_cluster(**{"grace_timeout": "30s", "boot_timeout": "120s", **cluster})
        self.cut_off()
        self.fence()

    def take(self) -> list[StepNews]:
        taken = super().take()
        for each in taken:
            self.metrics.heard(each)
        return taken

    def has(self, name: str, labels: str, figure: int) -> bool:
        return f"pp_leader_{name}{{{labels}}} {figure}\n" in render(self.metrics.metrics(self.observed()))


def test_each_step_of_a_flow_is_counted_once_with_its_outcome() -> None:
    world = CountedWorld()
    world.run(lambda: world.is_at("Isolation", "Done"))
    assert world.has("fences", 'state="running"', 1) and world.has("fences", 'state="final"', 0)
    world.run(lambda: world.is_at("Recovery", "Final"))
    world.spend(5.0)
    for step in ("Isolation", "Power-Management", "Recovery"):
        assert world.has("fence_steps_total", f'step="{step}",outcome="done"', 1), step
    assert 'outcome="skipped"' not in render(world.metrics.metrics(world.observed()))
    assert world.has("fences", 'state="final"', 1) and world.has("fences", 'state="running"', 0)
    assert world.has("problems_total", 'node="x",condition="request"', 1)


def test_power_management_of_a_node_that_is_well_again_is_skipped() -> None:
    world = CountedWorld()
    world.run(lambda: world.is_at("Isolation", "Done"))
    world.come_back()
    world.run(lambda: world.is_at("Recovery", "Final"))
    assert world.has("fence_steps_total", 'step="Power-Management",outcome="skipped"', 1)


def test_a_flow_that_fails_and_gives_up_is_counted_so_and_its_problem_once() -> None:
    world = CountedWorld(giveup_retries="1", step_retries="0")
    world.mode = "silent"
    world.run(lambda: "gave up" in world.next_action(), 3600)
    assert world.has("fence_steps_total", 'step="Power-Management",outcome="error"', 2)
    assert world.has("fence_steps_total", 'step="Power-Management",outcome="gave_up"', 1)
    assert world.has("fences", 'state="gave_up"', 1) and world.has("fences", 'state="error"', 0)
    assert world.has("problems_total", 'node="x",condition="request"', 1)


def begun(node: str, written: Written = Written.DONE) -> StepEnded:
    fence = NodeFence(f"node-fence-{node}", "uid", "1", node, Cause("workers", "DiskPressure", "True"), Progress())
    return StepEnded(node, BeginFence(WriteFence(fence, Progress(), "uid")), written, 0.0)


def test_problems_have_so_many_figures_and_no_more() -> None:
    metrics = FenceMetrics()
    for number in range(MOST_PROBLEMS + 2):
        metrics.heard(begun(f"node-{number}"))
    metrics.heard(begun("node-0"))
    metrics.heard(begun("node-0", Written.UNKNOWN))
    text = render(metrics.metrics(Observed()))
    assert text.count('condition="DiskPressure"') == MOST_PROBLEMS
    assert 'pp_leader_problems_total{node="node-0",condition="DiskPressure"} 2\n' in text
    assert 'pp_leader_problems_total{node="others",condition="others"} 2\n' in text


async def test_the_leader_serves_them() -> None:
    """A flow has failed for the last time, and the leader gives it up."""
    async with cluster() as (client, other):
        await other.create(NODES, sample(NODES, "worker-1"))
        failed = {"id": 17, "step": "Recovery", "status": "Error", "restarts": 99}
        await other.create(NODE_FENCES, {"metadata": {"name": fence_name("worker-1")}, "node": "worker-1", **failed})
        wake, journal = asyncio.Event(), Journal("/nonexistent")
        election = Election(client, "leader-host", 60.0, boottime, wake.set)
        async with running(election.run()):
            await until(lambda: election.acting(boottime()), "it leads")
            term = LeaderTerm(SETTINGS, "leader-host", client, KEYRING, election, journal, boottime, wake)
            async with running(term.serve()):
                given_up = 'pp_leader_fence_steps_total{step="Recovery",outcome="gave_up"} 1\n'
                await until(lambda: given_up in render(term.metrics()), "the leader has counted it")
                assert 'pp_leader_fences{state="gave_up"} 1\n' in render(term.metrics())
        journal.close()
