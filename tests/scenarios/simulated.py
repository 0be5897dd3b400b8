"""A schedule in the simulator, from where all are well, and what came of it."""

from __future__ import annotations

from pp_hostd.embedded.paging import Query
from pp_hostd.embedded.store import Store
from pp_hostd.kube.resources import Resource
from pp_hostd.model.settings import Settings
from pp_hostd.sim.invariants import Invariants
from pp_hostd.sim.play import Play
from pp_hostd.sim.schedule import CALM_SECONDS, Schedule
from pp_hostd.sim.world import World
from tests.harness.past import Change, Json
from tests.scenarios.account import KINDS, Account, Accounting, Standing


def simulated(schedule: Schedule, settings: Settings) -> tuple[Account, list[Standing]]:
    """With what stood when each act was due. All that holds in any simulation holds here: Violation if it does not."""
    notes: list[tuple[str, str]] = []
    world = World(settings, schedule.nodes, schedule.seed, lambda who, what: notes.append((who, what)))
    invariants, store = Invariants(world), world.api.store
    cues: list[Standing] = []

    def look() -> None:
        unbroken = [name for name, host in world.hosts.items() if host.boot is not None and host.boots == 1]
        cues.append(accounting.standing(_there(store), unbroken))

    for at in (*(trouble.at for trouble in schedule.troubles), schedule.healed_at):
        world.time.at(at, look)  # before the act itself, which is set for the same moment below
    Play(world, schedule)
    world.begin()
    world.time.run(CALM_SECONDS)
    assert all(host.runs_workloads for host in world.hosts.values()), "not everybody is well"
    notes.clear()
    accounting = Accounting(world.names, _there(store))
    watches = {kind: store.watch(kind, lambda: None, Query(resource_version=str(store.revision))) for kind in KINDS}
    world.time.run(schedule.end_at)
    invariants.at_the_end()
    changes = [Change(kind, each.type, each.object()) for kind, watch in watches.items() for each in watch.take()]
    return accounting.account(changes, notes), cues


def _there(store: Store) -> list[tuple[Resource, Json]]:
    return [(kind, found) for kind in KINDS for found in store.list(kind)["items"]]
