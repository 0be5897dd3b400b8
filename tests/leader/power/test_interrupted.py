"""Any leader finishes what another began: after every step, and where nobody knows how one ended."""

from __future__ import annotations

from typing import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pp_hostd.leader.steps.nodes import DeleteNode
from pp_hostd.model.keys import DETACHED_HOST, PAUSED_HOST
from pp_hostd.model.step import Written
from tests.harness.examples import tries
from tests.leader.power.powered import Bmc, PoweredWorld
from tests.leader.power.test_cycle import ENROLLED, STRANGER

SEEN_OFF_AND_NOT_STORED = 3
"""After so many steps only the leader that ends knows that the host has turned off: the next one repeats that."""
Act = Callable[[PoweredWorld], None]


@pytest.mark.parametrize("enrolled", [True, False])
@pytest.mark.parametrize("count", range(1, len(ENROLLED) + 1))
def test_a_leader_that_ends_after_any_step_is_followed_by_one_that_finishes(count: int, enrolled: bool) -> None:
    world = PoweredWorld(enrolled=enrolled)
    world.request()
    world.run(lambda: len(world.done) == count)
    world.a_term("b")
    world.run(lambda: world.uncondemned() and world.is_well() and not world.driver.next_actions)
    assert world.restored()
    assert len(world.steps(DeleteNode)) == 1
    assert world.boot == (3 if count == SEEN_OFF_AND_NOT_STORED else 2)


@pytest.mark.parametrize("count", range(len(STRANGER)))
def test_a_step_that_failed_is_repeated(count: int) -> None:
    world = PoweredWorld(enrolled=False)
    world.request()
    world.run(lambda: len(world.done) == count)
    world.run(lambda: bool(world.under_way))
    world.fail(Written.UNKNOWN)
    world.run(lambda: world.uncondemned() and world.is_well() and not world.driver.next_actions)
    assert world.restored()


def bmc(state: Bmc) -> Act:
    return lambda world: setattr(world, "bmc", state)


def in_time(world: PoweredWorld) -> None:
    world.api.lags = False
    world.api.catch_up()


def paused_and_switched_on(world: PoweredWorld) -> None:
    """By hand, while the operator looks after nothing. `status.poweredOn` stays as it was."""
    world.annotate_host(PAUSED_HOST, "")
    if not world.powered:
        world.switch(True)
        world.running = not world.enrolled or world.running


def set_term(world: PoweredWorld) -> None:
    world.a_term("b")


ACTS: dict[str, Act] = {
    "another leader": set_term,
    "a while": lambda world: world.spend(15),
    "requested": lambda world: world.request() if world.uncondemned() else None,
    "taken back": lambda world: world.lift(),
    "late watch": lambda world: setattr(world.api, "lags", True),
    "watch": in_time,
    "paused": paused_and_switched_on,
    "unpaused": lambda world: world.annotate_host(PAUSED_HOST, None),
    "detached": lambda world: world.annotate_host(DETACHED_HOST, ""),
    "attached": lambda world: world.annotate_host(DETACHED_HOST, None),
    "relist": lambda world: world.api.relist(),
    "flow off": lambda world: world.with_settings(cycle=False),
    "flow on": lambda world: world.with_settings(cycle=True),
    "fall back": lambda world: world.with_settings(fallback=True),
    **{f"bmc {state.value}": bmc(state) for state in Bmc},
}


@tries(150)
@given(st.booleans(), st.lists(st.sampled_from(sorted(ACTS)), max_size=25))
def test_whatever_happens_nothing_is_freed_that_runs_and_all_ends_well(enrolled: bool, acts: list[str]) -> None:
    """FreedWhileRunning is raised by the world itself, whenever a Node goes or pods are deleted while the host runs."""
    world = PoweredWorld(enrolled=enrolled)
    for act in acts:
        ACTS[act](world)
        world.spend(1)
    for act in ("bmc works", "watch", "flow on", "fall back", "unpaused", "attached"):
        ACTS[act](world)
    for peer in world.peers.values():
        peer.reachable, peer.reads = True, True
    world.run(lambda: world.uncondemned() and world.is_well() and not world.driver.next_actions, seconds=4000)
