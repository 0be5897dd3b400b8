"""Each trouble that people and their tools make happens as it says."""

from __future__ import annotations

import pytest

from pp_hostd.agent.shutdown import POWER_OFF_SECONDS
from pp_hostd.kube.resources import NODES
from pp_hostd.model.condemnation import Condemned, NotRequested
from pp_hostd.model.keys import EXTERNAL_REMEDIATION
from pp_hostd.model.promise import Withdrawn
from pp_hostd.sim.api import SERVERS, as_it_is
from pp_hostd.sim.cluster import Cluster
from pp_hostd.sim.schedule import Trouble
from tests.sim.story import FREED, Story, X

EVERYBODY = tuple(f"node-{number}" for number in range(1, 6))


def test_an_id_that_is_removed_is_as_if_there_never_was_one() -> None:
    assert isinstance(Story(*FREED).world.machine(*X).condemnation, NotRequested)
    removed = Story(*FREED, Trouble(175.0, "condemnation id is removed", X))
    assert removed.world.machine(*X).condemnation == NotRequested(0)


def test_of_a_condemned_machine_the_annotation_alone_is_removed() -> None:
    story = Story(*FREED, Trouble(25.0, "external-remediation is removed", X), until=25.0)
    metadata = story.world.api.found(as_it_is, *story.world.api.cluster.place(*X))["metadata"]
    assert EXTERNAL_REMEDIATION not in metadata["annotations"]
    assert metadata["labels"]


def test_a_restore_brings_the_store_back_to_what_it_was_under_new_versions() -> None:
    saved, restored = Trouble(12.0, "etcd is saved"), Trouble(30.0, "etcd is restored")
    before, after = Story(saved, until=12.0), Story(saved, *FREED, restored, until=30.0)
    condemned = Story(saved, *FREED, until=30.0)
    assert isinstance(condemned.world.machine(*X).condemnation, Condemned)
    assert after.world.machine(*X).condemnation == before.world.machine(*X).condemnation
    assert after.world.machine(*X).uid == before.world.machine(*X).uid
    assert after.world.api.store.revision > condemned.world.api.store.revision


def test_watches_go_on_after_a_restore() -> None:
    saved, restored = Trouble(12.0, "etcd is saved"), Trouble(13.0, "etcd is restored")
    assert Story(saved, restored, *FREED).world.deletions == 1


def test_after_a_restore_no_leader_runs_until_every_host_has_stored_its_promise_again() -> None:
    saved, restored = Trouble(12.0, "etcd is saved"), Trouble(40.0, "etcd is restored")
    longer = Trouble(20.0, "agent is upgraded", X, 0.0, 1.0)
    story = Story(saved, longer, restored)
    (stopped,), (started,) = story.said("a person", "stops the leaders"), story.said("a person", "starts the leaders")
    before = Story(saved, longer, restored, until=started - 2)
    assert stopped == 40.0
    assert before.promise.self_timeout_seconds == 22.0
    assert not before.world.leaders
    assert story.promise.self_timeout_seconds > 22.0
    assert story.world.leading()


@pytest.mark.parametrize(("part", "same"), [(0.0, True), (1.0, False)])
def test_a_machine_vanishes_and_comes_back_with_the_same_or_another_uid(part: float, same: bool) -> None:
    vanish = Trouble(15.0, "machines vanish", X, 5.0, part)
    before, gone, back = Story(until=14.0), Story(vanish, until=19.0), Story(vanish, until=21.0)
    assert not gone.world.api.exists(*gone.world.api.cluster.place(*X))
    assert (back.world.machine(*X).uid == before.world.machine(*X).uid) is same


def test_machines_that_vanish_with_their_crd_make_every_read_fail() -> None:
    story = Story(Trouble(15.0, "machines vanish with their CRD", EVERYBODY, 60.0), until=70.0)
    assert story.said("node-5", "could not find the requested resource")
    assert not story.said("node-5", "the machine does not exist")


def test_a_node_is_deleted_and_registered_again() -> None:
    again = Trouble(15.0, "a Node is registered again", X, 5.0)
    gone, back = Story(again, until=19.0), Story(again, until=150.0)
    assert not gone.world.api.exists(NODES, "", *X)
    assert back.node.uid != Story(until=14.0).node.uid
    assert back.promise.machine_uid == back.world.machine(*X).uid


def test_a_node_whose_finalizers_keep_it_is_registered_again_once_it_is_gone() -> None:
    keeps, again = Trouble(15.0, "a Node has finalizers", X, 20.0), Trouble(16.0, "a Node is registered again", X, 5.0)
    before, after = Story(keeps, again, until=34.0), Story(keeps, again, until=150.0)
    assert before.node.uid == Story(until=14.0).node.uid
    assert after.node.uid != before.node.uid


def test_a_liar_accuses_whoever_asks() -> None:
    lies = Trouble(15.0, "a peer lies", ("node-1",), 60.0)
    story = Story(lies, Trouble(20.0, "cut off from API", ("node-4",), 60.0), Trouble(20.0, "cut off", X, 60.0))
    assert any("unhealthy" in what for _, who, what in story.told if who == "node-4")


