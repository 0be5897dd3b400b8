"""Each row of the document's table, by what the leader's driver does in that very situation."""

from __future__ import annotations

import itertools

import pytest

from pp_hostd.leader.remedies.power_cycle.bare_metal_host import PowerRequest
from pp_hostd.leader.remedies.power_cycle.steps import SwitchOff, SwitchOn
from pp_hostd.leader.remedies.power_cycle.table import TABLE, Action
from pp_hostd.leader.steps.machines import Clear
from pp_hostd.leader.steps.nodes import DeleteNode, Recreate, StoreBackup
from pp_hostd.leader.steps.port import LeaderStep
from tests.leader.power.powered import HOST, KEY, Bmc, PoweredWorld

# The document's, but for 0011 and 1011: a host that nobody requests any more is released at once.
DOCUMENT = """
0 1 1 0 add the reboot annotation
1 1 1 0 add the reboot annotation
1 1 0 1 delete the Node
0 0 1 0 nothing
0 0 1 1 remove the reboot annotation
0 1 0 0 nothing
0 1 1 1 nothing
1 0 0 0 nothing
1 0 1 0 nothing
1 0 1 1 remove the reboot annotation
1 1 0 0 nothing
1 1 1 1 nothing
0 1 0 1 remove the needs-remediation annotation
0 0 0 1 remove the reboot annotation
1 0 0 1 remove the reboot annotation
"""
UNNAMED = (0, 0, 0, 0)
WRITES = (SwitchOff, SwitchOn, StoreBackup, DeleteNode, Clear, Recreate)
DOES: dict[Action, list[type[LeaderStep]]] = {
    Action.NOTHING: [],
    Action.SWITCH_OFF: [SwitchOff],
    Action.DELETE_NODE: [StoreBackup, DeleteNode],
    Action.TAKE_REQUEST: [Clear],
    Action.SWITCH_ON: [SwitchOn],
}


def rows() -> list[tuple[tuple[int, int, int, int], Action]]:
    lines = [line.split(maxsplit=4) for line in DOCUMENT.strip().splitlines()]
    return [((int(a), int(b), int(c), int(d)), Action(said)) for a, b, c, d, said in lines]


def in_situation(node: int, requested: int, powered_on: int, kept_off: int) -> PoweredWorld:
    world = PoweredWorld(enrolled=False)
    world.bmc = Bmc.UNATTENDED
    if kept_off:
        world.annotate_host(KEY, PowerRequest(world.machine_key, f"machine-{HOST}", HOST, 1).render())
    if not powered_on:
        world.switch(False)
        world.change_host(status={"poweredOn": False})
    if requested:
        world.request()
    if not node:
        world.delete_node(HOST)
    return world


def test_the_table_is_the_documents_and_has_a_row_for_the_situation_that_it_does_not_name() -> None:
    assert {key: what for key, (what, _) in TABLE.items()} == {**dict(rows()), UNNAMED: Action.NOTHING}
    assert set(TABLE) == set(itertools.product((0, 1), repeat=4))


@pytest.mark.parametrize(("situation", "what"), [*rows(), (UNNAMED, Action.NOTHING)], ids=str)
def test_the_leader_does_what_the_row_says_first(situation: tuple[int, int, int, int], what: Action) -> None:
    world = in_situation(*situation)
    expected = DOES[what]
    world.spend(30)
    done = [type(step) for step in world.steps(*WRITES)]
    assert done[: len(expected)] == expected
    if not expected:
        assert done == []


@pytest.mark.parametrize("situation", sorted(TABLE), ids=str)
def test_whatever_the_situation_a_host_is_not_left_off_once_nobody_asks_for_it(
    situation: tuple[int, int, int, int],
) -> None:
    world = in_situation(*situation)
    if situation[1:] == (1, 0, 0) or situation[1:] == (0, 0, 0):  # somebody else has switched it off
        return
    world.bmc = Bmc.WORKS
    world.run(lambda: world.powered and world.host.request is None and world.uncondemned())
