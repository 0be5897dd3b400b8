"""Fast detection on the leader's side: suspicions are checked, conditions follow, and only a health check requests."""

from __future__ import annotations

import pytest

from pp_hostd.leader.remedies.poison_pill.steps import Condemn
from pp_hostd.leader.requests.health_checks.steps import RequestRemediation
from pp_hostd.leader.requests.unreachable.plan import MOST_TRIED, most_silent, unreachable
from pp_hostd.leader.requests.unreachable.steps import TryHost
from pp_hostd.leader.steps.nodes import DeleteNode, SetCondition
from pp_hostd.leader.steps.port import LeaderStep
from pp_hostd.model.condemnation import NotRequested
from pp_hostd.model.keys import AGENT, PAUSED_NODE, SUSPECTS, UNREACHABLE
from pp_hostd.model.promise import Withdrawn
from pp_hostd.model.reachability import Finding
from pp_hostd.model.suspicion import Suspicion
from tests.leader.health.checked import CheckedWorld
from tests.leader.virtual_host import HOST, PEERS


class SuspectedWorld(CheckedWorld):
    """`silent` are the hosts that nobody reaches, `deaf` those that can't report to the leader."""

    def __init__(self, machines: str = "node", peers: tuple[str, ...] = PEERS) -> None:
        self.silent: set[str] = set()
        self.deaf: set[str] = set()
        self.reached_by: set[str] = set()
        super().__init__(machines, peers=peers)

    def suspects(self, by: str, *names: str) -> None:
        suspicion = Suspicion.of(names)
        self.annotate_node(by, **{SUSPECTS: None if suspicion is None else suspicion.render()})

    def finding(self, host: str, by: str) -> Finding:
        if by in self.deaf:
            return None
        return host not in self.silent or by in self.reached_by

    def written(self) -> list[LeaderStep]:
        """The writes of the condition Unreachable."""
        steps = (step for _, step in self.conditions_set)
        return [step for step in steps if isinstance(step, SetCondition) and step.condition.type == UNREACHABLE]

    def unreachable(self, name: str = HOST) -> tuple[str, str]:
        conditions = ((self.api.get("nodes", name) or {}).get("status") or {}).get("conditions") or ()
        found = (each for each in conditions if each["type"] == UNREACHABLE)
        return next(((each["status"], each["reason"]) for each in found), ("", ""))


@pytest.fixture(params=["node", "openshift"])
def world(request: pytest.FixtureRequest) -> SuspectedWorld:
    return SuspectedWorld(request.param)


def test_a_host_that_is_silent_to_all_is_unreachable(world: SuspectedWorld) -> None:
    world.silent.add(HOST)
    world.suspects("b", HOST)
    world.run(lambda: world.unreachable() == ("True", "Silent"), 5.0)
    assert not world.steps(RequestRemediation)


def test_nobody_asks_and_a_health_check_remediates_it(world: SuspectedWorld) -> None:
    world.check(unhealthyConditions=[], unreachableSeconds=2)
    world.silent.add(HOST)
    world.suspects("b", HOST)
    world.run(lambda: bool(world.steps(RequestRemediation)), 8.0)
    world.run(lambda: bool(world.steps(DeleteNode)))
    world.run(world.given_back)


def test_without_unreachable_seconds_nothing_is_requested(world: SuspectedWorld) -> None:
    world.check(unreachableSeconds=None)
    world.silent.add(HOST)
    world.suspects("b", HOST)
    world.spend(300.0)
    assert world.unreachable()[0] == "True"
    assert not world.steps(RequestRemediation)


@pytest.mark.parametrize("reached_by", ["", "a", "c"])
def test_a_host_that_anybody_reaches_is_not_unreachable(reached_by: str) -> None:
    world = SuspectedWorld()
    world.silent.add(HOST)
    world.reached_by = {"", "a", "b", "c", "d"} if not reached_by else {"a", "b", "c", "d"}
    world.suspects("b", HOST)
    world.spend(60.0)
    assert world.steps(TryHost)
    assert world.unreachable() == ("", "")


