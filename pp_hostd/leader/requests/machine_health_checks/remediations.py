"""The Machines that a remediation of a leader has, or had a while ago."""

from __future__ import annotations

from collections.abc import Sequence

from pp_hostd.frozen import replace
from pp_hostd.leader.node_memory import NextAction, Stage
from pp_hostd.leader.plan.valves import begun
from pp_hostd.leader.requests.machine_health_checks.facts import MachineHealthSeen
from pp_hostd.leader.requests.machine_health_checks.judge import Remediations
from pp_hostd.model.condemnation import NotRequested, Requested, drawn_wallclock, last_id
from pp_hostd.model.observed import Observed

RECENT_SECONDS = 2 * 3600.0
"""So long after a condemnation its host may still boot."""
_NOT_BEGUN = (Stage.HELD, Stage.OVER_BUDGET)


def before_this_term(observed: Observed, seen: MachineHealthSeen, now: float, wallclock_seconds: int) -> Remediations:
    """The remediations by leaders before, as far as a new leader can know. The host of a Machine that was condemned
    a while ago, and whose Node is not Ready, may be booting. The time of a condemnation is part of its id. The end of
    the remediation stands nowhere, so nodeStartupTimeout counts from now."""
    released = {}
    for key, machine in seen.machines.items():
        found, node = observed.machines.get(key), observed.nodes.get(machine.node)
        began_wallclock = 0 if found is None else drawn_wallclock(last_id(found.machine.condemnation))
        if wallclock_seconds < began_wallclock + RECENT_SECONDS and not (node is not None and node.ready):
            released[key] = now
    return Remediations(released=released)


def under_remediation(
    before: Remediations, observed: Observed, next_actions: Sequence[NextAction], seen: MachineHealthSeen, now: float
) -> Remediations:
    """Remediation objects and health checks have actions of their own, which only follow from those of Machines."""
    found = {key: observed.machines[key].machine.condemnation for key in observed.requests if key in observed.machines}
    requested = frozenset(key for key, each in found.items() if isinstance(each, Requested))
    held = {key for key, each in found.items() if not isinstance(each, (Requested, NotRequested))}
    held |= {name for name in observed.marked if begun(observed.nodes.get(name))} | set(observed.backups)
    at_work = (each for each in next_actions if not each.of and each.stage not in _NOT_BEGUN)
    held |= {key for each in at_work for key in (each.machine_key, each.node) if key}
    now_held = Remediations(frozenset(held), requested)
    released = {}
    for key, machine in seen.machines.items():
        if before.has(machine) and not now_held.has(machine):
            released[key] = now
        elif key in before.released and not now_held.has(machine):
            released[key] = before.released[key]
    return replace(now_held, released=released)
