"""Whatever happens in whichever order, nothing is freed that may still run; and in the end all is as it should be."""

from __future__ import annotations

from typing import Any, Callable

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from pp_hostd.leader.remedies.poison_pill.steps import Condemn
from pp_hostd.leader.steps.nodes import DeleteNode, MarkFreeing
from pp_hostd.model.condemnation import Condemned
from pp_hostd.model.keys import (
    AGENT,
    CONDEMNATION_ID,
    CONDEMNED,
    CONFIRMED_DEAD,
    CORDONED,
    EXTERNAL_REMEDIATION,
    FREED,
    FREEING,
    PAUSED_NODE,
    ROSTER,
)
from pp_hostd.model.record import Unreadable
from pp_hostd.model.settings import Leader, Settings
from pp_hostd.model.step import Written
from tests.harness.examples import tries
from tests.leader.virtual_host import HOST, MACHINE_OF_NODE, PEERS, World

QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large]
MODERATE = tries(250, suppress_health_check=QUIET)
FEW = tries(50, suppress_health_check=QUIET)
Action = Callable[[World], object]


def work(world: World) -> None:
    """The leader turns, and all that it begins takes effect at once."""
    for _ in range(12):
        world.driver.turn()
        if not world.under_way:
            return
        world.carry_out()


def turn(world: World) -> None:
    world.driver.turn()


def carry_out(world: World) -> None:
    if world.under_way:
        world.carry_out()


def lose_the_answer(world: World) -> None:
    """The step takes effect, and its leader never learns of it."""
    if world.under_way:
        node, remedy, _ = world.under_way[0]
        world.carry_out()
        world.take()
        world.under_way.insert(0, (node, remedy, world.now))
        world.fail(Written.UNKNOWN)


def another_leader(world: World) -> None:
    world.a_term("b")


def lift(world: World) -> None:
    if not isinstance(world.condemnation(), (Unreadable, type(None))):
        world.lift()


def lapse(world: World) -> None:
    if isinstance(world.condemnation(), Condemned):
        world.lapse()


def request(world: World) -> None:
    if world.uncondemned():
        world.request()


def delete_node(world: World) -> None:
    """Somebody else does it. Where Nodes are machines, that means to say that the host is no more."""
    if world.api.machines != "node" or not world.running:
        world.delete_node(HOST)


def watch_lags(world: World) -> None:
    world.api.lags = True


def watch_catches_up(world: World) -> None:
    world.api.lags = False
    world.api.catch_up()


def after(seconds: float) -> Action:
    return lambda world: world.pass_until(world.now + seconds)


def to_peer(name: str, change: Callable[[Any], None]) -> Action:
    return lambda world: change(world.peers[name])


def toggle(attribute: str) -> Callable[[Any], None]:
    return lambda peer: setattr(peer, attribute, not getattr(peer, attribute))


LEADER = [work, turn, carry_out, lose_the_answer, another_leader]
OTHERS = [request, lift, lapse, delete_node, watch_lags, watch_catches_up, lambda world: world.api.relist()]
TIMES = [after(seconds) for seconds in (0.5, 5.0, 12.0, 22.0, 43.0)]
ON_THE_HOST: list[Action] = [
    World.reset,
    World.boots,
    World.comes_back,
    World.commit,
    World.kubelet_registers,
    World.kubelet_renews,
    lambda world: world.promises(self_timeout_seconds=30.0),
    lambda world: world.promises(self_timeout_seconds=22.0),
]
PEER_CHANGES = [lambda peer: peer.forget(), toggle("reads"), toggle("reachable")]
ON_PEERS = [to_peer(name, change) for name in PEERS for change in PEER_CHANGES]

anything = st.one_of(
    st.sampled_from([work, *LEADER]),
    st.sampled_from(TIMES),
    st.sampled_from(OTHERS),
    st.sampled_from(ON_THE_HOST),
    st.sampled_from(ON_PEERS),
)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    strategy = draw(st.sampled_from(["node-delete", "node-delete", "resources", "out-of-service"]))
    return World(draw(st.sampled_from(["openshift", "node"])), Settings(leader=Leader(strategy=strategy)))


