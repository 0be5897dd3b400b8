"""The power cycle: a BareMetalHost is switched off, which proves that the host is dead, and on again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from pp_hostd.frozen import replace
from pp_hostd.kube.resources import BARE_METAL_HOSTS, Resource
from pp_hostd.leader.caches import Watch
from pp_hostd.leader.interfaces import READ, Reading, Remedy, rule
from pp_hostd.leader.node_memory import NextAction, NodeMemory
from pp_hostd.leader.plan.memory import awaiting
from pp_hostd.leader.plan.valves import Valves, begun
from pp_hostd.leader.plan.view import Evidence, Target, View
from pp_hostd.leader.remedies.power_cycle.bare_metal_host import (
    HOST,
    Hosts,
    HostsSeen,
    LookAtHost,
    PowerRequest,
    booting_of,
    host_name,
    host_seen,
    is_off,
    kept_off,
    left_behind,
    parse_request,
    reads_off,
    request_of,
)
from pp_hostd.leader.remedies.power_cycle.fallback import relieved
from pp_hostd.leader.remedies.power_cycle.plan import OFF, awaited, is_never_off, own_backup, power_cycled
from pp_hostd.leader.remedies.power_cycle.steps import SwitchOff, SwitchOn
from pp_hostd.leader.steps.api import Json
from pp_hostd.leader.steps.port import Look, StepEnded, StepNews
from pp_hostd.model.keys import REBOOT
from pp_hostd.model.machine_details import HostReference
from pp_hostd.model.observed import MachineSeen, NodeSeen, Observed
from pp_hostd.model.settings import Settings
from pp_hostd.model.step import Written


class PowerCycle(Remedy):
    """For machines that stand on a BareMetalHost."""

    name = "power-cycle"
    first_steps = (SwitchOff,)

    def reading(self, settings: Settings) -> Reading:
        # Also where none is switched off any more: one may still be off.
        hosts = Hosts(settings.power.suffix)
        watch = Watch((BARE_METAL_HOSTS,), (hosts,), unused=not settings.power.cycle)
        return Reading(HOST, (watch,), lambda: HostsSeen(hosts.seen, hosts.names, tuple(hosts.held), watch.late))

    def rights(self, machines: Resource) -> list[Json]:
        return [rule(machines, "delete"), rule(BARE_METAL_HOSTS, f"{READ} patch")]

    def objections(self, kind: Resource, api_object: Json) -> Iterator[str]:
        metadata = api_object["metadata"]
        for key, value in (metadata.get("annotations") or {}).items():
            if key.startswith(f"{REBOOT}/") and isinstance(parse_request(value), PowerRequest):
                what = kind.describe(metadata["namespace"], metadata["name"])
                yield f"{what} is kept off by a leader: let pp-leader finish; or remove its annotation {key}"

    def why_off(self, settings: Settings) -> str:
        return "" if settings.power.cycle else "power cycles are off (power.cycle)"

    def within_reach(self, settings: Settings, observed: Observed) -> Collection[str]:
        if not settings.power.cycle:
            return ()
        claims = {key for claimants in observed.claims.values() for key in claimants if key in observed.machines}
        machines = (observed.machines[key].machine for key in claims)
        return {machine.node or machine.machine_key for machine in machines}

    def at_work_on(self, observed: Observed) -> Collection[str]:
        hosts = observed.part(HostsSeen)
        requests = (hosts.seen[name].request for name in hosts.held)
        return {each.node or each.machine for each in requests if isinstance(each, PowerRequest)}

    def is_down(self, observed: Observed, seen: NodeSeen) -> bool:
        return isinstance(seen.machine_key, str) and reads_off(observed, seen.machine_key)

    def begins_again(self, settings: Settings, seen: MachineSeen) -> bool:
        return settings.power.cycle and seen.host.host is not None

    def serves_without_node(self, settings: Settings, observed: Observed, machine: str) -> bool:
        return self.begins_again(settings, observed.machines[machine]) or machine in kept_off(observed)

    def left_behind(self, observed: Observed, known: Iterable[Target]) -> Iterator[Target]:
        return left_behind(observed, known)

    def has_begun(self, view: View) -> bool:
        others = view.condemned is not None or begun(view.seen) or view.backup_seen is not None
        requested = request_of(view) or booting_of(view)
        return own_backup(view) is not None or (requested is not None and not others)

    def suits(self, view: View) -> bool:
        seen = view.machine_seen
        return view.settings.power.cycle and seen is not None and seen.host.host is not None

    def unfit(self, view: View) -> tuple[str, str]:
        host = host_seen(view)
        if host is None or host.online:
            return "", ""
        return "HostIsOff", f"BareMetalHost {host.machine_key} is meant to be off (spec.online)"

    def next_action(self, view: View, valves: Valves) -> NextAction | None:
        return power_cycled(view, valves)

    def relieves(self, view: View, valves: Valves, next_action: NextAction) -> NextAction | None:
        return relieved(view, valves, next_action)

    def has_marked(self, view: View) -> bool:
        return request_of(view) is not None

    def has_freed(self, view: View) -> bool:
        return is_off(view) and view.seen is None

    def look(self, view: View) -> Look | None:
        return LookAtHost(host_name(view)) if request_of(view) is not None else None

    def evidence(self, view: View) -> Evidence | str | None:
        """It has turned off beside our own request for this machine (rule 11)."""
        inspection = view.memory.inspection
        if inspection is None or not is_off(view):
            return None
        if host_seen(view) not in inspection.beside:
            return "its host is off; reading that once more"
        return Evidence(f"its BareMetalHost {host_name(view)} is off", inspection.began_at, held=True)

    def after_view(self, view: View) -> NodeMemory:
        if is_never_off(view):
            return replace(view.memory, fell_back=True, failures=0, not_before_at=0.0)
        return view.memory

    def after_news(self, settings: Settings, memory: NodeMemory, news: list[StepNews]) -> NodeMemory:
        """The time to switch a host off counts from the first attempt."""
        for each in news:
            if isinstance(each, StepEnded) and isinstance(each.step, SwitchOff) and each.written is not Written.DONE:
                memory = awaiting(memory, OFF, each.at)
            if isinstance(each, StepEnded) and isinstance(each.step, SwitchOn) and each.written is Written.DONE:
                memory = replace(memory, fell_back=memory.fell_back or each.step.falls_back)
        return memory

    def awaited(self, view: View) -> str:
        return awaited(view)

    def explained(self, view: View) -> list[str]:
        seen = view.machine_seen
        reference = None if seen is None else seen.host.host
        if not isinstance(reference, HostReference):
            return [] if reference is None else [f"Its host is not known: {reference}."]
        hosts = view.observed.part(HostsSeen)
        name = reference.machine_key or hosts.names.get(reference.uid, "")
        found = hosts.seen.get(name)
        if found is None:
            return [f"It should stand on BareMetalHost {reference}, and there is none."]
        power = {True: "reads on", False: "reads off", None: "has not reported its power"}[found.powered_on]
        kept = isinstance(found.request, PowerRequest) and f", kept off for {found.request.machine} by the leader"
        troubles = "".join(f". {trouble.capitalize()}" for trouble in (found.obstacle, found.error) if trouble)
        return [f"It stands on BareMetalHost {name}, which {power}{kept or ''}{troubles}."]

    def prospect(self, view: View) -> str:
        return (
            f"has BareMetalHost {host_name(view)} switched off, deletes Node {view.name} once that is read off, frees "
            "its workloads, and powers the host on again"
        )


POWER_CYCLE = PowerCycle()
