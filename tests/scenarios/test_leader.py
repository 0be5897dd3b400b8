"""Leaders and agents together: real processes, from the request to the host that is back."""

from __future__ import annotations

import signal

from pp_hostd.kube.resources import LEASES, NODES
from pp_hostd.model.condemnation import Condemned, NotRequested
from pp_hostd.model.keys import NAMESPACE
from pp_hostd.model.lease import LEASE
from tests.harness.bed.relay import Mode
from tests.harness.eventually import eventually
from tests.scenarios.leading import LEADERS, WAIT_SECONDS, WATCHDOG_SECONDS, LeaderStage, now

EXTRA = {
    "metadata": {"labels": {"rack": "7"}, "annotations": {"example.com/note": "kept"}},
    "spec": {"taints": [{"key": "example.com/own", "value": "x", "effect": "NoSchedule"}]},
}
"""The label, annotation and taint that somebody has put on a Node, and finds there again."""


def test_a_host_that_is_cut_off_is_freed_after_the_wait_and_given_back(real_leader_stage: LeaderStage) -> None:
    stage = real_leader_stage
    *others, lost = stage.begin()
    stage.contents.patch(NODES, lost.name, EXTRA)
    uid, since_at = stage.uid(lost), now()
    stage.bed.cut(lost.name)
    stage.request(lost)
    stage.freed(lost, uid)
    assert now() - since_at >= WAIT_SECONDS
    assert not lost.is_up()
    node = stage.given_back(lost)
    assert node["metadata"]["labels"]["rack"] == "7"
    assert node["metadata"]["annotations"]["example.com/note"] == "kept"
    taints = [taint["key"] for taint in node["spec"]["taints"]]
    assert "example.com/own" in taints and "pp-hostd.io/condemned" not in taints
    assert "unschedulable" not in node["spec"]
    stage.bed.heal()
    stage.bed.boot(lost.name)
    eventually(lambda: stage.is_well(lost), "the host is back", 30)
    assert [host.boots for host in others] == [1] * len(others)


def test_a_host_that_reads_its_condemnation_says_so_and_is_freed_at_once(leader_stage: LeaderStage) -> None:
    *_, sick = leader_stage.begin()
    uid, since_at = leader_stage.uid(sick), now()
    leader_stage.request(sick)
    leader_stage.freed(sick, uid)
    assert now() - since_at > WATCHDOG_SECONDS
    assert "it has decided to reset" in leader_stage.says("backing up its Node")
    assert not sick.is_up()
    leader_stage.given_back(sick)


def test_a_host_that_boots_again_before_it_is_freed_waits_behind_its_gate(leader_stage: LeaderStage) -> None:
    *_, sick = leader_stage.begin()
    uid = leader_stage.uid(sick)
    leader_stage.bed.cut(sick.name)
    leader_stage.request(sick)
    sick.await_down()
    leader_stage.bed.heal()
    leader_stage.bed.boot(sick.name)
    leader_stage.freed(sick, uid)
    assert not sick.kubelet_started()
    assert "its gate is closed" in leader_stage.says("backing up its Node")
    leader_stage.given_back(sick)
    eventually(lambda: leader_stage.is_well(sick), "the gate opens", 30)


def test_a_condemnation_that_is_lifted_in_the_middle_leaves_no_trace(leader_stage: LeaderStage) -> None:
    *_, spared = leader_stage.begin()
    uid = leader_stage.uid(spared)
    leader_stage.bed.cut(spared.name)
    leader_stage.request(spared)
    leader_stage.says(f"{spared.name}: at least half of")
    leader_stage.lift(spared)
    spared.await_down()
    leader_stage.bed.heal()
    leader_stage.bed.boot(spared.name)
    eventually(lambda: leader_stage.is_well(spared), "all is as before", 30)
    assert leader_stage.uid(spared) == uid
    assert leader_stage.contents.backup(spared.name) is None


def test_a_leader_works_on_no_host_that_is_its_own(leader_stage: LeaderStage) -> None:
    leader_stage.begin()
    own = leader_stage.bed.hosts[leader_stage.leader()]
    uid = leader_stage.uid(own)
    leader_stage.request(own)
    leader_stage.freed(own, uid)
    assert leader_stage.leader() != own.name
    leader_stage.given_back(own)


def test_a_majority_that_is_cut_off_from_the_api_is_neither_freed_nor_reset(leader_stage: LeaderStage) -> None:
    hosts = leader_stage.begin()
    cut_off = [host for host in hosts if host.name not in LEADERS]
    boots = [host.boots for host in hosts]
    uid = leader_stage.uid(cut_off[0])
    leader_stage.bed.cut(*(host.name for host in cut_off))
    leader_stage.request(cut_off[0])
    leader_stage.shows("2 of 5 nodes have acknowledged, and 1 more must")
    until_at = now() + WAIT_SECONDS
    eventually(lambda: now() > until_at, "longer than the wait", WAIT_SECONDS + 1)
    assert leader_stage.uid(cut_off[0]) == uid
    assert leader_stage.machine(cut_off[0]) is Condemned
    assert [host.boots for host in hosts] == boots and all(host.is_up() for host in hosts)


def test_when_the_control_plane_stops_nobody_is_reset_and_a_leader_leads_again_after(leader_stage: LeaderStage) -> None:
    hosts = leader_stage.begin()
    boots = [host.boots for host in hosts]
    leader_stage.bed.set_api(Mode.SWALLOW)
    leader_stage.says("leads no longer")
    until_at = now() + WAIT_SECONDS
    eventually(lambda: now() > until_at, "longer than a host may live without proof", WAIT_SECONDS + 1)
    assert [host.boots for host in hosts] == boots and all(host.is_up() for host in hosts)
    leader_stage.bed.set_api(Mode.PASS)
    eventually(leader_stage.leader, "somebody leads again", 30)


def test_a_leader_that_is_told_to_stop_gives_the_lease_up(leader_stage: LeaderStage) -> None:
    leader_stage.begin()
    first = leader_stage.leader()
    assert leader_stage.leaders[first].stop() == 0
    lease = leader_stage.contents.find(LEASES, LEASE, NAMESPACE) or {}
    assert not str(lease["spec"].get("holderIdentity", "")).startswith(first), lease  # nobody waits until it has ended
    eventually(lambda: leader_stage.leader() not in ("", first), "the other one leads")


def test_a_leader_that_was_stopped_for_long_does_nothing_when_it_wakes(leader_stage: LeaderStage) -> None:
    *_, sick = leader_stage.begin()
    first = leader_stage.leader()
    uid = leader_stage.uid(sick)
    leader_stage.bed.cut(sick.name)
    leader_stage.request(sick)
    leader_stage.says(f"{sick.name}: at least half of")
    leader_stage.leaders[first].signal(signal.SIGSTOP)
    other = next(name for name in LEADERS if name != first)
    eventually(lambda: leader_stage.bed.hosts[other].journal()[-1].startswith(sick.name), "the other one goes on", 30)
    leader_stage.leaders[first].signal(signal.SIGCONT)
    leader_stage.freed(sick, uid)
    leader_stage.given_back(sick)
    assert leader_stage.leader() == other
    assert leader_stage.machine(sick) is NotRequested
