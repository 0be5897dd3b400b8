"""Each kind of trouble happens as it says, in each kind of cluster."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

import pytest

from pp_hostd.kube.resources import NODES
from pp_hostd.leader.steps.nodes import cordon, uncordon
from pp_hostd.model.condemnation import Condemned
from pp_hostd.model.settings import Settings
from pp_hostd.sim.api import Api, as_it_is
from pp_hostd.sim.cluster import PLAIN, Cluster
from pp_hostd.sim.filled import EPOCH_TIME, fill
from pp_hostd.sim.host import Host, Kubelet
from pp_hostd.sim.network import Network
from pp_hostd.sim.run import run
from pp_hostd.sim.schedule import KINDS, MESSAGES, Schedule, Trouble
from pp_hostd.sim.time import Time
from tests.sim.story import FREED, Story, X


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_trouble_can_happen(kind: str) -> None:
    outcome = run(Schedule(1, 5, (Trouble(20.0, kind, X, 10.0, 0.5),)), Settings())
    assert outcome.violation == ""
    assert (20.0, "TROUBLE", f"{kind}: node-5") in outcome.story


def test_one_request_that_hangs_is_one_read_that_fails() -> None:
    story = Story(Trouble(15.0, "a request hangs", X, 30.0))
    assert len(story.said("node-5", "1 of 3 reads failed before it asks its peers: timed out")) == 1
    assert story.said("node-5", "2 of 3 reads failed") == []


def test_a_write_is_done_whose_answer_is_lost() -> None:
    """That of another T: the host does not know, and is bound by both."""
    longer, lost = Trouble(15.0, "agent is reloaded", X, 0.0, 1.0), Trouble(15.0, "an answer is lost", X)
    stories = [Story(longer, replace(lost, part=number / MESSAGES), until=16.5) for number in range(4)]
    all_commitments = [story.world.agents["node-5"][1].driver.commitments for story in stories]
    unknown = [story for story, commitments in zip(stories, all_commitments) if commitments.pending]
    assert pytest.approx(40.5) in [story.promise.self_timeout_seconds for story in unknown]


def test_a_node_that_leaves_is_no_longer_armed_and_is_so_when_it_has_joined_again() -> None:
    story = Story(Trouble(15.0, "a node leaves", X, 40.0))
    (left,) = story.said("node-5", "not armed: Node node-5 is no")
    (joined,) = story.said("a person", "enrols node-5", after=left)
    assert story.said("node-5", "healthy", after=joined)
    assert story.promise.roster_version == 3


@pytest.mark.parametrize("kind", ["agent is upgraded", "agent is reloaded"])
def test_another_t_is_promised_when_settings_change(kind: str) -> None:
    assert Story().promise.self_timeout_seconds == 22.0
    assert Story(Trouble(15.0, kind, X, 0.0, 0.0)).promise.self_timeout_seconds == pytest.approx(20.5)


def test_a_wall_clock_that_is_wrong_dates_a_condemnation_and_ends_no_wait() -> None:
    wrong = [Trouble(14.0, "a clock is set", (name,), 0.0, 0.0) for name in ("node-1", "node-2")]
    story = Story(*wrong, *FREED, until=50.0)
    condemnation = story.world.machine(*X).condemnation
    assert isinstance(condemnation, Condemned)
    assert condemnation.since_wallclock < EPOCH_TIME - timedelta(minutes=9)
    assert story.world.deletions == 0


def test_a_kubelet_that_nothing_holds_does_not_wait_for_an_agent_that_starts_late() -> None:
    tainted = Cluster(tainted=X)
    late = (Trouble(15.0, "power fails", X), Trouble(15.0, "agent starts late", X, 60.0))
    (boots,) = Story(*late, cluster=tainted).said("node-5", "boots", after=15.0)
    assert Story(*late, cluster=tainted).said("node-5", "its kubelet starts", after=15.0) == [pytest.approx(boots + 1)]
    assert min(Story(*late).said("node-5", "its kubelet starts", after=15.0)) >= 75.0


def test_a_kubelet_that_nothing_holds_starts_nothing_under_the_taint() -> None:
    time, chance = Time(), random.Random(1)
    network = Network(time, chance)
    api = Api(time, network, chance, PLAIN)
    fill(api, ["node-1"], 15.0)
    host = Host("node-1", time, chance, lambda *_: None, lambda _: None)
    host.start = lambda boot: Kubelet(api, network, time, host, boot, held=False)
    api.patch(NODES, "", "node-1", cordon(api.found(as_it_is, NODES, "", "node-1"), 1))
    host.power_on()
    time.run(30.0)
    assert not host.runs_workloads
    assert float(api.leases["node-1"]) > 25.0
    api.patch(NODES, "", "node-1", uncordon(api.found(as_it_is, NODES, "", "node-1")))
    time.run(32.0)
    assert host.runs_workloads


@pytest.mark.parametrize("machines", ["openshift", "cluster-api", "node"])
@pytest.mark.parametrize("strategy", ["node-delete", "out-of-service", "resources"])
def test_in_every_kind_of_cluster_a_node_is_freed_and_comes_back(machines: str, strategy: str) -> None:
    cluster = Cluster(machines, strategy)
    before = Story(until=10.0, cluster=cluster)
    freed = Story(*FREED, cluster=cluster)
    assert freed.world.deletions == 1
    assert (freed.node.uid == before.node.uid) == (strategy != "node-delete")
    assert not freed.node.tainted
    assert freed.world.hosts["node-5"].runs_workloads
    assert run(Schedule(1, 5, FREED, cluster=cluster), Settings()).violation == ""


def test_pods_of_a_node_out_of_service_are_deleted_by_the_clusters_own_controllers() -> None:
    story = Story(*FREED, cluster=Cluster(strategy="out-of-service"))
    marked, *_, last = story.said("node-1", "node-5: freeing its workloads") or story.said(
        "node-2", "freeing its workloads"
    )
    assert 5.0 < last - marked < 8.0


def test_somebody_absolves_a_host_when_it_is_being_freed() -> None:
    trap = Trouble(14.0, "absolve once it is freed", X, 0.0, 0.5)
    story = Story(trap, *FREED, cluster=Cluster(strategy="out-of-service"))
    (absolved,) = story.said("a person", "absolves node-5")
    assert absolved > 60.0
    assert story.world.deletions == 1
