"""Whether this host may live on: evidence and memory go in, a verdict comes out. Pure and total.

The rules are those of the design, section 4; each is named at the line that keeps it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from pp_hostd.frozen import replace
from pp_hostd.model.condemnation import Condemned, NotRequested, Requested
from pp_hostd.model.evidence import Evidence, LinkChanged, PeerAnswered, Read, WatchedCondemned
from pp_hostd.model.inquiry import Inquiry, Reply, Said, is_outage, next_round, weigh
from pp_hostd.model.memory import Decision, LastRead, Lifted, Memory, Missing, Outage, Proof, Source, Standing
from pp_hostd.model.record import Unreadable
from pp_hostd.model.settings import Settings
from pp_hostd.model.verdict import Judgement, State, Verdict
from pp_hostd.timing import FAILED_READS, tick_seconds

DRY_RUN = "dry-run"


def judge(
    settings: Settings, standing: Standing, memory: Memory, evidence: Iterable[Evidence], now: float, seed: int
) -> Judgement:
    """One finished judgement: only this feeds the watchdog (rule 2). The seed is new each time, for rule 3's choice."""
    evidence, inquiry = list(evidence), memory.inquiry
    for each in evidence:
        memory = _absorbed(settings, standing, memory, each)
    answers = [each for each in evidence if isinstance(each, PeerAnswered)]
    memory = _after_answers(settings, standing, memory, inquiry, answers)
    memory = _without_lost_read(settings, standing, memory, now)
    memory = _left_alone(standing, memory)
    if settings.agent.mode == DRY_RUN:
        memory = _pardoned(memory)
    round_before = memory.inquiry.round if memory.inquiry is not None else 0
    if not standing.armed:
        memory = replace(memory, inquiry=None) if memory.inquiry is not None else memory
    elif memory.decision is None:
        memory = _inquired(settings, standing, memory, now, seed)
        memory = _expired(standing, memory, now)
    inquiry = memory.inquiry
    ask = inquiry.asked_in_round if inquiry is not None and inquiry.round > round_before else ()
    read_at = _read_at(settings, standing, memory, now)
    read = memory.reading_since is None and read_at <= now
    if read:
        memory = replace(memory, reading_since=now, check_at=None)
    return Judgement(_verdict(settings, standing, memory, now, read, read_at, ask), memory)


def _absorbed(settings: Settings, standing: Standing, memory: Memory, evidence: Evidence) -> Memory:
    if isinstance(evidence, Read):
        return _after_read(standing, memory, evidence)
    if isinstance(evidence, WatchedCondemned):
        return _after_watch(standing, memory, evidence)
    if isinstance(evidence, LinkChanged):
        # At once, and yet a link that flaps costs no more reads than an API that fails.
        last_at = memory.last_read.began_at if memory.last_read is not None else -math.inf
        last_at = last_at if memory.reading_since is None else memory.reading_since
        return replace(memory, check_at=max(evidence.at, last_at + settings.api.retry_seconds))
    return memory  # an answer: all of them are counted together


def _after_read(standing: Standing, memory: Memory, read: Read) -> Memory:
    condemnation, failure, gone = None, read.failure or "the reply holds no machine", read.missing
    if gone:
        failure = read.failure or "the machine does not exist"  # rule 1: no proof, a failed read
    elif read.machine is not None:
        condemnation = read.machine.condemnation
        if isinstance(condemnation, Unreadable):
            failure = f"{read.machine.machine_key}: {condemnation}"
        if standing.machine_uid not in (None, read.machine.uid):  # rule 1: of the uid in the promise
            condemnation, failure, gone = (
                None,
                f"{read.machine.machine_key} has another uid than the one promised",
                True,
            )
    missing = Missing(read.began_at, read.ended_at) if gone and read.machine_key == standing.machine != "" else None
    memory = replace(memory, missing=missing) if missing is not None or memory.missing is not None else memory
    if isinstance(condemnation, Condemned):
        memory = _finished(memory, read, f"condemned under id {condemnation.id}")
        return _condemned(standing, memory, condemnation.id, "its machine is condemned", read.ended_at)
    if isinstance(condemnation, (NotRequested, Requested)) and read.machine is not None:
        memory = _finished(memory, read, "").having_seen_lifted(read.machine.uid, condemnation.last_id)
        memory = replace(_acquitted(memory, read.began_at), condemned_id=None, missing=None, machine_gone=False)
        return _proven_by_read(memory, read.began_at)
    memory, watched = _finished(memory, read, failure), memory.watched
    if watched is not None and read.began_at >= watched.at:
        memory = replace(memory, watched_failures=memory.watched_failures + 1)
        answered = read.machine is not None or read.missing
        if answered or memory.watched_failures >= FAILED_READS:  # rule 1: no read can tell otherwise
            return _condemned(standing, memory, watched.id, "its machine is condemned", read.ended_at)
    return _failed(memory, read.began_at)