def test_a_health_check_asks_again_while_the_node_is_not_ready() -> None:
    asks = Trouble(14.0, "somebody asks again", X, 10.0)
    story = Story(asks, Trouble(15.0, "cut off", X, 80.0))
    assert story.said("MHC", "asks for node-5")
    assert not Story(asks).said("MHC", "asks for node-5")


def test_a_host_in_maintenance_withdraws_and_is_armed_again_when_that_is_over() -> None:
    maintenance = Trouble(15.0, "maintenance", X, 30.0)
    assert isinstance(Story(maintenance, until=40.0).node.agent, Withdrawn)
    assert Story(maintenance).promise


def test_a_host_without_power_stays_off() -> None:
    story = Story(Trouble(15.0, "power stays off", X, 60.0))
    assert story.said("node-5", "boots", after=15.0) == [75.0]


def test_a_host_that_is_powered_off_keeps_its_promise_with_a_longer_watchdog_and_stays_off() -> None:
    power_off = Trouble(15.0, "shutdown", X, 60.0)
    story = Story(power_off, until=80.0)
    assert 15.0 < story.said("node-5", "is down: it is shut down")[0] < 20.0
    assert story.said("node-5", "boots", after=15.0) == [75.0]
    assert Story(power_off, until=70.0).promise.watchdog_timeout_seconds == POWER_OFF_SECONDS


def test_a_power_off_that_hangs_is_ended_by_the_watchdog_within_twice_its_timeout() -> None:
    story = Story(Trouble(15.0, "shutdown", X, 60.0, 1.0), until=15.0 + 2 * POWER_OFF_SECONDS + 1)
    (down_at,) = story.said("node-5", "is down: its watchdog fired")
    assert down_at > 15.0 + POWER_OFF_SECONDS


def test_a_host_that_is_shut_down_in_an_outage_ends_with_its_promise() -> None:
    story = Story(Trouble(15.0, "API stops", EVERYBODY, 80.0), Trouble(40.0, "shutdown", X, 60.0), until=60.0)
    assert story.said("node-5", "is down: it is shut down")
    assert story.promise


def test_a_shutdown_ends_also_if_its_agent_is_killed_before_it_can_withdraw() -> None:
    cut, down = Trouble(14.0, "cut off from API", X, 60.0), Trouble(15.0, "shutdown", X)
    story = Story(cut, down, Trouble(16.0, "agent is killed", X), until=40.0)
    assert story.said("node-5", "is down: it is shut down", after=15.0)
    assert story.promise


def test_systemd_kills_an_agent_that_hangs_in_the_shutdown_of_a_host_without_watchdog() -> None:
    unarmed, hung = Trouble(14.0, "maintenance", X, 100.0), Trouble(20.0, "agent hangs", X, 80.0)
    story = Story(unarmed, hung, Trouble(21.0, "shutdown", X), until=60.0)
    assert story.said("node-5", "is down: it is shut down", after=21.0)


def test_an_agent_that_is_stopped_already_delays_no_shutdown() -> None:
    story = Story(Trouble(15.0, "agent stops", X, 60.0), Trouble(25.0, "shutdown", X, 60.0), until=40.0)
    assert story.said("node-5", "is down: it is shut down", after=25.0)


def test_a_restart_withdraws_first_and_comes_back() -> None:
    restart = Trouble(15.0, "shutdown", X)
    assert isinstance(Story(restart, until=19.0).node.agent, Withdrawn)
    assert Story(restart, until=80.0).said("node-5", "boots", after=15.0)


def test_a_host_whose_credential_has_ended_is_refused_until_it_gets_another() -> None:
    story = Story(Trouble(15.0, "credentials end", X, 30.0), until=80.0)
    refused = story.said("node-5", "its certificate has ended")
    assert refused and all(15.0 < at < 46.0 for at in refused)
    assert story.said("node-5", "confirms it")
    assert story.said("node-5", "healthy: its machine is not condemned")[-1] > 45.0


def test_api_servers_on_hosts_run_while_the_kubelets_of_those_do() -> None:
    cluster = Cluster(api_on=("node-1", "node-2"))
    story = Story(Trouble(15.0, "power stays off", ("node-1",), 30.0), until=40.0, cluster=cluster)
    assert story.world.api.down == {"api-1", "api-3"}
    assert not any(map(story.world.api.answers, SERVERS))
    assert story.said("node-2", "starts api-2")
    story.world.time.run(60.0)
    assert all(map(story.world.api.answers, SERVERS))


def test_a_node_that_has_finalizers_is_not_gone_when_it_is_deleted() -> None:
    story = Story(Trouble(15.0, "a Node has finalizers", X), until=16.0)
    story.world.api.delete(NODES, "", *X)
    assert story.world.api.exists(NODES, "", *X)