def test_a_leader_that_nobody_reports_to_believes_itself_cut_off() -> None:
    world = SuspectedWorld()
    world.silent.add(HOST)
    world.deaf = {"a", "b", "c", "d"}
    world.suspects("b", HOST)
    world.spend(60.0)
    assert world.unreachable() == ("", "")
    world.deaf = {"a", "b", "c"}
    world.run(lambda: world.unreachable()[0] == "True", 30.0)


def test_a_kubelet_that_renews_its_lease_is_not_silent() -> None:
    world = SuspectedWorld()
    world.silent.add(HOST)
    world.suspects("b", HOST)
    for _ in range(30):
        world.kubelet_renews()
        world.spend(1.0)
        assert world.unreachable()[0] != "True" or world.now < 1003
    assert world.unreachable()[0] != "True"


def test_once_it_is_reached_again_the_condition_says_so(world: SuspectedWorld) -> None:
    world.silent.add(HOST)
    world.suspects("b", HOST)
    world.run(lambda: world.unreachable()[0] == "True", 5.0)
    world.silent.clear()
    world.run(lambda: world.unreachable() == ("False", "Reached"), 5.0)
    world.suspects("b")
    world.spend(60.0)
    assert world.unreachable() == ("False", "Reached")
    assert len(world.written()) == 2


def test_a_suspicion_that_is_taken_back_ends_it(world: SuspectedWorld) -> None:
    world.silent.add(HOST)
    world.suspects("b", HOST)
    world.run(lambda: world.unreachable()[0] == "True", 5.0)
    world.silent.clear()
    world.suspects("b")
    world.run(lambda: world.unreachable()[0] == "False", 15.0)


def test_a_flap_shorter_than_unreachable_seconds_resets_nobody() -> None:
    world = SuspectedWorld()
    world.check(unhealthyConditions=[], unreachableSeconds=10)
    world.silent.add(HOST)
    world.suspects("b", HOST)
    world.run(lambda: world.unreachable()[0] == "True", 5.0)
    world.spend(6.0)
    world.silent.clear()
    world.spend(300.0)
    assert not world.steps(RequestRemediation)


def test_a_host_that_promised_nothing_is_left_alone() -> None:
    """It is in maintenance, or shuts down: it may well be silent."""
    world = SuspectedWorld()
    world.check(unhealthyConditions=[], unreachableSeconds=0)
    world.state(Withdrawn("boot-1"))
    world.silent.add(HOST)
    world.suspects("b", HOST)
    world.spend(60.0)
    assert not world.steps(TryHost, RequestRemediation)
    assert not world.written()


