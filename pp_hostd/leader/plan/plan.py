"""The leader's plan: what is next for each node that needs work, by the one remedy that has it.

The remedy that began a remediation finishes it. Else the remediation object on whose behalf it is requested decides,
or the machine's annotation; else the first remedy that suits has it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from pp_hostd.frozen import frozen, replace
from pp_hostd.leader.interfaces import Remedy
from pp_hostd.leader.node_memory import NextAction, NodeMemory, Term
from pp_hostd.leader.plan.memory import awaiting, learned
from pp_hostd.leader.plan.request_trouble import request_trouble
from pp_hostd.leader.plan.valves import Reach, Valves
from pp_hostd.leader.plan.view import Electorates, Target, View, targets
from pp_hostd.leader.registry import REGISTRY, Registry
from pp_hostd.leader.steps.port import StepNews
from pp_hostd.model.condemnation import NotRequested, Requested
from pp_hostd.model.machine_details import Claim, MachineDetails
from pp_hostd.model.observed import MachineSeen, Observed
from pp_hostd.model.record import Unreadable
from pp_hostd.model.settings import Settings


@frozen
class Planned:
    """The next actions, the term as it is remembered from here on, and the limits."""

    next_actions: tuple[NextAction, ...]
    term: Term
    valves: Valves


def plan(
    settings: Settings,
    observed: Observed,
    term: Term,
    news: Iterable[StepNews],
    now: float,
    registry: Registry = REGISTRY,
) -> Planned:
    """Total: no cluster, however odd, makes it raise."""
    term = learned(term, news, [partial(each.after_news, settings) for each in registry.all])
    valves = Valves.of(settings, observed, term, now, _reach(registry, settings, observed))
    next_actions: list[NextAction] = []
    memories: dict[str, NodeMemory] = {}
    electorates = Electorates(observed.roster)
    found, doubtful = _targets(registry, settings, observed)
    ordered: set[str] = set()
    for target in sorted(found, key=lambda each: each.key not in term.ordered):
        view = seen_by_all(registry, View.of_target(settings, observed, electorates, term, target, now))
        next_action = _next_action(registry, view, valves)
        if next_action is not None:
            next_actions.append(next_action if next_action.key else replace(next_action, of=target.key))
            memories[target.key] = view.memory
            counted = valves.after(next_action, view)
            if counted is not valves:
                ordered.add(target.key)
            valves = counted
    for target in doubtful:
        view = View.of_target(settings, observed, electorates, term, target, now)
        next_actions.append(view.refuses(request_trouble(view, observed.machines[target.machine].machine, view.seen)))
    for requester in registry.requesters:
        own = requester.next_actions(settings, observed, term, tuple(next_actions), registry.remedies, now)
        for next_action, memory in own:
            if next_action is not None:
                next_actions += [] if next_action.is_idle else [next_action]
                memories[next_action.key] = memory
    term = replace(
        term,
        memories=memories,
        calm_at=valves.calm_at,
        labelled=valves.labelled,
        settles_at=valves.settles_at,
        beginnings=valves.allowance.counted,
        ordered=ordered,
    )
    return Planned(tuple(next_actions), term, valves)


def _reach(registry: Registry, settings: Settings, observed: Observed) -> Reach:
    machines = (observed.machines.get(key) for key in _requested(registry, observed))
    return Reach(
        requested=tuple(seen for seen in machines if seen and _begins(registry, settings, observed, seen)),
        within_reach={name for each in registry.remedies for name in each.within_reach(settings, observed)},
        at_work_on={name for each in registry.remedies for name in each.at_work_on(observed)},
        down={
            name
            for name, seen in observed.nodes.items()
            if seen.control_plane and any(each.is_down(observed, seen) for each in registry.remedies)
        },
        unreachable={name for each in registry.requesters for name in each.unreachable(observed)},
        first_steps=tuple(step for each in registry.remedies for step in each.first_steps),
    )


def _requested(registry: Registry, observed: Observed) -> dict[str, None]:
    return dict.fromkeys(key for each in registry.requesters for key in each.requested(observed))


def _begins(registry: Registry, settings: Settings, observed: Observed, seen: MachineSeen) -> bool:
    """Whether this machine's request counts: not one that is only repeated before its host is back (rule 16)."""
    machine = seen.machine
    if not isinstance(machine.condemnation, Requested):
        return not isinstance(machine.condemnation, NotRequested)
    node = observed.nodes.get(machine.node or "")
    return node is None or not node.away or any(each.begins_again(settings, seen) for each in registry.remedies)


def _targets(registry: Registry, settings: Settings, observed: Observed) -> tuple[list[Target], list[Target]]:
    def serves_without_node(machine: str) -> bool:
        return any(each.serves_without_node(settings, observed, machine) for each in registry.remedies)

    requested = _requested(registry, observed)
    found, doubtful = targets(observed, settings.api.machines, requested, serves_without_node)
    left = {target for each in registry.remedies for target in each.left_behind(observed, found)}
    return sorted(found | left), doubtful


def seen_by_all(registry: Registry, view: View) -> View:
    """The view, with what every remedy remembers of the node, wants to be read, and can prove."""
    for remedy in registry.remedies:
        view = _remembering(view, remedy.after_view(view))
    if any(remedy.has_marked(view) for remedy in registry.remedies):  # begun: another remediation is counted again
        view = replace(view, memory=replace(view.memory, counted=None))
    awaited = next(filter(None, (remedy.awaited(view) for remedy in registry.remedies)), "")
    view = _remembering(view, awaiting(view.memory, awaited, view.now))
    looks = [remedy.look(view) for remedy in registry.remedies]
    evidence = [remedy.evidence(view) for remedy in registry.remedies]
    return replace(
        view,
        looks=tuple(look for look in looks if look is not None),
        evidence=next((each for each in evidence if each is not None), None),
    )


def _remembering(view: View, memory: NodeMemory) -> View:
    """The same view where nothing has changed, as it is for most remedies."""
    return view if memory is view.memory else replace(view, memory=memory)


def _next_action(registry: Registry, view: View, valves: Valves) -> NextAction | None:
    remedy = remedy_for(registry, view)
    if isinstance(remedy, str):
        return view.refuses(remedy)
    next_action = remedy.next_action(view, valves)
    for other in registry.remedies:
        if other is not remedy and next_action is not None:
            next_action = other.relieves(view, valves, next_action) or next_action
    return next_action


def _wanted(about: MachineDetails) -> str | Unreadable | None:
    """The remedy that the remediation object wants, or else the machine's annotation. None if neither names one."""
    return about.claim.flow if isinstance(about.claim, Claim) and about.claim.flow else about.flow


def remedy_for(registry: Registry, view: View) -> Remedy | str:
    """The remedy that has this machine, or why none has."""
    for remedy in registry.remedies:
        if remedy.has_begun(view):
            return remedy
    wanted = None if view.machine_seen is None else _wanted(view.machine_seen.host)
    if isinstance(wanted, Unreadable):
        return f"{wanted}. Correct that annotation, or remove it"
    if wanted is None:
        return next(remedy for remedy in registry.remedies if remedy.suits(view))
    named = registry.remedy(wanted)
    if named is None:
        allowed = ", ".join(remedy.name for remedy in registry.remedies)
        return f"the machine's flow is {wanted!r}, and that is none of {allowed}. Correct that annotation, or remove it"
    off = named.why_off(view.settings)
    return f"{named.name} is requested, and {off}" if off else named
