"""Days on which nodes are fenced: what devices do, what is freed, and how a violation is noticed."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from pp_hostd.fencing.call import AgentCall, AgentReply
from pp_hostd.model.settings import Settings
from pp_hostd.sim.campaign import Arena
from pp_hostd.sim.cluster import Cluster
from pp_hostd.sim.days import random_schedule
from pp_hostd.sim.fence_devices import Devices
from pp_hostd.sim.fence_methods import (
    DEFAULT,
    IPMI,
    METHODS,
    OFF_ON,
    REBOOT,
    STORED,
    STORED_ALONE,
    SWITCH,
    WRONG_PLUG,
)
from pp_hostd.sim.fence_themes import DEVICES, FENCE_THEMES
from pp_hostd.sim.host import Host
from pp_hostd.sim.invariants import Invariants
from pp_hostd.sim.leader_port import Freed, claim_of
from pp_hostd.sim.run import run
from pp_hostd.sim.schedule import Schedule, Trouble
from pp_hostd.sim.time import Time
from pp_hostd.sim.violation import Violation
from pp_hostd.sim.world import World
from tests.sim.story import Story, X

CUT_OFF = Trouble(15.0, "cut off", X, 130.0)
HEALED_AT, END_AT = 155.0, 400.0
SEED = 2
"""With these dice no call goes wrong by itself."""


def fenced(methods: str, *, agentless: bool = True) -> Cluster:
    """Node 5 is fenced so, and has no agent; the other four are restarted by another remedy."""
    return Cluster(
        fenced=(*("default",) * 4, methods),
        agentless=X if agentless else (),
        unenrolled=X if agentless else (),
    )


def played(methods: str, *troubles: Trouble, until: float = END_AT, agentless: bool = True) -> Story:
    return Story(*troubles, until=until, cluster=fenced(methods, agentless=agentless), healed_at=HEALED_AT)


# Days.


@pytest.mark.parametrize("methods", [REBOOT, OFF_ON])
def test_a_host_that_is_cut_off_is_switched_off_freed_and_switched_on_again(methods: str) -> None:
    story = played(methods, CUT_OFF)
    (made,) = story.said("controller", "makes a NodeFence for node-5")
    (off,) = story.said("node-5", "its BMC switched it off", after=made)
    (boots,) = story.said("node-5", "boots", after=off)
    assert off < min(story.said_by_all("freeing its workloads")) < boots
    assert story.said_by_all("Recovery Final")
    assert story.world.hosts["node-5"].runs_workloads
    assert not story.node.tainted


def test_a_flow_that_a_threshold_begins_waits_for_no_agent() -> None:
    """The leader has asked them before, which takes 1.6 s if the host is silent."""
    cluster = replace(fenced(REBOOT), thresholds=True)
    story = Story(CUT_OFF, until=END_AT, cluster=cluster, healed_at=HEALED_AT)
    (looks,) = story.said_by_all("looking at its kubelet before anything is done")
    (begins,) = story.said_by_all("isolation begins, by NodeFence node-fence-node-5 (Ready=Unknown (all))")
    assert begins - looks < 0.5
    assert not story.said("controller", "makes a NodeFence for node-5")
    assert story.said_by_all("Recovery Final")


def test_workloads_on_storage_that_is_cut_off_are_freed_while_the_host_lives_and_no_others() -> None:
    story = played(STORED_ALONE, CUT_OFF, until=130.0)
    host = story.world.hosts["node-5"]
    assert host.boot is not None
    assert host.boot.storage_freed
    assert claim_of("node-5") not in story.world.api.pods
    assert "node-5" in story.world.api.pods


def test_storage_is_given_back_to_another_boot() -> None:
    story = played(STORED, CUT_OFF)
    (back,) = story.said("fence agent", f"{SWITCH} on of node-5")
    assert story.said("node-5", "boots", after=1.0)[0] < back
    assert story.world.devices is not None
    assert not story.world.devices.is_cut_off("node-5")


def test_a_plug_of_another_host_frees_nothing_of_a_host_that_lives() -> None:
    story = played(WRONG_PLUG, Trouble(15.0, "kubelet is sick", X, 130.0))
    assert story.said("node-1", "its BMC switched it off")
    assert story.said("node-5", "is down") == []
    assert "node-5" in story.world.api.pods


def test_a_node_that_is_ready_is_not_fenced_though_somebody_wants_it() -> None:
    story = played(REBOOT, Trouble(30.0, "somebody fences", X))
    assert story.said("a person", "makes a NodeFence for node-5")
    assert story.said("fence agent", "") == []
    assert story.world.fences is not None
    assert story.world.fences.found("node-5") is None


@pytest.mark.parametrize("device", DEVICES)
def test_whatever_a_device_does_the_flow_ends(device: str) -> None:
    story = played(REBOOT, CUT_OFF, Trouble(60.0, device, X, 60.0))
    assert story.said_by_all("Recovery Final") or story.said_by_all("gave up fencing it")


@pytest.mark.parametrize("theme", FENCE_THEMES)
def test_on_a_day_of_every_theme_every_invariant_holds(theme: str) -> None:
    schedule = Arena(Settings(), most_nodes=5).schedule(1, theme)
    assert schedule.cluster.fenced
    assert run(schedule, Settings()).violation == ""


def test_some_random_days_have_fences_and_all_others_are_what_they_were() -> None:
    schedules = [random_schedule(seed, most_nodes=7) for seed in range(300)]
    methods = [each for schedule in schedules for each in schedule.cluster.fenced]
    assert set(methods) == set(METHODS)
    assert 30 < sum(bool(schedule.cluster.fenced) for schedule in schedules) < 90
    assert not any(schedule.cluster.agentless for schedule in schedules if not schedule.cluster.fenced)
    assert {schedule.cluster.thresholds for schedule in schedules if schedule.cluster.fenced} == {True, False}
    assert not any(schedule.cluster.thresholds for schedule in schedules if not schedule.cluster.fenced)


# Devices.


class Site:
    """One host with its devices, which hear no leader unless a test is one."""

    def __init__(self, trouble: str = "") -> None:
        self.time = Time()
        self.host = Host("x", self.time, random.Random(1), lambda *_: None, lambda _: None)
        self.host.power_on()
        self.devices = Devices(self.time, random.Random(7), {"x": self.host}, lambda *_: None)
        if trouble:
            self.devices.acts[trouble](Trouble(0.0, trouble, ("x",), 100.0))

    def call(self, action: str, agent: str = IPMI, *, lives: bool = True) -> AgentReply | None:
        replies: list[AgentReply] = []
        given = AgentCall(agent, (("plug", "x"), ("action", action)), 8.0)
        self.devices.run("x", given, lambda: lives, replies.append)
        self.time.run(self.time.now + 20.0)
        return replies[0] if replies else None


def test_a_bmc_switches_its_host_and_tells_its_power() -> None:
    site = Site()
    assert [site.call(action) for action in ("status", "off", "status")] == [
        AgentReply(0, "", ""),
        AgentReply(0, "", ""),
        AgentReply(2, "", ""),
    ]
    assert site.host.boot is None
    site.call("on")
    assert site.host.powered


@pytest.mark.parametrize(
    ("trouble", "code", "powered"),
    [
        ("a fence device can't be reached", 1, True),
        ("a fence device does nothing", 0, True),
        ("a fence agent fails late", 1, False),
        ("a fence agent hangs", None, False),
    ],
)
def test_each_trouble_of_a_device(trouble: str, code: int | None, powered: bool) -> None:
    site = Site(trouble)
    reply = site.call("off")
    assert reply is not None
    assert (reply.code, site.host.powered) == (code, powered)


def test_an_agent_whose_leader_is_gone_may_still_act() -> None:
    sites = [Site() for _ in range(20)]
    for number, site in enumerate(sites):
        site.devices._chance.seed(number)
        site.call("off", lives=False)
    assert {site.host.powered for site in sites} == {True, False}


# Violations.


def a_world(methods: str = STORED) -> World:
    world = World(Settings(), 5, SEED, lambda *_: None, fenced(methods))
    Invariants(world)
    world.begin()
    world.time.run(60.0)
    return world


def call(world: World, agent: str, action: str) -> None:
    assert world.devices is not None
    given = AgentCall(agent, (("plug", "node-5"), ("action", action)), 8.0)
    world.devices.run("node-5", given, lambda: True, lambda _: None)
    world.time.run(world.time.now + 20.0)


def test_an_off_of_a_host_whose_node_was_ready_for_long_is_a_violation() -> None:
    with pytest.raises(Violation, match="needless off: node-5"):
        call(a_world(), IPMI, "off")


def test_workloads_on_storage_that_is_not_cut_off_are_two_copies() -> None:
    world = a_world()
    with pytest.raises(Violation, match="two copies: node-5"):
        world.frees("node-5", Freed.STORED)
    call(world, SWITCH, "off")
    world.frees("node-5", Freed.STORED)


def test_storage_for_the_boot_whose_workloads_were_freed_makes_two_writers() -> None:
    world = a_world()
    call(world, SWITCH, "off")
    world.frees("node-5", Freed.STORED)
    with pytest.raises(Violation, match="two writers: node-5"):
        call(world, SWITCH, "on")


def test_a_flow_that_nobody_carries_out_is_a_violation() -> None:
    world = World(Settings(), 5, SEED, lambda *_: None, fenced(REBOOT))
    invariants = Invariants(world)
    world.begin()
    world.time.run(60.0)
    world.stop_leaders()
    assert world.fences is not None
    world.fences.acts["somebody fences"](Trouble(60.0, "somebody fences", X))
    world.time.run(300.0)
    with pytest.raises(Violation, match="progress: the NodeFence of node-5 is stuck"):
        invariants.at_the_end()


def lasting(at: float, what: str, who: tuple[str, ...] = (), seconds: float = 0.0, part: float = 0.0) -> Trouble:
    return Trouble(at, what, who, seconds, part)


FOUND = {
    "both leaders run on hosts that are to die": Schedule(
        1411290903,
        2,
        (
            lasting(13.65, "cut off", ("node-1",), 89.3),
            lasting(111.61, "cut off from API", ("node-2",), 25.2, 0.03),
        ),
        cluster=Cluster(
            machines="openshift",
            health_checks=True,
            fenced=(STORED_ALONE, DEFAULT),
            thresholds=True,
            agentless=("node-1",),
        ),
    ),
    "an object is deleted while a fence with a wrong plug tries again and again": Schedule(
        811281892,
        3,
        (
            lasting(19.67, "kubelet is sick", ("node-2",), 14.5),
            lasting(38.39, "cut off", ("node-2",), 20.0),
            lasting(75.29, "request", ("node-2",)),
        ),
        cluster=Cluster(
            strategy="resources",
            requested_by="PoisonPillRemediation",
            health_checks=True,
            fenced=(STORED, WRONG_PLUG, REBOOT),
            agentless=("node-2", "node-3"),
        ),
    ),
    "an object is deleted while a fence that gave up keeps a backup": Schedule(
        811272947,
        6,
        (
            lasting(11.38, "agent stalls at the worst moment", ("node-1",)),
            lasting(12.38, "cut off", ("node-1",), 110.5),
            lasting(12.38, "a fence device can't be reached", ("node-1",), 140.0),
            lasting(15.08, "a host is slow", ("node-6",), 2.9, 0.7),
            lasting(22.17, "request", ("node-1",)),
            lasting(65.45, "request", ("node-1",), 0.0, 0.42),
        ),
        cluster=Cluster(
            machines="cluster-api",
            tainted=("node-3", "node-6"),
            requested_by="PoisonPillRemediation",
            health_checks=True,
            fenced=(REBOOT, OFF_ON, "network", OFF_ON, REBOOT, STORED),
            thresholds=True,
        ),
    ),
    "etcd is restored while a host is off": Schedule(
        811268615,
        3,
        (
            lasting(5.0, "etcd is saved"),
            lasting(13.43, "kubelet is sick", ("node-2",), 26.7),
            lasting(68.43, "etcd is restored"),
        ),
        end_at=540.0,
        cluster=Cluster(health_checks=True, fenced=(STORED, OFF_ON, "network"), agentless=("node-3",), arm_pairs=False),
    ),
    "a request is made while a host boots whose Node was recreated": Schedule(
        1211263971,
        4,
        (
            lasting(22.76, "request", ("node-2",)),
            lasting(29.23, "BMC does not answer", ("node-2",), 14.2, 0.33),
            lasting(69.95, "request", ("node-2",), 0.0, 0.32),
        ),
        cluster=Cluster(
            machines="openshift",
            power_cycles=True,
            fallback=True,
            health_checks=True,
            fenced=(STORED, REBOOT, DEFAULT, STORED_ALONE),
            agentless=("node-3", "node-4"),
        ),
    ),
    "a wrong plug is contradicted, and then the node is cut off": Schedule(
        1211268485,
        3,
        (
            lasting(17.02, "cut off", ("node-2",), 46.0),
            lasting(17.02, "kubelet is sick", ("node-2",), 116.8),
            lasting(36.2, "shutdown", ("node-2",), 3.3),
            lasting(82.68, "cut off", ("node-2",), 12.3),
        ),
        cluster=Cluster(
            strategy="out-of-service",
            requested_by="PoisonPillRemediation",
            health_checks=True,
            fenced=(DEFAULT, WRONG_PLUG, "network"),
            thresholds=True,
            agentless=("node-2",),
            unenrolled=("node-2",),
            arm_pairs=False,
        ),
    ),
    "a wrong plug, and a kubelet that is silent for just long enough": Schedule(
        1311262648,
        6,
        (
            lasting(19.58, "agent is upgraded", ("node-1",), 0.0, 0.01),
            lasting(19.58, "kubelet is sick", ("node-1",), 81.3),
            lasting(19.65, "agent is upgraded", ("node-3",), 0.0, 0.01),
            lasting(19.72, "agent is upgraded", ("node-5",), 0.0, 0.01),
            lasting(19.75, "agent is upgraded", ("node-6",), 0.0, 0.01),
            lasting(22.03, "cut off", ("node-1",), 40.0),
            lasting(22.26, "leader hangs", ("node-1",), 25.6, 0.41),
            lasting(77.03, "cut off", ("node-1",), 14.7, 0.15),
        ),
        cluster=Cluster(
            tainted=("node-6",),
            requested_by="PoisonPillRemediation",
            health_checks=True,
            fenced=(WRONG_PLUG, OFF_ON, DEFAULT, STORED, STORED_ALONE, STORED_ALONE),
            agentless=("node-4",),
            unenrolled=("node-4",),
        ),
    ),
    "storage is cut off, and then only a reboot is configured": Schedule(
        1211269427,
        2,
        (
            lasting(12.39, "cut off", ("node-2",), 85.0),
            lasting(76.96, "a fence-config is changed", ("node-2",), 0.0, 0.75),
            lasting(109.25, "a fence-config is changed", ("node-2",), 0.0, 0.9),
        ),
        cluster=Cluster(
            strategy="out-of-service",
            tainted=("node-2",),
            requested_by="PoisonPillRemediation",
            health_checks=True,
            fenced=(STORED_ALONE, "network", OFF_ON, REBOOT),
            thresholds=True,
            agentless=("node-2",),
        ),
    ),
    "an agent stalls at the worst moment, and has no proof until minutes later": Schedule(
        1111263529,
        2,
        (
            lasting(18.79, "agent stalls at the worst moment", ("node-2",), 0.0, 0.89),
            lasting(110.17, "cut off from API", ("node-2",), 16.9, 0.56),
        ),
        cluster=Cluster(
            machines="openshift",
            strategy="out-of-service",
            health_checks=True,
            fenced=(REBOOT, REBOOT),
            agentless=("node-1",),
        ),
    ),
}
"""Days that ended badly once."""


@pytest.mark.parametrize("day", FOUND)
def test_days_that_were_found_end_well(day: str) -> None:
    schedule = replace(FOUND[day], healed_at=HEALED_AT, end_at=max(FOUND[day].end_at, 420.0))
    assert run(schedule, Settings()).violation == ""