def control_plane(*silent: str) -> SuspectedWorld:
    """Three nodes of it among nine, of which these fall silent; remediation of HOST is requested."""
    world = SuspectedWorld(peers=tuple("abcdefgh"))
    for name in (HOST, "b", "c"):
        world.api.patch("nodes", name, {"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}})
        if name != HOST:
            world.annotate_node(name, **{AGENT: world.a_promise(machine_uid=f"node-{name}").render()})
    world.silent.update(silent)
    world.suspects("d", *silent)
    world.run(lambda: all(world.unreachable(name)[0] == "True" for name in silent), 10.0)
    world.request()
    return world


def test_a_control_plane_node_that_nobody_reaches_counts_as_lost() -> None:
    """It is dead, or its member of etcd is cut off: to reset another one would take the API away."""
    world = control_plane("b")
    world.spend(60.0)
    assert "one more of 3 control-plane nodes would leave no quorum" in world.next_action(HOST)
    assert not world.steps(Condemn)
    world.silent.clear()
    world.run(lambda: bool(world.steps(Condemn)), 30.0)


def test_a_control_plane_node_that_nobody_reaches_is_lost_itself() -> None:
    """To reset it costs nothing, so two that are silent do not hold each other for ever."""
    world = control_plane(HOST, "b")
    world.run(lambda: bool(world.steps(Condemn)), 30.0)


@pytest.mark.parametrize(("n", "most"), [(1, 1), (3, 1), (7, 1), (8, 2), (50, 12), (5000, 1250)])
def test_a_quarter_of_all_may_be_silent_and_at_least_one(n: int, most: int) -> None:
    assert most_silent(n) == most


def test_a_storm_of_silence_requests_nothing_and_is_told_once() -> None:
    world = SuspectedWorld()
    world.check(unhealthyConditions=[], unreachableSeconds=5, maxUnhealthy="100%")
    for name in ("a", "b", "c"):
        world.annotate_node(name, **{"pp-hostd.io/agent": world.promise.render()})
    world.silent.update((HOST, "a", "b"))
    world.suspects("d", HOST)
    world.run(lambda: world.unreachable()[0] == "True", 5.0)
    world.suspects("d", HOST, "a", "b")
    world.run(lambda: world.unreachable() == ("Unknown", "TooManySilent"), 5.0)
    world.spend(120.0)
    assert not world.steps(RequestRemediation)
    assert world.reasons().count("TooManySilent") == 1
    world.silent.difference_update(("a", "b"))
    world.suspects("d", HOST)
    world.run(lambda: bool(world.steps(RequestRemediation)), 30.0)


def test_one_agent_that_suspects_living_hosts_keeps_nobody_from_being_found() -> None:
    world = SuspectedWorld(peers=tuple("abcdefg"))
    world.check(unhealthyConditions=[], unreachableSeconds=5)
    for name in "abcdefg":
        world.annotate_node(name, **{"pp-hostd.io/agent": world.promise.render()})
        world.reports(name)
    world.suspects("g", "b", "c", "d")
    world.spend(60.0)
    assert world.unreachable("b") == ("", "")
    world.silent.add(HOST)
    world.suspects("e", HOST)
    world.run(lambda: bool(world.steps(RequestRemediation)), 30.0)
    assert world.unreachable() == ("True", "Silent")


def test_in_a_storm_a_few_suspects_are_tried_at_a_time() -> None:
    lost = tuple(f"lost{number}" for number in range(30))
    world = SuspectedWorld(peers=(*PEERS, *lost))
    for name in lost:
        world.annotate_node(name, **{"pp-hostd.io/agent": world.promise.render()})
    world.silent.update(lost)
    for number, by in enumerate(PEERS[:4]):
        world.suspects(by, *lost[number * 8 : number * 8 + 8])
    planned = unreachable(world.settings, world.observed(), world.driver.term, world.now)
    assert sum(isinstance(action.step, TryHost) for action, _ in planned if action is not None) == MOST_TRIED
    world.spend(60.0)
    assert {step.host.name for step in world.steps(TryHost) if isinstance(step, TryHost)} == set(lost)
    assert not any(world.unreachable(name)[0] == "True" for name in lost)


def test_a_request_that_waits_is_withdrawn_once_the_host_is_reached_again(world: SuspectedWorld) -> None:
    world.check(unhealthyConditions=[], unreachableSeconds=2)
    world.annotate_node(HOST, **{PAUSED_NODE: ""})  # so nothing begins
    world.silent.add(HOST)
    world.suspects("b", HOST)
    world.run(lambda: bool(world.steps(RequestRemediation)), 8.0)
    world.silent.clear()
    world.suspects("b")
    world.run(lambda: world.unreachable() == ("False", "Reached"), 10.0)
    world.run(lambda: isinstance(world.condemnation(), NotRequested), 10.0)


def test_garbage_in_a_suspicion_is_nothing() -> None:
    world = SuspectedWorld()
    for garbage in ("", "{}", "yes", '{"v":1,"suspects":["../x"]}', '{"v":1,"suspects":7}', "[" * 5000):
        world.annotate_node("b", **{SUSPECTS: garbage})
        world.spend(20.0)
    world.suspects("b", "nobody", "b")
    world.spend(20.0)
    assert not world.written()
