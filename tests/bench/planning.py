"""How long a leader's plan takes when it works on many nodes of a large cluster."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Iterator

from pp_hostd.leader.steps.nodes import DeleteNode
from pp_hostd.model.keys import AGENT
from pp_hostd.model.observed import Observed
from pp_hostd.model.settings import Leader, Settings
from tests.bench.figure import Figure
from tests.leader.virtual_host import HOST, World

NODES, CONDEMNED = 5000, 50
ENDING = 7
"""So many steps end between two plans: the nodes get to different stages, and some plans hear of 3,500 answers."""


class TimedWorld(World):
    """Takes the time of every plan: of all that the driver does between these two calls."""

    def __init__(self, settings: Settings, peers: tuple[str, ...]) -> None:
        self.took_ms: list[float] = []
        self._began = 0.0
        super().__init__(settings=settings, peers=peers)

    def observed(self) -> Observed:
        observed = super().observed()
        self._began = time.process_time()
        return observed

    def nodes_revision(self) -> int:
        self.took_ms.append((time.process_time() - self._began) * 1000)
        return super().nodes_revision()


def plan_speed() -> Iterator[Figure]:
    """From the requests, all at once, to the Nodes that are given back."""
    world = _asked_for()
    world.took_ms.clear()
    gc.collect()
    gc.freeze()  # a leader has no such cluster in its memory
    _remedy(world)
    gc.unfreeze()
    assert len(world.steps(DeleteNode)) == CONDEMNED
    plan = f"plan: {NODES:,} nodes, {CONDEMNED} condemned"
    yield Figure(f"{plan}, median", statistics.median(world.took_ms), "ms")
    yield Figure(f"{plan}, longest", max(world.took_ms), "ms", at_most=50)


def _asked_for() -> TimedWorld:
    settings = Settings(
        leader=Leader(max_at_once=CONDEMNED, max_unhealthy="100%", resets_per_hour="1000", start_grace_seconds=0.0)
    )
    world = TimedWorld(settings, tuple(f"node-{number:04}" for number in range(1, NODES)))
    for name in (HOST, *list(world.peers)[: CONDEMNED - 1]):
        machine_key = f"machines/{name}"
        machine = world.machine(machine_key)
        assert machine is not None
        world.annotate_node(name, **{AGENT: world.a_promise(machine_uid=machine.uid).render()})
        world.request(machine_key)
    return world


def _remedy(world: TimedWorld) -> None:
    while True:
        due_at = world.driver.turn()
        if world.under_way:
            for _ in world.under_way[:ENDING]:
                world.carry_out()
        elif not all(each.quiet for each in world.driver.next_actions):
            world.pass_until(max(due_at, world.now))
        else:
            return
