"""One plain dict says how the agent stands: `status --json` prints it, all else that a person sees renders it.

Ages and times to come are seconds from `at`, the moment of the report on the boot's clock. Bounded, however many peers.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from pp_hostd.frozen import frozen
from pp_hostd.model.boot_commitments import BootCommitments, WatchdogArmed
from pp_hostd.model.evidence import HostContext, PeerAnswered
from pp_hostd.model.gate_kind import gate_kind
from pp_hostd.model.inquiry import Inquiry
from pp_hostd.model.memory import Memory, Proof
from pp_hostd.model.promise import AgentRecord
from pp_hostd.model.settings import Settings
from pp_hostd.model.verdict import State, Verdict
from pp_hostd.timing import FAILED_READS

MAX_ANSWERS = 50
UNARMED = (State.WAITING, State.CONDEMNED)

Report = dict[str, Any]


@frozen
class Extras:
    """The facts that the daemon adds to a report: what the plan waits for, what peers said last (the newest last),
    troubles such as memory that could not be locked, why the last boot ended, when the client certificate ends, and
    which hosts are silent to this one."""

    waiting_for: str = ""
    answers: Sequence[PeerAnswered] = ()
    troubles: tuple[str, ...] = ()
    last_boot: str = ""
    certificate_ends: str = ""
    suspects: tuple[str, ...] = ()


def report(
    settings: Settings,
    host_context: HostContext,
    commitments: BootCommitments,
    memory: Memory,
    verdict: Verdict,
    extras: Extras,
    now: float,
) -> Report:
    """All there is to tell at this moment."""
    may_feed = verdict.state not in UNARMED and verdict.reset is None and verdict.feed_until_at is not None
    return {
        "node": host_context.node,
        "boot": commitments.boot,
        "at": now,
        "mode": settings.agent.mode,
        "state": verdict.state.value,
        "sentence": verdict.sentence,
        "proof": verdict.proof and _proof(verdict.proof, now),
        "feed_until_seconds": _seconds(verdict.feed_until_at, now) if may_feed else None,
        "armed": commitments.watchdog and _watchdog(commitments.watchdog),
        "gate": {
            "kind": gate_kind(settings.agent.gate).value,
            "state": commitments.gate.value,
            "opened_by": host_context.opened_by or None,
        },
        "promise": {
            "stored": None if commitments.stored is None else _record(commitments.stored),
            "outcome_unknown": [_record(each.record) for each in commitments.pending],
        },
        "node_object": _node_object(commitments),
        "machine": host_context.machine
        and {"subject": host_context.machine.machine_key, "uid": host_context.machine.uid},
        "condemned_id": memory.condemned_id,
        "roster": _roster(host_context),
        "reads": _reads(memory, now),
        "inquiry": memory.inquiry and _inquiry(settings, memory.inquiry, now),
        "answers": [_answer(each, now) for each in reversed(extras.answers[-MAX_ANSWERS:])],
        "next": _next(settings, commitments, memory, verdict, now),
        "maintenance": host_context.maintenance and host_context.maintenance.fields(),
        "stopping": host_context.stopping,
        "waiting_for": extras.waiting_for,
        "troubles": list(
            dict.fromkeys(filter(None, (commitments.trouble, host_context.roster_trouble, *extras.troubles)))
        ),
        "last_boot": extras.last_boot,
        "certificate_ends": extras.certificate_ends or None,
        "suspects": list(extras.suspects),
        "settings": {
            "self_timeout_seconds": settings.agent.self_timeout_seconds,
            "read_interval_seconds": settings.api.read_interval_seconds,
            "failed_reads": FAILED_READS,
            "kubelet_unit": settings.agent.kubelet_unit,
            "kubeconfig": settings.api.kubeconfig,
        },
    }


def _proof(proof: Proof, now: float) -> Report:
    return {"source": proof.source.value, "detail": proof.detail, "age_seconds": _seconds(now, proof.at)}


def _watchdog(watchdog: WatchdogArmed) -> Report:
    troubles = list(watchdog.troubles)
    return {"kind": watchdog.kind.value, "timeout_seconds": watchdog.timeout_seconds, "troubles": troubles}


def _record(record: AgentRecord) -> Report:
    """As it stands on the Node, under the same names."""
    fields: Report = json.loads(record.render())
    return fields


def _node_object(commitments: BootCommitments) -> Report:
    look = commitments.look
    if look is None:
        return {"seen": "unknown", "freeing": False}
    freeing = look.node is not None and look.node.freeing is not None
    return {"seen": "present" if look.node is not None else "missing", "freeing": freeing}


def _roster(host_context: HostContext) -> Report | None:
    electorate = host_context.electorate
    if electorate is None:
        return None
    listed = electorate.member(host_context.node) is not None
    return {"version": electorate.version, "nodes": electorate.n, "lists_this_node": listed}


def _reads(memory: Memory, now: float) -> Report:
    last = memory.last_read
    return {
        "failed_in_a_row": memory.failed_reads,
        "last_failure": last.failure if last is not None else "",
        "last_age_seconds": None if last is None else _seconds(now, last.began_at),
        "under_way_seconds": None if memory.reading_since is None else _seconds(now, memory.reading_since),
    }


def _inquiry(settings: Settings, inquiry: Inquiry, now: float) -> Report:
    return {
        "round": inquiry.round,
        "rounds": settings.peers.rounds,
        "age_seconds": _seconds(now, inquiry.started_at),
        "asked": len(inquiry.asked),
        "answers": Counter(reply.said.value for reply in inquiry.replies),
        "summary": inquiry.summary(),
    }


def _answer(answered: PeerAnswered, now: float) -> Report:
    answer = answered.answer
    return {
        "peer": answered.peer,
        "said": "silent" if answer is None else answer.health.value,
        "id": None if answer is None else answer.id,
        "why": answered.silence,
        "age_seconds": _seconds(now, answered.ended_at),
    }


def _next(
    settings: Settings, commitments: BootCommitments, memory: Memory, verdict: Verdict, now: float
) -> Report | None:
    """The next deadline: what happens then if nothing else does."""
    if memory.decision is not None:
        if commitments.watchdog is None:
            return None
        fires_at = memory.decision.at + commitments.watchdog.timeout_seconds
        return {"what": "its watchdog resets this host, if nothing else did", "seconds": _seconds(fires_at, now)}
    if memory.inquiry is not None:
        ends_at = memory.inquiry.round_began_at + settings.peers.round_seconds
        return {"what": "this round of the inquiry ends", "seconds": _seconds(ends_at, now)}
    if verdict.state in UNARMED or verdict.feed_until_at is None:
        return None
    dry_run = settings.agent.mode == "dry-run"
    unfed = f"without a newer proof it {'would stop' if dry_run else 'stops'} feeding its watchdog"
    return {"what": unfed, "seconds": _seconds(verdict.feed_until_at, now)}


def _seconds(later: float | None, earlier: float) -> float | None:
    return None if later is None else round(later - earlier, 3)
