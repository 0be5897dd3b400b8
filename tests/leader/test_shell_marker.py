"""Where the Node is kept: once its condemnation is lifted nothing more of it is freed, whoever lifted it."""

from __future__ import annotations

import pytest

from pp_hostd.leader.steps.machines import Clear
from pp_hostd.leader.steps.nodes import DropBackup, MarkFreeing, Uncordon
from pp_hostd.leader.steps.workloads import FreeWorkloads
from tests.leader.remediation import KINDS, requested
from tests.leader.virtual_host import HOST

STRATEGIES = pytest.mark.parametrize("strategy", ["resources", "out-of-service"])


@STRATEGIES
@KINDS
def test_what_is_lifted_before_anything_was_freed_stays_where_it_is(machines: str, strategy: str) -> None:
    world = requested(machines, strategy)
    world.run(lambda: bool(world.steps(MarkFreeing)))
    world.lift()
    world.run(world.given_back)
    assert not world.steps(FreeWorkloads)
    assert world.pods[HOST] == 2
    assert not world.node(HOST).marked and not world.node(HOST).out_of_service


@STRATEGIES
@KINDS
def test_a_leader_that_follows_one_that_has_lifted_it_frees_nothing_again(machines: str, strategy: str) -> None:
    """The host may be up by then, with pods that no taint keeps away."""
    world = requested(machines, strategy)
    world.run(lambda: bool(world.steps(Clear)))
    passes = len(world.steps(FreeWorkloads))
    world.a_term("b")
    world.run(world.given_back)
    assert len(world.steps(FreeWorkloads)) == passes
    assert [type(step) for step in world.steps()[-3:]] == [Clear, Uncordon, DropBackup]
