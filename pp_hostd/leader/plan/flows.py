"""The leader's plan: every node that is not plainly well, and which flow has it. Never two at once.

What has begun is finished by the flow that began it. Else the remediation object on whose behalf it is asked for
decides, or the machine's annotation; else a machine that stands on a BareMetalHost is power-cycled where that flow is
on, and every other host has to reset itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pp_hostd.frozen import frozen
from pp_hostd.leader.plan.allowance import Allowance
from pp_hostd.leader.plan.electorates import Electorates
from pp_hostd.leader.plan.external_remediation import remediations
from pp_hostd.leader.plan.freeing import undeletable
from pp_hostd.leader.plan.memory import awaiting, counted, learned, sighted, unbroken
from pp_hostd.leader.plan.poison_pill import poisoned, trouble_with
from pp_hostd.leader.plan.power_cycle import awaited, is_never_off, own_backup, power_cycled, requested_off, switched_on
from pp_hostd.leader.plan.power_trouble import host_trouble, unfit, without_host
from pp_hostd.leader.plan.requested_again import awaited_return
from pp_hostd.leader.plan.targets import Target, targets
from pp_hostd.leader.plan.valves import Valves, begun
from pp_hostd.leader.plan.view import View
from pp_hostd.model.case import Awaited, Case, Course, Stage, Term
from pp_hostd.model.machine_host import Claim, Flow
from pp_hostd.model.observed import Observed
from pp_hostd.model.record import Unreadable
from pp_hostd.model.remedy import RemedyNews
from pp_hostd.model.settings import Settings


@frozen
class Planned:
    """A course for every node that is not plainly well, the term as it is remembered from here on, and the budget."""

    courses: tuple[Course, ...]
    term: Term
    allowance: Allowance


def plan(settings: Settings, observed: Observed, term: Term, news: Iterable[RemedyNews], now: float) -> Planned:
    """Total: no cluster, however odd, makes it raise."""
    term = learned(settings, term, news)
    valves = Valves.of(settings, observed, term, now)
    courses: list[Course] = []
    cases: dict[str, Case] = {}
    electorates = Electorates(observed.roster)
    found, doubtful = targets(settings, observed)
    for target in found:
        view = _view(settings, observed, electorates, term, target, now)
        course = _course(view, valves)
        if course is not None:
            courses.append(course if course.key else replace(course, of=target.key))
            cases[target.key] = view.case
            valves = valves.after(course, view)
    for target in doubtful:
        view = View(settings, observed, electorates, term, Case(), target.node, target.machine, now)
        courses.append(view.refuses(trouble_with(view, observed.machines[target.machine].machine, view.seen)))
    for course, case in remediations(settings, observed, term, tuple(courses), now):
        if course is not None:
            courses.append(course)
            cases[course.key] = case
    allowance = valves.allowance
    term = replace(term, cases=cases, calm_at=valves.calm_at, beginnings=allowance.counted)
    return Planned(tuple(courses), term, allowance)


def _view(
    settings: Settings, observed: Observed, electorates: Electorates, term: Term, target: Target, now: float
) -> View:
    case = sighted(term.cases.get(target.key, Case()), observed.machines.get(target.machine))
    case = unbroken(case, observed.nodes.get(target.node))
    electorate = None if case.promise is None else electorates.of(case.promise)
    case = counted(case, None if isinstance(electorate, Unreadable) else electorate, now)
    view = View(settings, observed, electorates, term, case, target.node, target.machine, now, target.host)
    if view.condemned is not None or view.request is not None:  # begun: another remediation is counted again
        case = replace(case, counted=None)
    view = replace(view, case=awaiting(case, awaited(view) or awaited_return(view), now))
    if is_never_off(view):
        view = replace(view, case=replace(view.case, fell_back=True, failures=0, not_before_at=0.0))
    return view


def _course(view: View, valves: Valves) -> Course | None:
    flow = flow_of(view)
    if isinstance(flow, str):
        return view.refuses(flow)
    if flow is Flow.POWER_CYCLE:
        return power_cycled(view, valves)
    course = poisoned(view, valves)
    return _fallen_back(view, valves, course) if course is not None and _is_stuck(view, course) else course


def flow_of(view: View) -> Flow | str:
    """The flow that has this machine, or why none has."""
    seen = view.machine_seen
    if own_backup(view) is not None:
        return Flow.POWER_CYCLE
    if view.condemned is not None or begun(view.seen) or view.backup_seen is not None:
        return Flow.POISON_PILL
    if view.request is not None:
        return Flow.POWER_CYCLE
    confirmed = view.seen is not None and view.seen.confirmed is not None
    if view.case.fell_back or confirmed:  # a person's word that it is dead needs no power
        return Flow.POISON_PILL
    claim = None if seen is None else seen.host.claim
    asked = claim.flow if isinstance(claim, Claim) else None if seen is None else seen.host.flow
    if isinstance(asked, Unreadable):
        return f"{asked}. Correct that annotation, or remove it"
    if asked is Flow.POWER_CYCLE and not view.settings.power.cycle:
        return "it is asked for by a power cycle, and that flow is off (power.cycle)"
    if asked is not None:
        return asked
    on_host = seen is not None and seen.host.host is not None
    return Flow.POWER_CYCLE if view.settings.power.cycle and on_host else Flow.POISON_PILL


# Where a host can't be relied upon to reset itself, and falling back is allowed.


def _is_stuck(view: View, course: Course) -> bool:
    power, case, seen = view.settings.power, view.case, view.machine_seen
    if not (power.cycle and power.fallback) or case.fell_back or seen is None or seen.host.host is None:
        return False
    unheard = case.awaited is Awaited.ACKNOWLEDGED and view.now >= case.awaited_at + power.off_timeout_seconds
    return (course.refused and not case.keeps_failing) or (unheard and course.stage is Stage.ACKNOWLEDGING)


def _fallen_back(view: View, valves: Valves, course: Course) -> Course | None:
    """Before anything has begun, a power cycle; once it is condemned, power that reads off ends the wait (rule 11)."""
    machine, host = view.machine, view.host_seen
    if view.request is not None and host is not None and host.powered_on is False and not view.is_off:
        return switched_on(view, host, f'{course.sentence}; its "off" proves nothing: powers it on')
    if view.condemned is None and not begun(view.seen):
        return power_cycled(view, valves)
    if machine is None or view.condemned is None or view.request is not None:
        return course
    trouble = without_host(view) if host is None else host_trouble(view, host) or unfit(host)
    trouble = trouble or ("" if view.seen is None else undeletable(view.seen))
    if host is None or trouble or host.powered_on is not True:
        why = trouble or f"BareMetalHost {view.host} reads off already, and not by our request"
        return replace(course, sentence=f"{course.sentence}; and it can't be switched off: {why}")
    step = requested_off(view, machine, host, view.condemned.id)
    return view.does(Stage.SWITCHING_OFF, step, f"{course.sentence}; so has it switched off ({host.subject})")
