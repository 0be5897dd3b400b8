"""A remedy that nobody ships: the host's outlet of a power strip is switched off. All of it is in this one file."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field, replace

from pp_hostd.frozen import frozen
from pp_hostd.kube.resources import Resource
from pp_hostd.leader.caches import Cache, Watch
from pp_hostd.leader.interfaces import READ, Reading, Remedy, rule
from pp_hostd.leader.node_memory import NextAction, Stage
from pp_hostd.leader.plan.freeing import deleted
from pp_hostd.leader.plan.valves import Valves, handed_over
from pp_hostd.leader.plan.view import View
from pp_hostd.leader.steps.api import Json
from pp_hostd.leader.steps.machines import Clear, Inspect
from pp_hostd.leader.steps.nodes import Complete, Recreate
from pp_hostd.leader.steps.port import Kind, Port, conditional
from pp_hostd.leader.steps.workloads import Freeing, FreeWorkloads
from pp_hostd.model.backup import Backup
from pp_hostd.model.condemnation import Requested, last_id
from pp_hostd.model.observed import Observed
from pp_hostd.model.record import NAME, OPAQUE, Fields, Unreadable, read
from pp_hostd.model.settings import Settings

OUTLETS = Resource("trial.example", "v1", "Outlet", "outlets")
OUTLET = Kind("Outlet")


@frozen
class Outlet:
    """`cut` is what the leader wants, `dead` what the power strip says."""

    name: str
    uid: str
    resource_version: str
    cut: bool
    dead: bool


@frozen
class OutletsSeen:
    """By namespace/name."""

    seen: Mapping[str, Outlet] = field(default_factory=dict)


class Outlets(Cache[Outlet]):
    """All outlets."""

    def __init__(self) -> None:
        super().__init__(OUTLET.called)
        self.seen: dict[str, Outlet] = {}

    def _name(self, metadata: Fields) -> str:
        return f"{metadata.text('namespace', NAME)}/{super()._name(metadata)}"

    def _find(self, api_object: object) -> Outlet | Unreadable:
        return read("the outlet", lambda source: _outlet(Fields(source)), api_object)

    def _take(self, name: str, found: Outlet | None) -> None:
        self.seen.pop(name, None)
        self.seen.update({} if found is None else {name: found})


def _outlet(source: Fields) -> Outlet:
    metadata = source.section("metadata")
    cut, dead = source.section("spec").anything("cut"), source.section("status").anything("dead")
    version = metadata.text("resourceVersion", OPAQUE)
    return Outlet(metadata.text("name", NAME), metadata.text("uid", OPAQUE), version, bool(cut), bool(dead))


@frozen
class Cut:
    """Cut the outlet's power, or give it back."""

    outlet: Outlet
    cut: bool

    async def run(self, port: Port) -> str:
        name, version = self.outlet.name, self.outlet.resource_version
        patch = conditional({"spec": {"cut": self.cut}}, self.outlet.uid, version)
        write = lambda: port.served((OUTLETS,)).patch(f"strip/{name}", patch)  # noqa: E731
        return await port.write(write, OUTLET, f"strip/{name}", version)


class Trial(Remedy):
    """For nodes that have an outlet of their name."""

    name = "trial"
    first_steps = (Cut,)

    def reading(self, settings: Settings) -> Reading:
        outlets = Outlets()
        return Reading(OUTLET, (Watch((OUTLETS,), (outlets,)),), lambda: OutletsSeen(outlets.seen))

    def rights(self, machines: Resource) -> list[Json]:
        return [rule(OUTLETS, f"{READ} patch")]

    def within_reach(self, settings: Settings, observed: Observed) -> Collection[str]:
        return {outlet.name for outlet in observed.part(OutletsSeen).seen.values()}

    def at_work_on(self, observed: Observed) -> Collection[str]:
        return {outlet.name for outlet in observed.part(OutletsSeen).seen.values() if outlet.cut}

    def has_begun(self, view: View) -> bool:
        return self.has_marked(view)

    def suits(self, view: View) -> bool:
        return _of(view) is not None

    def has_marked(self, view: View) -> bool:
        outlet = _of(view)
        return outlet is not None and outlet.cut

    def next_action(self, view: View, valves: Valves) -> NextAction | None:
        outlet, machine, stored = _of(view), view.machine, view.backup_seen
        backup = None if stored is None else stored.backup
        if outlet is None or machine is None:
            return None
        if isinstance(backup, Backup) and (view.seen is None or view.seen.node.uid != backup.uid):
            return self._given_back(view, outlet, backup)
        if not isinstance(machine.condemnation, Requested):
            return view.does(Stage.SWITCHING_ON, Cut(outlet, False), "gives its outlet power") if outlet.cut else None
        if not outlet.cut:
            first = valves.held(view) or handed_over(view) or valves.allowance.next_write(view, Stage.SWITCHING_OFF)
            return first or view.does(Stage.SWITCHING_OFF, Cut(outlet, True), "cuts its outlet")
        if not outlet.dead or view.seen is None:
            return view.waits(Stage.SWITCHING_OFF, "waits until its outlet is dead")
        inspection = view.memory.inspection
        if inspection is None or inspection.node != view.seen or inspection.machine != machine:
            return view.does(
                Stage.CHECKING, Inspect(view.machine_key, view.name), "its outlet is dead: looks once more"
            )
        found = inspection.backup
        wanted = replace(found, id=last_id(machine.condemnation) + 1) if isinstance(found, Backup) else found
        return deleted(view, view.seen, wanted, "its outlet is dead")

    def _given_back(self, view: View, outlet: Outlet, backup: Backup) -> NextAction | None:
        machine, seen = view.machine, view.seen
        if seen is None and view.memory.left != 0:
            return view.does(Stage.FREEING, FreeWorkloads(view.name, Freeing.ALL), "frees its workloads")
        if seen is None:
            return view.does(Stage.RESTORING, Recreate(backup), "recreates its Node")
        if seen.freed != backup.id:
            return view.does(Stage.RESTORING, Complete(backup, seen.node.uid), "completes its Node")
        if machine is not None and isinstance(machine.condemnation, Requested):
            clear = Clear(view.machine_key, machine.uid, machine.resource_version, backup.id)
            return view.does(Stage.CLEARING, clear, "takes the request off its machine")
        # With the outlet's mark gone, a remedy that gives Nodes back by their backup alone drops that.
        return view.does(Stage.SWITCHING_ON, Cut(outlet, False), "gives its outlet power")

    def explained(self, view: View) -> list[str]:
        outlet = _of(view)
        return [] if outlet is None else [f"Its outlet is {'dead' if outlet.dead else 'live'}."]

    def prospect(self, view: View) -> str:
        return f"cuts outlet {view.name}"


def _of(view: View) -> Outlet | None:
    return view.observed.part(OutletsSeen).seen.get(f"strip/{view.name}")


TRIAL = Trial()
