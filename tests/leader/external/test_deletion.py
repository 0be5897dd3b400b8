"""An object that is deleted, or switched off, in whatever phase: what can be stopped is, all is given back, it goes."""

from __future__ import annotations

from dataclasses import replace
from typing import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pp_hostd.leader.remedies.poison_pill.steps import Condemn
from pp_hostd.leader.remedies.power_cycle.steps import SwitchOff
from pp_hostd.leader.requests.remediation_objects.remediation import KINDS, METAL3, POISON_PILL, Phase, RemediationKind
from pp_hostd.leader.steps.nodes import DeleteNode
from pp_hostd.model.keys import REQUESTED_BY
from pp_hostd.model.settings import Remediations
from tests.harness.examples import tries
from tests.leader.external.asked import AskedWorld
from tests.leader.power.powered import Bmc

EACH = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.name))
MOST_STEPS = 21


def is_over(world: AskedWorld, kind: RemediationKind) -> bool:
    machine = world.api.get("machines", world.machine_key)
    assert machine is not None
    unclaimed = REQUESTED_BY not in machine["metadata"].get("annotations", {})
    return (
        world.is_gone(kind) and world.is_well() and world.uncondemned() and unclaimed and not world.driver.next_actions
    )


@EACH
@pytest.mark.parametrize("count", range(MOST_STEPS))
def test_an_object_that_is_deleted_after_any_step_leaves_nothing_behind(kind: RemediationKind, count: int) -> None:
    world = AskedWorld()
    world.make(kind)
    world.spend(200, lambda: len(world.done) >= count)
    world.delete(kind)
    world.run(lambda: is_over(world, kind))
    assert world.restored()


@EACH
@pytest.mark.parametrize("count", range(MOST_STEPS))
def test_a_leader_that_ends_after_any_step_is_followed_by_one_that_goes_on(kind: RemediationKind, count: int) -> None:
    world = AskedWorld()
    world.make(kind)
    world.spend(200, lambda: len(world.done) >= count)
    world.a_term("b")
    world.run(lambda: world.phase(kind) is Phase.WAITING and world.is_well() and not world.finalizers(kind))
    assert len(world.steps(DeleteNode)) == 1
    world.delete(kind)
    world.run(lambda: is_over(world, kind))


@EACH
@pytest.mark.parametrize("count", range(MOST_STEPS))
def test_objects_that_are_no_longer_carried_out_are_given_back(kind: RemediationKind, count: int) -> None:
    world = AskedWorld()
    world.make(kind)
    world.spend(200, lambda: len(world.done) >= count)
    world.settings = replace(world.settings, remediations=Remediations())
    world.a_term("a")
    world.run(lambda: world.is_well() and not world.finalizers(kind) and world.uncondemned())


def test_a_host_that_has_not_gone_off_yet_stays_on() -> None:
    world = AskedWorld()
    world.bmc = Bmc.UNATTENDED
    world.make(METAL3)
    world.run(lambda: bool(world.steps(SwitchOff)))
    world.delete(METAL3)
    world.run(lambda: world.is_gone(METAL3))
    world.bmc = Bmc.WORKS
    world.spend(60)
    assert world.boot == 1 and world.is_well()


def test_a_condemnation_that_has_freed_nothing_yet_is_lifted() -> None:
    world = AskedWorld()
    world.make(POISON_PILL)
    world.run(lambda: bool(world.steps(Condemn)))
    world.delete(POISON_PILL)
    world.run(lambda: is_over(world, POISON_PILL))
    assert world.boot == 1 and not world.steps(DeleteNode)


Act = Callable[[AskedWorld], None]


def makes(kind: RemediationKind) -> Act:
    return lambda world: world.make(kind) if world.is_gone(kind) else None


def deletes(kind: RemediationKind) -> Act:
    return lambda world: world.delete(kind)


ACTS: dict[str, Act] = {
    **{f"make {kind.name}": makes(kind) for kind in KINDS},
    **{f"delete {kind.name}": deletes(kind) for kind in KINDS},
    "ask": lambda world: world.request() if world.uncondemned() else None,
    "take back": lambda world: world.lift(),
    "a while": lambda world: world.spend(30),
    "long": lambda world: world.spend(400),
    "relist": lambda world: world.api.relist(),
    "bmc fails": lambda world: setattr(world, "bmc", Bmc.UNREACHABLE),
    "bmc works": lambda world: setattr(world, "bmc", Bmc.WORKS),
}


@tries(100)
@given(st.lists(st.sampled_from(sorted(ACTS)), max_size=20))
def test_whatever_is_asked_by_whom_nothing_is_freed_that_runs_and_all_can_be_ended(acts: list[str]) -> None:
    """FreedWhileRunning is raised by the world itself."""
    world = AskedWorld()
    for act in acts:
        ACTS[act](world)
        world.spend(1)
    world.bmc = Bmc.WORKS
    for kind in KINDS:
        world.delete(kind)
    world.run(lambda: all(is_over(world, kind) for kind in KINDS), seconds=4000)
