"""A term's memory of a node that it condemns, and how that changes: by what its steps found, by what the watch shows,
by who has acknowledged."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import field

from pp_hostd.frozen import frozen, replace
from pp_hostd.leader.node_memory import NodeMemory
from pp_hostd.leader.plan.memory import PAUSE_SECONDS
from pp_hostd.leader.remedies.poison_pill.steps import AskPeers, Condemn
from pp_hostd.leader.steps.nodes import Cordon
from pp_hostd.leader.steps.port import Acknowledged, Inspected, Inspection, NotAcknowledged, StepEnded, StepNews
from pp_hostd.model.node import Node
from pp_hostd.model.observed import MachineSeen, NodeSeen
from pp_hostd.model.promise import Armed, Committed, GateClosed, GateKind, promise_in
from pp_hostd.model.roster import Electorate
from pp_hostd.model.settings import Settings
from pp_hostd.model.step import Written


@frozen
class PillMemory:
    """`drawn` is the id that the Node's cordon names, for the condemnation that follows it.
    `id` is the condemnation that this term wrote onto the version `after` of the machine. The watch has shown it
    without a gap since `unbroken_since`.
    `promise` is what binds the host, as found under this condemnation. The watch has shown it without a gap since
    `stated`. `tokens` are those of the peers that have acknowledged it, `again` the peers that did so once more
    after the wait; `t0_at` is rule 10's. `asked` counts the peers that were asked, `silent` says why some did not
    acknowledge. `committed_at` is when the committed record was first seen, `kubelet_at` when the kubelet's Lease was
    last seen to change, and `kubelet_back` says that it did so in the boot whose gate is closed.
    """

    drawn: int | None = None
    id: int | None = None
    after: str = ""
    unbroken_since: int | None = None
    promise: Armed | None = None
    stated: int | None = None
    tokens: Mapping[str, str] = field(default_factory=dict)
    again: frozenset[str] = frozenset()
    t0_at: float | None = None
    asked: int = 0
    ask_not_before_at: float = 0.0
    silent: Mapping[str, str] = field(default_factory=dict)
    committed_at: float | None = None
    kubelet_at: float | None = None
    kubelet_back: bool = False


def wait_seconds(settings: Settings, promise: Armed) -> float:
    """Rule 11: T + 2W as the node promised, and the margin; a longer safe time wins."""
    bound = promise.self_timeout_seconds + 2 * promise.watchdog_timeout_seconds + settings.leader.margin_seconds
    return max(bound, settings.leader.safe_time_seconds)


# By what the watch shows.


def sighted(memory: NodeMemory, seen: MachineSeen | None) -> NodeMemory:
    """Rule 9: a condemnation that lapsed, if only for a moment, or that the watch may have missed lapsing, is void."""
    pill = memory.part(PillMemory)
    if pill.id is None:
        return memory
    if seen is not None and pill.unbroken_since is None and pill.after == seen.after:
        return memory.with_part(
            replace(pill, unbroken_since=seen.unbroken_since)
        )  # what followed that version is this term's write
    if seen is not None and pill.unbroken_since == seen.unbroken_since:
        return memory
    return NodeMemory(
        left=memory.left, not_before_at=memory.not_before_at, trouble=memory.trouble, stored=memory.stored
    )


def unbroken(pill: PillMemory, seen: NodeSeen | None) -> PillMemory:
    """Rule 12: what binds the host must have been the same all the time. If it was another promise for a moment, the
    host may have lived by that one: who has acknowledged does so again, and the wait starts again."""
    unbroken_since = None if seen is None else seen.unbroken_since
    if pill.promise is None or pill.stated == unbroken_since:
        return pill
    if pill.stated is None:
        return replace(pill, stated=unbroken_since)
    return replace(pill, stated=unbroken_since, tokens={}, t0_at=None)


def counted(pill: PillMemory, electorate: Electorate | None, now: float) -> PillMemory:
    """Rule 10: the clock starts when at least half of the nodes know, and starts again when fewer still do."""
    enough = electorate is not None and 2 * len(pill.tokens) >= electorate.n
    if enough and pill.t0_at is None:
        return replace(pill, t0_at=now, again=frozenset())
    if not enough and pill.t0_at is not None:
        return replace(pill, t0_at=None)
    return pill


# By what its steps found.


def after_news(settings: Settings, memory: NodeMemory, news: list[StepNews]) -> NodeMemory:
    """The news are all of one type. `memory.inspection` is still the one before them."""
    pill, first, before = memory.part(PillMemory), news[0], memory.inspection
    if isinstance(first, (Acknowledged, NotAcknowledged)):
        return memory.with_part(_answered(settings, pill, news))
    for each in news:
        if isinstance(each, Inspected):
            pill, before = _inspected(pill, before, each.inspection), each.inspection
        elif isinstance(each, StepEnded):
            if isinstance(each.step, Condemn) and each.written is Written.DONE:
                return NodeMemory().with_part(PillMemory(id=each.step.id, after=each.step.resource_version))
            pill = _ended(pill, each)
    return memory.with_part(pill)


def _inspected(pill: PillMemory, before: Inspection | None, inspection: Inspection) -> PillMemory:
    record = None if inspection.node is None else inspection.node.node.agent
    promise = promise_in(record)
    covers = inspection.node is not None and not overtaken(inspection.node.node)
    if promise is not None and promise != pill.promise and covers:
        # Another promise binds the host now: acknowledgements count for the earlier promise alone.
        pill = replace(pill, promise=promise, tokens={}, t0_at=None)
    committed = isinstance(record, Committed) and record.id == pill.id
    committed_at = (inspection.ended_at if pill.committed_at is None else pill.committed_at) if committed else None
    renewed = before is None or pill.kubelet_at is None or before.kubelet_renewed != inspection.kubelet_renewed
    kubelet_at = inspection.ended_at if renewed else pill.kubelet_at
    closed = isinstance(record, GateClosed) and record.gate is GateKind.TAINT
    same = before is not None and before.node is not None and before.node.node.agent == record
    kubelet_back = closed and same and (renewed or pill.kubelet_back)
    return replace(pill, committed_at=committed_at, kubelet_at=kubelet_at, kubelet_back=kubelet_back)


def overtaken(node: Node) -> bool:
    """Rule 11: whether the kubelet has reported a boot that the agent's record does not cover, so that workloads may
    run in it: one after the promised boot, or the very boot whose gate is said to be closed. Whatever kept the kubelet
    back, a gate or a taint, was not in its way or is no longer."""
    record = node.agent
    promise = promise_in(record)
    if promise is not None:
        return node.boot not in ("", promise.boot, promise.reported_boot)
    return isinstance(record, GateClosed) and (node.boot not in ("", record.reported_boot) or node.boot == record.boot)


def _answered(settings: Settings, pill: PillMemory, answers: Iterable[StepNews]) -> PillMemory:
    """Rule 10: who has acknowledged, and after the wait who has done so again; who says otherwise counts no longer."""
    tokens, again, silent = dict(pill.tokens), set(pill.again), dict(pill.silent)
    over_at = -math.inf
    if pill.t0_at is not None and pill.promise is not None:
        over_at = pill.t0_at + wait_seconds(settings, pill.promise)
    for each in answers:
        if isinstance(each, NotAcknowledged):
            silent[each.peer] = each.sentence
            if each.answered:
                tokens.pop(each.peer, None)
        elif isinstance(each, Acknowledged) and each.asked_at >= over_at:
            why = _objection(pill, each)
            if why:
                tokens.pop(each.peer, None)
                silent[each.peer] = why
            else:
                silent.pop(each.peer, None)
                tokens[each.peer] = each.token
                again.add(each.peer)
    return replace(pill, tokens=tokens, again=frozenset(again.intersection(tokens)), silent=silent)


def _objection(pill: PillMemory, answer: Acknowledged) -> str:
    """Why this acknowledgement does not count; empty if it does."""
    if answer.id != pill.id:
        return f"it knows of condemnation {answer.id}"
    forgotten = pill.t0_at is not None and pill.tokens.get(answer.peer) != answer.token
    return "it has forgotten the condemnation since" if forgotten else ""


def _ended(pill: PillMemory, ended: StepEnded) -> PillMemory:
    step, done = ended.step, ended.written is Written.DONE
    # Rule 9: an id is tried once. The write of a condemnation whose outcome is unknown may still use it up.
    pill = replace(pill, drawn=step.id if isinstance(step, Cordon) and done else None)
    if isinstance(step, AskPeers) and done:
        return replace(pill, asked=pill.asked + len(step.peers), ask_not_before_at=ended.at + PAUSE_SECONDS)
    return pill
