"""A remediation as it should go, and worlds in which one has come so far."""

from __future__ import annotations

import pytest

from pp_hostd.leader.remedies.poison_pill.steps import AskPeers, Condemn
from pp_hostd.leader.steps.machines import Clear, Inspect
from pp_hostd.leader.steps.nodes import Cordon, DeleteNode, DropBackup, MarkFreeing, Recreate, StoreBackup, Uncordon
from pp_hostd.leader.steps.own_objects import SpendBudget
from pp_hostd.leader.steps.port import LeaderStep
from pp_hostd.leader.steps.workloads import FreeWorkloads
from pp_hostd.model.promise import GateKind
from pp_hostd.model.settings import Leader, Settings
from tests.leader.virtual_host import World

CERTAIN: list[type[LeaderStep]] = [
    SpendBudget,
    Inspect,
    StoreBackup,
    Cordon,
    Condemn,
    Inspect,
    AskPeers,
    AskPeers,
    Inspect,
]
BY_DELETION = [*CERTAIN, StoreBackup, DeleteNode, FreeWorkloads, Recreate, Clear, DropBackup]
BY_MARKER = [*CERTAIN, MarkFreeing, FreeWorkloads, Clear, Uncordon, DropBackup]
KINDS = pytest.mark.parametrize("machines", ["openshift", "node"])
GRACE_SECONDS = Leader().start_grace_seconds
WAIT_SECONDS = 22.0 + 2 * 10.0 + Leader().margin_seconds


def requested(machines: str = "openshift", strategy: str = "node-delete") -> World:
    world = World(machines, Settings(leader=Leader(strategy=strategy)))
    world.request()
    return world


def after_steps(count: int, machines: str = "openshift") -> World:
    """A remediation of which so many steps have taken effect; of the last one the leader does not know yet."""
    world = requested(machines)
    world.run(lambda: len(world.done) == count)
    return world


def waiting(gate: GateKind = GateKind.HOLD) -> World:
    """Half of the nodes know, and 5 s have passed since."""
    world = World(gate=gate)
    world.request()
    world.run(lambda: bool(world.steps(AskPeers)))
    world.driver.turn()
    world.pass_until(world.now + 5.0)
    return world
