"""The condition Protected, which the leader keeps on Nodes: what it says, and how rarely it is written."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from typing import Any, Callable

import pytest

from pp_hostd.leader.node_memory import NextAction
from pp_hostd.leader.requests.node_conditions.plan import MOST_LOOKS, SETTLE_SECONDS, WRITE_SECONDS
from pp_hostd.leader.steps.nodes import SetCondition
from pp_hostd.leader.steps.port import LeaderStep
from pp_hostd.model.control import Maintenance
from pp_hostd.model.keys import AGENT, EXTERNAL_REMEDIATION, FREED, PROTECTED
from pp_hostd.model.promise import Committed, GateClosed, GateKind, WatchdogKind, Withdrawn
from pp_hostd.model.settings import Leader, Settings
from pp_hostd.model.step import Written
from tests.leader.virtual_host import HOST, PEERS, World

WHEN = datetime(2026, 3, 1, tzinfo=timezone.utc)
ORDER = Maintenance("ann", WHEN, "new memory", WHEN)
KINDS = ("openshift", "node")
ARMED = ("True", "Armed", "resets itself within 42 s of its last proof: T 22 s, watchdog hardware, W 10 s")
SECONDS = 60.0


def condition(world: World, name: str = HOST) -> dict[str, Any]:
    node = world.api.get("nodes", name) or {"status": {}}
    found = (each for each in node["status"].get("conditions") or () if each["type"] == PROTECTED)
    return next(found, {})


def told(world: World, name: str = HOST) -> tuple[str, str, str]:
    found = condition(world, name)
    return found.get("status", ""), found.get("reason", ""), found.get("message", "")


def written(world: World) -> list[str]:
    """The Nodes whose condition was written, in their order."""
    return [step.node for _, step in world.conditions_set if isinstance(step, SetCondition)]


def promised(**changes: object) -> Callable[[World], None]:
    return lambda world: world.state(replace(world.promise, **changes))  # type: ignore[arg-type]


def kubelet_of_another_boot(world: World) -> None:
    world.api.patch("nodes", HOST, {"status": {"nodeInfo": {"bootID": "boot-9"}}})


REASONS: dict[str, tuple[Callable[[World], None], str]] = {
    "NotEnrolled": (lambda world: world.enrol(PEERS), "pp-leader enroll x"),
    "NoPromise": (lambda world: world.state(None), "its agent has promised nothing"),
    "Unreadable": (lambda world: world.annotate_node(HOST, **{AGENT: "{"}), "the agent's record is unreadable"),
    "Withdrawn": (World.withdraws, "its agent has withdrawn its promise"),
    "Maintenance": (
        lambda world: world.state(Withdrawn("boot-1", ORDER)),
        "it is in maintenance by ann until 2026-03-01T00:00:00Z: new memory",
    ),
    "NoWatchdog": (promised(watchdog=WatchdogKind.SOFTWARE_ONLY), "leader.accept_software_only is false"),
    "Booting": (lambda world: world.state(GateClosed("boot-2", GateKind.HOLD)), "its gate is closed"),
    "Resetting": (lambda world: world.state(Committed(world.promise, 7)), "for condemnation 7"),
    "OtherMachine": (promised(machine_uid="another"), "uid another"),
    "UnknownRoster": (promised(roster_version=9), "the roster holds versions 1 to 1"),
    "OtherBoot": (kubelet_of_another_boot, "another boot than the one promised"),
    "Finalizers": (
        lambda world: world.api.patch("nodes", HOST, {"metadata": {"finalizers": ["example.com/keep"]}}),
        "example.com/keep",
    ),
}


@pytest.mark.parametrize("machines", KINDS)
def test_an_armed_host_is_protected(machines: str) -> None:
    world = World(machines)
    world.spend(SECONDS)
    assert told(world) == ARMED
    assert told(world, "a")[:2] == ("False", "NoPromise")


@pytest.mark.parametrize("reason", REASONS)
@pytest.mark.parametrize("machines", KINDS)
def test_a_host_that_the_leader_would_not_wait_for_is_not_protected_and_why_is_told(machines: str, reason: str) -> None:
    world = World(machines)
    world.spend(SECONDS)
    becomes_so, sentence = REASONS[reason]
    becomes_so(world)
    world.spend(SECONDS)
    assert told(world)[:2] == ("False", reason)
    assert sentence in told(world)[2]


def test_the_machine_of_another_node_protects_nobody() -> None:
    world = World()
    world.spend(SECONDS)
    world.api.patch("machines", world.machine_key, {"status": {"nodeRef": {"name": "a"}}})
    world.spend(SECONDS)
    assert told(world)[:2] == ("False", "NoMachine")


@pytest.mark.parametrize("accepted", [True, False])
def test_a_softdog_protects_if_the_settings_accept_one(accepted: bool) -> None:
    world = World(settings=Settings(leader=Leader(accept_softdog=accepted)))
    world.state(replace(world.promise, watchdog=WatchdogKind.SOFTDOG))
    world.spend(SECONDS)
    assert told(world)[:2] == (("True", "Armed") if accepted else ("False", "Softdog"))


@pytest.mark.parametrize("reason", sorted({*REASONS} - {"Booting", "Resetting", "OtherBoot"}))
def test_what_is_not_protected_is_refused_when_it_is_requested(reason: str) -> None:
    world = World()
    REASONS[reason][0](world)
    world.request()
    world.spend(SECONDS)
    assert any(each.refused for each in world.driver.next_actions if each.node == HOST)
    assert not world.steps()


def test_a_condition_is_written_once_it_has_settled_and_one_at_a_time() -> None:
    world = World()
    began_at = world.now
    world.spend(SECONDS)
    moments = [at for at, _ in world.conditions_set]
    assert sorted(written(world)) == sorted((HOST, *PEERS))
    assert moments[0] >= began_at + SETTLE_SECONDS
    assert all(later - earlier >= WRITE_SECONDS for earlier, later in zip(moments, moments[1:]))


def test_all_of_many_nodes_are_looked_at_and_written_in_time() -> None:
    count = 2 * MOST_LOOKS + 50
    world = World(peers=tuple(f"node-{number:03}" for number in range(1, count)))
    world.spend(SETTLE_SECONDS + count * WRITE_SECONDS + 30.0)
    assert len(set(written(world))) == len(written(world)) == count


def test_what_is_said_is_written_once_and_not_again_by_another_leader() -> None:
    world = World()
    world.spend(SECONDS)
    count = len(written(world))
    world.spend(600.0)
    world.api.new_leader()
    world.a_term("b")
    world.spend(600.0)
    assert len(written(world)) == count
    assert not world.driver.next_actions


def test_a_record_that_stands_for_a_moment_is_not_written() -> None:
    world = World()
    world.spend(SECONDS)
    count = len(written(world))
    for _ in range(5):
        world.state(GateClosed("boot-1", GateKind.HOLD))
        world.spend(SETTLE_SECONDS / 2)
        world.state(world.promise)
        world.spend(SETTLE_SECONDS / 2)
    world.spend(SECONDS)
    assert len(written(world)) == count


def test_another_roster_alone_changes_no_message() -> None:
    world = World()
    world.spend(SECONDS)
    before, count = condition(world), len(written(world))
    world.add_node("new", "10.9.9.9")
    world.enrol((HOST, *PEERS, "new"))
    world.spend(SECONDS)
    world.state(world.a_promise())
    world.spend(SECONDS)
    assert world.a_promise().roster_version > world.promise.roster_version
    assert condition(world) == before
    assert written(world)[count:] == ["new"]


@pytest.mark.parametrize("machines", KINDS)
def test_a_node_under_work_is_left_alone_until_its_host_is_back(machines: str) -> None:
    world = World(machines)
    world.spend(SECONDS)
    count = len(written(world))
    world.request()
    world.run(world.given_back)
    world.spend(SECONDS)  # the host is away
    assert HOST not in written(world)[count:]
    world.boots()
    assert world.comes_back()
    world.kubelet_reports()
    world.spend(SECONDS)
    assert told(world) == ARMED


def test_a_request_that_waits_keeps_the_condition_as_it_is_until_it_is_withdrawn() -> None:
    world = World()
    world.spend(SECONDS)
    world.annotate_machine(world.machine_key, **{EXTERNAL_REMEDIATION: ""})
    world.withdraws()
    world.spend(SECONDS)
    assert told(world) == ARMED
    world.lift()
    world.spend(SECONDS)
    assert told(world)[:2] == ("False", "Withdrawn")


def test_a_node_that_becomes_busy_while_its_write_is_due_is_left_out_and_the_others_are_written() -> None:
    world = World()
    world.spend(SETTLE_SECONDS - 1.0)
    for name in (HOST, "a"):
        world.annotate_node(name, **{"pp-hostd.io/cordoned": "7"})
        world.request(f"machines/{name}")
    world.spend(SETTLE_SECONDS + 10.0)
    assert {HOST, "a"}.isdisjoint(written(world))
    assert {"b", "c", "d"} <= {*written(world)}


def test_a_node_that_is_away_is_left_alone() -> None:
    world = World()
    world.annotate_node(HOST, **{AGENT: None, FREED: "7"})
    world.spend(SECONDS)
    assert HOST not in written(world)


def test_a_dry_run_writes_nothing_and_does_not_spin() -> None:
    world = World(settings=Settings(leader=Leader(mode="dry-run")))
    world.spend(SECONDS)
    assert not written(world)
    assert not world.driver.next_actions


class Failing(World):
    """The API refuses every condition of `bad`. `shown` is what people are told in each turn."""

    bad: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self.tried: list[tuple[float, str]] = []
        self.shown: list[str] = []
        super().__init__()

    def show(self, next_actions: tuple[NextAction, ...]) -> None:
        self.shown.append("; ".join(each.sentence for each in next_actions if each.refused))

    def start(self, node: str, remedy: LeaderStep) -> None:
        if isinstance(remedy, SetCondition):
            self.tried.append((self.now, remedy.node))
            if remedy.node in self.bad:
                self.under_way.append((node, remedy, self.now))
                self.fail(Written.NOT_DONE, "a webhook refuses it")
                return
        super().start(node, remedy)


def test_a_write_that_fails_does_not_hold_up_the_others_and_is_tried_less_and_less_often() -> None:
    failing = Failing()
    failing.bad = frozenset({"a"})  # the first one
    failing.spend(SETTLE_SECONDS + 10.0)
    assert sorted(written(failing)) == sorted((HOST, "b", "c", "d"))
    failing.spend(600.0)
    late = [at for at, name in failing.tried if name == "a"]
    assert late[-1] - late[-2] >= 30.0


def test_a_write_that_keeps_failing_is_told_all_the_time_and_in_the_same_words() -> None:
    failing = Failing()
    failing.bad = frozenset({"a"})
    failing.spend(SECONDS)
    failing.shown.clear()
    failing.spend(600.0)
    assert len({*failing.shown}) == 1
    assert "a webhook refuses it" in failing.shown[0]
    failing.bad = frozenset()
    failing.spend(SECONDS)
    assert told(failing, "a")[:2] == ("False", "NoPromise")
    assert not failing.driver.next_actions


def test_a_node_that_is_enrolled_and_can_not_be_listed_is_looked_at_all_the_same() -> None:
    world = World()
    world.add_node("new", "no address")
    world.spend(SECONDS)
    assert told(world, "new")[:2] == ("False", "NotEnrolled")
    world.enrol((HOST, *PEERS, "new"))
    world.spend(SECONDS)
    assert told(world, "new")[:2] == ("False", "NoPromise")