def _acquitted(memory: Memory, began_at: float) -> Memory:
    """Rule 1: what a watch reported before this read began, of one's own or of a peer, was old news."""
    if memory.watched is None or began_at < memory.watched.at:
        return memory
    return replace(memory, watched=None, watched_failures=0)


def _left_alone(standing: Standing, memory: Memory) -> Memory:
    """Rule 1: a missing machine proves that the host is not being fenced if a later read finds its Node untouched. The
    leader taints the Node before it condemns, and frees nothing without a condemned machine."""
    missing = memory.missing
    if missing is None or standing.untouched_at < missing.ended_at or memory.decision is not None:
        return memory
    memory = replace(memory, missing=None, machine_gone=True, condemned_id=None)
    return _proven_by_read(memory, missing.began_at)


def _finished(memory: Memory, read: Read, failure: str) -> Memory:
    """An outage verdict gives up the read under way, which the next one may overtake."""
    since, last = memory.reading_since, memory.last_read
    if since is not None and since <= read.began_at:
        since = None
    if last is None or last.began_at <= read.began_at:
        last = LastRead(read.began_at, read.ended_at, failure)
    return replace(memory, reading_since=since, last_read=last)


def _failed(memory: Memory, began_at: float) -> Memory:
    """Rule 3 counts failures in a row, so none of a read that a younger proof has overtaken. Reads beside an inquiry
    may prove, and bring no other inquiry nearer."""
    proven_at = memory.proof.at if memory.proof is not None else -math.inf
    since_at = memory.outage.ended_at if memory.outage is not None else proven_at
    counts = memory.inquiry is None and began_at >= since_at
    return replace(memory, failed_reads=memory.failed_reads + 1) if counts else memory


def _proven_by_read(memory: Memory, began_at: float) -> Memory:
    """Rule 1: a proof counts from when the request was sent. A read that was overtaken ends no outage and no inquiry
    that is younger."""
    if memory.proof is not None and memory.proof.at > began_at:
        return memory
    proof = Proof(began_at, Source.OWN_READ)
    if memory.inquiry is not None and memory.inquiry.started_at > began_at:
        return replace(memory, proof=proof)
    return _proven(memory, proof)


def _proven(memory: Memory, proof: Proof, outage: Outage | None = None) -> Memory:
    return replace(memory, proof=proof, failed_reads=0, inquiry=None, outage=outage)


def _after_answers(
    settings: Settings, standing: Standing, memory: Memory, inquiry: Inquiry | None, answers: Sequence[PeerAnswered]
) -> Memory:
    """Each peer counts once, however late or often it answers, and only if this inquiry asked it. A read that came with
    the answers may have ended it: then a younger "healthy" is still the better proof."""
    if inquiry is None or not answers or memory.decision is not None:
        return memory
    proof_at = memory.proof.at if memory.inquiry is None and memory.proof is not None else -math.inf
    awaited = set(inquiry.asked).difference(reply.peer for reply in inquiry.replies)
    replies: list[Reply] = []
    for each in answers:
        # Silence may end by itself before the round does: a link that comes back in time finds the peers again.
        if each.answer is None or each.peer not in awaited or each.began_at < inquiry.started_at:
            continue
        uid = standing.machine_uid or ""  # whom the inquiry is about
        said, condemnation_id = weigh(each.answer, [lifted.id for lifted in memory.lifted if lifted.uid == uid])
        # Rule 4: the peer's read was made for this host, so what it found lifted this host has seen lifted.
        memory = memory.having_seen_lifted(uid, each.answer.lifted_id)
        # Rule 3: any "healthy" is proof, dated by the question (rule 1).
        if said is Said.HEALTHY and each.began_at > proof_at:
            # The next read is due as after a read of one's own, even if one has failed beside the inquiry since.
            due = replace(memory, check_at=each.began_at + settings.api.read_interval_seconds)
            return _proven(_acquitted(due, each.began_at), Proof(each.began_at, Source.PEER, each.peer))
        awaited.discard(each.peer)
        replies.append(Reply(each.peer, said, condemnation_id))
    if memory.inquiry is None:
        return memory
    return replace(memory, inquiry=replace(inquiry, replies=(*inquiry.replies, *replies)))


