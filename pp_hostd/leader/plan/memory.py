"""How a term's memory of a node changes: by what its steps found, by what the watch shows, by who has acknowledged."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby

from pp_hostd.model.case import FEW_FAILURES, Awaited, Case, Term
from pp_hostd.model.node import Node
from pp_hostd.model.observed import MachineSeen, NodeSeen
from pp_hostd.model.promise import Armed, Committed, GateClosed, GateKind
from pp_hostd.model.remedy import (
    Acknowledged,
    AskPeers,
    Condemn,
    Cordon,
    Freed,
    FreeWorkloads,
    Inspected,
    Inspection,
    NotAcknowledged,
    RemedyEnded,
    RemedyNews,
    SpendBudget,
    SwitchOff,
    SwitchOn,
)
from pp_hostd.model.roster import Electorate
from pp_hostd.model.settings import Settings
from pp_hostd.model.written import Written

PAUSE_SECONDS = 1.0
"""After a step that failed, and between two rounds of questions."""
MOST_PAUSE_SECONDS = 30.0
"""After a step that has failed many times in a row."""


def wait_seconds(settings: Settings, promise: Armed) -> float:
    """Rule 11: T + 2W as the node promised, and the margin; a longer safe time wins."""
    bound = promise.self_timeout_seconds + 2 * promise.watchdog_timeout_seconds + settings.leader.margin_seconds
    return max(bound, settings.leader.safe_time_seconds)


def learned(settings: Settings, term: Term, news: Iterable[RemedyNews]) -> Term:
    told: dict[str, list[RemedyNews]] = {}
    for each in news:
        told.setdefault(each.node, []).append(each)
    cases = dict(term.cases)
    for node, about_it in told.items():
        cases[node] = _after(settings, cases.get(node, Case()), about_it)
    return replace(term, cases=cases)


def sighted(case: Case, seen: MachineSeen | None) -> Case:
    """Rule 9: a condemnation that lapsed, if only for a moment, or that the watch may have missed lapsing, is void."""
    if case.id is None:
        return case
    if seen is not None and case.stretch is None and case.after == seen.after:
        return replace(case, stretch=seen.stretch)  # what followed upon that version is what this term wrote
    if seen is not None and case.stretch == seen.stretch:
        return case
    return Case(left=case.left, not_before_at=case.not_before_at, trouble=case.trouble)


def unbroken(case: Case, seen: NodeSeen | None) -> Case:
    """Rule 12: what binds the host must have been the same all the time. If it was another promise for a moment, the
    host may have lived by that one: who has acknowledged does so again, and the wait starts anew."""
    stretch = None if seen is None else seen.stretch
    if case.promise is None or case.stated == stretch:
        return case
    if case.stated is None:
        return replace(case, stated=stretch)
    return replace(case, stated=stretch, tokens={}, t0_at=None)


def counted(case: Case, electorate: Electorate | None, now: float) -> Case:
    """Rule 10: the clock starts when at least half of the nodes know, and starts anew when fewer still do."""
    enough = electorate is not None and 2 * len(case.tokens) >= electorate.n
    if enough and case.t0_at is None:
        return replace(case, t0_at=now, again=frozenset())
    if not enough and case.t0_at is not None:
        return replace(case, t0_at=None)
    return case


def awaiting(case: Case, what: Awaited | None, now: float) -> Case:
    """Since when this has not come."""
    return case if case.awaited is what else replace(case, awaited=what, awaited_at=now)


def _after(settings: Settings, case: Case, told: Iterable[RemedyNews]) -> Case:
    for are_answers, together in groupby(told, lambda each: isinstance(each, (Acknowledged, NotAcknowledged))):
        if are_answers:  # there may be thousands
            case = _answered(settings, case, together)
            continue
        for each in together:
            if isinstance(each, Inspected):
                case = _inspected(case, each.inspection)
            elif isinstance(each, Freed):
                case = replace(case, left=each.left)
            elif isinstance(each, RemedyEnded):
                case = _ended(case, each)
    return case


def _inspected(case: Case, inspection: Inspection) -> Case:
    record = None if inspection.node is None else inspection.node.node.agent
    promise = record.promise if isinstance(record, Committed) else record
    covers = inspection.node is not None and not overtaken(inspection.node.node)
    if isinstance(promise, Armed) and promise != case.promise and covers:
        # What binds the host has changed: who acknowledged it counts for that one alone.
        case = replace(case, promise=promise, tokens={}, t0_at=None)
    committed = isinstance(record, Committed) and record.id == case.id
    committed_at = (inspection.ended_at if case.committed_at is None else case.committed_at) if committed else None
    before = case.inspection
    renewed = before is None or case.kubelet_at is None or before.kubelet_renewed != inspection.kubelet_renewed
    kubelet_at = inspection.ended_at if renewed else case.kubelet_at
    closed = isinstance(record, GateClosed) and record.gate is GateKind.TAINT
    same = before is not None and before.node is not None and before.node.node.agent == record
    return replace(
        case,
        inspection=inspection,
        committed_at=committed_at,
        kubelet_at=kubelet_at,
        kubelet_back=closed and same and (renewed or case.kubelet_back),
    )


def overtaken(node: Node) -> bool:
    """Rule 11: whether the kubelet has reported a boot that the agent's record does not cover, so that workloads may
    run in it: one after the promised boot, or the very boot whose gate is said to be closed. Whatever kept the kubelet
    back, a gate or a taint, was not in its way or is no longer."""
    record = node.agent
    promise = record.promise if isinstance(record, Committed) else record
    if isinstance(promise, Armed):
        return node.boot not in ("", promise.boot, promise.reported_boot)
    return isinstance(record, GateClosed) and (node.boot not in ("", record.reported_boot) or node.boot == record.boot)


def _answered(settings: Settings, case: Case, answers: Iterable[RemedyNews]) -> Case:
    """Rule 10: who has acknowledged, and after the wait who has done so again; who says otherwise counts no longer."""
    tokens, again, silent = dict(case.tokens), set(case.again), dict(case.silent)
    over_at = -math.inf
    if case.t0_at is not None and case.promise is not None:
        over_at = case.t0_at + wait_seconds(settings, case.promise)
    for each in answers:
        if isinstance(each, NotAcknowledged):
            silent[each.peer] = each.sentence
            if each.answered:
                tokens.pop(each.peer, None)
        elif isinstance(each, Acknowledged) and each.asked_at >= over_at:
            why = _objection(case, each)
            if why:
                tokens.pop(each.peer, None)
                silent[each.peer] = why
            else:
                silent.pop(each.peer, None)
                tokens[each.peer] = each.token
                again.add(each.peer)
    return replace(case, tokens=tokens, again=frozenset(again.intersection(tokens)), silent=silent)


def _objection(case: Case, answer: Acknowledged) -> str:
    """Why this acknowledgement does not count, or nothing."""
    if answer.id != case.id:
        return f"it knows of condemnation {answer.id}"
    forgotten = case.t0_at is not None and case.tokens.get(answer.peer) != answer.token
    return "it has forgotten in between" if forgotten else ""


def _failed(case: Case, ended: RemedyEnded) -> Case:
    """What keeps failing is tried less and less often. The time to switch a host off counts from the first attempt."""
    failures = case.failures + (ended.written is not Written.CONFLICT)
    doublings = max(0, failures - FEW_FAILURES)
    pause_seconds = min(PAUSE_SECONDS * 2.0 ** min(doublings, 10), MOST_PAUSE_SECONDS)
    if isinstance(ended.remedy, SwitchOff):
        case = awaiting(case, Awaited.OFF, ended.at)
    return replace(case, not_before_at=ended.at + pause_seconds, trouble=ended.sentence, failures=failures)


def _ended(case: Case, ended: RemedyEnded) -> Case:
    remedy = ended.remedy
    # Rule 9: an id is tried once. The write of a condemnation whose outcome is unknown may still use it up.
    case = replace(case, drawn=remedy.id if isinstance(remedy, Cordon) and ended.written is Written.DONE else None)
    if isinstance(remedy, SpendBudget):  # it counts once the watch shows it, whatever became of the answer
        case = replace(case, counted=remedy.beginning)
    if ended.written is not Written.DONE:
        return _failed(case, ended)
    case = replace(case, not_before_at=0.0, trouble="", failures=0)
    if isinstance(remedy, Condemn):
        return Case(id=remedy.id, after=remedy.resource_version)
    if isinstance(remedy, AskPeers):
        return replace(case, asked=case.asked + len(remedy.peers), ask_not_before_at=ended.at + PAUSE_SECONDS)
    if isinstance(remedy, SwitchOn) and remedy.falls_back:
        return replace(case, fell_back=True)
    if isinstance(remedy, FreeWorkloads) and case.left:
        return replace(case, not_before_at=ended.at + PAUSE_SECONDS, trouble=ended.sentence or "some are still there")
    return case