def do(world: World, actions: list[Action]) -> None:
    for action in actions:
        action(world)
        world.live()


def heal(world: World) -> None:
    """All faults end, and the host, if it has nothing to promise, boots again."""
    watch_catches_up(world)
    for peer in world.peers.values():
        peer.reads = peer.reachable = True
    world.kubelet_registers()
    world.annotate_node(HOST, **{MACHINE_OF_NODE: f"machines/{HOST}"})
    world.promises()
    if world.node(HOST).node.agent is None:
        world.reset()
    world.boots()


@MODERATE
@given(world=worlds(), actions=st.lists(anything, min_size=10, max_size=60))
def test_nothing_is_freed_while_the_host_may_run_it(world: World, actions: list[Action]) -> None:
    do(world, [after(10.0), request, work, *actions])


@FEW
@given(world=worlds(), actions=st.lists(anything, max_size=30))
def test_when_all_faults_have_ended_the_remediation_does_too(world: World, actions: list[Action]) -> None:
    do(world, [after(10.0), request, work, *actions, heal, request])
    world.run(world.given_back)


@FEW
@given(world=worlds(), actions=st.lists(anything, max_size=30))
def test_when_nobody_asks_for_it_any_more_all_is_undone(world: World, actions: list[Action]) -> None:
    do(world, [after(10.0), request, work, *actions, heal, lift])
    freed = len(world.steps(DeleteNode, MarkFreeing))
    world.run(world.given_back)
    assert len(world.steps(DeleteNode, MarkFreeing)) == freed


@pytest.mark.parametrize("machines", ["openshift", "node"])
def test_a_condemnation_that_lapses_before_its_leader_has_first_seen_it_is_void(machines: str) -> None:
    world = World(machines)
    do(world, [after(10.0), request, *([turn, carry_out] * 5)])
    assert isinstance(world.steps()[-1], Condemn)
    world.lapse()
    world.run(world.given_back)
    assert len(world.steps(Condemn)) == 2


WORDS = ["", "{", "[]", "7", "-1", "yesterday", "2026-03-01T00:00:00Z", '{"v": 1}', '{"v": 2}', "\x00", "x" * 300]
words = st.sampled_from(WORDS)
NODE_KEYS = [AGENT, FREEING, FREED, CORDONED, CONFIRMED_DEAD, PAUSED_NODE, MACHINE_OF_NODE]
garbage: st.SearchStrategy[Action] = st.one_of(
    st.builds(lambda k, w: lambda world: world.annotate_node("b", **{k: w}), st.sampled_from(NODE_KEYS), words),
    st.builds(
        lambda k, w: lambda world: world.annotate_machine(machine_b(world), **{k: w}),
        st.sampled_from([EXTERNAL_REMEDIATION, CONDEMNATION_ID]),
        words,
    ),
    st.builds(
        lambda k, d, w: lambda world: world.config_map(k, {d: w}),
        st.sampled_from(["backup-b", "backup-nobody", "backup-", ROSTER, "control", "enrolled"]),
        st.sampled_from(["node", ROSTER, "paused", "maintenance", "b"]),
        words,
    ),
    st.just(lambda world: world.api.patch("nodes", "b", {"spec": {"taints": [{"key": CONDEMNED}]}})),
    st.just(lambda world: world.api.patch(world.api.machine_kind, machine_b(world), {"status": {"nodeRef": None}})),
)


def machine_b(world: World) -> str:
    return "b" if world.api.machines == "node" else "machines/b"


@FEW
@given(world=worlds(), actions=st.lists(st.one_of(garbage, garbage, st.just(work), st.just(after(5.0))), max_size=30))
def test_no_cluster_however_odd_makes_a_plan_raise_and_no_live_host_pays_for_it(
    world: World, actions: list[Action]
) -> None:
    for action in actions:
        action(world)
    work(world)
    assert not world.steps(DeleteNode)
    assert all(next_action.sentence for next_action in world.driver.next_actions)