def _after_watch(standing: Standing, memory: Memory, evidence: WatchedCondemned) -> Memory:
    """Rule 1: a watch can condemn, once a read that began later does not say otherwise. A condemnation that a read has
    found lifted is old news (rule 4)."""
    if Lifted(evidence.uid, evidence.id) in memory.lifted or standing.machine_uid not in (None, evidence.uid):
        return memory
    if not standing.armed:
        return _condemned(standing, memory, evidence.id, "its machine is condemned", evidence.at)
    if memory.watched is not None and memory.watched.id == evidence.id:
        return memory  # the read that tells is due or under way
    # A read that began before can't tell.
    return replace(memory, watched=evidence, watched_failures=0, reading_since=None)


def _condemned(standing: Standing, memory: Memory, condemnation_id: int | None, cause: str, at: float) -> Memory:
    if not standing.armed:  # rule 6: nothing was started in this boot, so there is nothing to reset
        return replace(memory, condemned_id=condemnation_id)
    if memory.decision is not None:  # rule 7: once
        return memory
    return replace(memory, inquiry=None, decision=Decision(at, cause, condemnation_id))


def _without_lost_read(settings: Settings, standing: Standing, memory: Memory, now: float) -> Memory:
    """A read that has not even reported its failure long after its deadline is a failed read."""
    since, deadline = memory.reading_since, settings.api.read_deadline_seconds
    if since is None or now < since + 2 * deadline:
        return memory
    return _after_read(standing, memory, Read(since, now, failure=f"the read did not end within {2 * deadline:g} s"))


def _inquired(settings: Settings, standing: Standing, memory: Memory, now: float, seed: int) -> Memory:
    """Begin, continue or conclude the inquiry of rule 3."""
    inquiry = memory.inquiry
    if inquiry is None:
        enough = 1 if memory.outage is not None else FAILED_READS  # rule 3: after an outage verdict, one
        if memory.failed_reads < enough or not standing.peers:
            return memory
        begun = Inquiry(started_at=now, seed=seed, round=0, round_began_at=now, asked=(), in_round=0)
        return replace(memory, inquiry=next_round(begun, standing.peers, settings.peers.rounds, now))
    if not inquiry.in_round:  # a restart has lost the questions of this round
        return replace(memory, inquiry=next_round(inquiry, standing.peers, settings.peers.rounds, now))
    if not inquiry.round_over(settings.peers.round_seconds, now):
        return memory
    if is_outage(inquiry.replies, standing.node, standing.electorates):
        summary = inquiry.summary()
        outage = Outage(inquiry.started_at, now, summary)
        # Rule 3: the verdict is dated by the start of its inquiry. A read still under way delays no other.
        proven = _proven(memory, Proof(inquiry.started_at, Source.OUTAGE, summary), outage)
        return replace(proven, reading_since=None)
    if inquiry.exhausted(standing.peers, settings.peers.rounds):
        return _outvoted(standing, memory, inquiry, now)
    return replace(memory, inquiry=next_round(inquiry, standing.peers, settings.peers.rounds, now))


def _outvoted(standing: Standing, memory: Memory, inquiry: Inquiry, now: float) -> Memory:
    """Rule 3: all were asked, nobody says "healthy", and too few say "api-error". Accusers only take themselves out of
    that majority, and end no inquiry early: the next peer may say "healthy". If a peer finds no machine, the API
    answers it, so the host reads first: a missing machine may be proof (rule 1)."""
    if standing.machine and inquiry.said(Said.NOT_FOUND):
        return replace(memory, inquiry=None, outage=None, failed_reads=FAILED_READS - 1, reading_since=None)
    accusers = inquiry.said(Said.UNHEALTHY, Said.NOT_FOUND)
    known = max((reply.id for reply in accusers if reply.id is not None), default=None)
    cause = f"no peer confirms that it is healthy: {inquiry.summary()}"
    if accusers:
        cause = f"{accusers[0].peer} says {accusers[0].said.value}, and no majority says api-error: {inquiry.summary()}"
    return _condemned(standing, memory, known, cause, now)


def _expired(standing: Standing, memory: Memory, now: float) -> Memory:
    """Rule 2: no proof for T. From here on the leader may count on the reset, so no later proof undoes it."""
    if memory.proof is None or now < memory.proof.at + standing.self_timeout_seconds:
        return memory
    cause = f"no proof for {standing.self_timeout_seconds:g} s that its machine is not condemned"
    return _condemned(standing, memory, None, cause, now)


def _pardoned(memory: Memory) -> Memory:
    """In a dry run nothing was reset, so judging goes on with the next proof."""
    decision, proof = memory.decision, memory.proof
    if decision is None or proof is None or proof.at <= decision.at:
        return memory
    return replace(memory, decision=None)


def _read_at(settings: Settings, standing: Standing, memory: Memory, now: float) -> float:
    """When the next read is due."""
    last, api = memory.last_read, settings.api
    if last is None or (memory.watched is not None and last.began_at < memory.watched.at):
        return now
    due = last.began_at + api.read_interval_seconds
    if memory.outage is not None and last.began_at < memory.outage.ended_at:
        due = max(memory.outage.started_at + api.read_interval_seconds, memory.outage.ended_at)
    elif memory.proof is not None and memory.proof.at > last.began_at:  # a peer's: as after a read of one's own
        due = memory.proof.at + api.read_interval_seconds
    elif last.failure and (standing.armed or memory.failed_reads < FAILED_READS):
        due = last.ended_at + api.retry_seconds
    return due if memory.check_at is None else min(due, memory.check_at)


def _verdict(
    settings: Settings,
    standing: Standing,
    memory: Memory,
    now: float,
    read: bool,
    read_at: float,
    ask: tuple[str, ...],
) -> Verdict:
    proof = memory.proof
    until = None if proof is None else proof.at + standing.self_timeout_seconds
    alive = proof is not None and until is not None and proof.at <= now < until  # rule 2
    feed = standing.armed and memory.decision is None and alive
    wakes = [now + min(tick_seconds(settings), standing.watchdog_timeout_seconds / 4)]
    if memory.reading_since is None:
        wakes.append(read_at)
    if memory.inquiry is not None:
        wakes.append(memory.inquiry.round_began_at + settings.peers.round_seconds)
    if feed and until is not None:
        wakes.append(until)
    state = _state(standing, memory)
    return Verdict(
        at=now,
        state=state,
        sentence=_sentence(settings, standing, memory, state),
        proof=memory.proof,
        feed_until_at=until,
        feed=feed,
        read=read,
        ask=ask,
        reset=memory.decision,
        wake_at=max(now, min(wakes)),
    )


def _state(standing: Standing, memory: Memory) -> State:
    if memory.decision is not None:
        return State.RESETTING
    if not standing.armed:
        return State.WAITING if memory.condemned_id is None else State.CONDEMNED
    if memory.outage is not None:
        return State.OUTAGE
    if memory.proof is None or memory.failed_reads or memory.inquiry is not None:
        return State.SUSPECT
    return State.HEALTHY


def _sentence(settings: Settings, standing: Standing, memory: Memory, state: State) -> str:
    why = memory.last_read.failure if memory.last_read is not None else ""
    if memory.decision is not None:
        named = "" if memory.decision.id is None else f" (condemnation {memory.decision.id})"
        would = "would reset this host (dry run)" if settings.agent.mode == DRY_RUN else "resetting this host"
        return f"{would}: {memory.decision.cause}{named}"
    if state is State.CONDEMNED:
        condemned = f"condemned under id {memory.condemned_id}"
        return f"{condemned}, and not armed: waiting until the leader makes the Node usable again"
    if state is State.WAITING:
        return f"not armed: {standing.waiting_for or why or 'the first read is under way'}"
    if memory.inquiry is not None:
        rounds = f"round {memory.inquiry.round} of {settings.peers.rounds}"
        return f"asks its peers, {rounds}: {memory.inquiry.summary()}; its own read failed: {why}"
    if memory.outage is not None:
        return f"the control plane is out, not this host, which stays up: {memory.outage.summary}"
    if memory.failed_reads:
        return f"{memory.failed_reads} of {FAILED_READS} reads failed before it asks its peers: {why}"
    if memory.proof is None:
        return "armed; the agent feeds its watchdog once it has a first proof"
    by_peer = f" ({memory.proof.detail} confirms it)" if memory.proof.source is Source.PEER else ""
    return f"healthy: its machine is not condemned{by_peer}"
