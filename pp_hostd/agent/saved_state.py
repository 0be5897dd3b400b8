"""The state that a restarted daemon takes up, as JSON: it neither forgets, nor gains time, nor asks twice (rule 6).

Times are boot time and mean nothing in another boot. Left out is state that died with the process, such as the read
under way, and the look at the Node that a write may rely on.
"""

from __future__ import annotations

import re
from functools import lru_cache
from operator import attrgetter
from typing import Any

from pp_hostd.frozen import frozen, replace
from pp_hostd.model.boot_commitments import BootCommitments, Gate, Pending, WatchdogArmed
from pp_hostd.model.evidence import WatchedCondemned
from pp_hostd.model.inquiry import Inquiry, Reply, Said
from pp_hostd.model.memory import Decision, LastRead, Lifted, Memory, Outage, Proof, Source
from pp_hostd.model.promise import (
    MAX_TIMEOUT_SECONDS,
    MIN_TIMEOUT_SECONDS,
    AgentRecord,
    WatchdogKind,
    parse_agent_record,
)
from pp_hostd.model.record import (
    MAX_COUNT,
    NAME,
    OPAQUE,
    Fields,
    Form,
    Refused,
    Unreadable,
    document,
    matching,
    read,
    render,
)

MAX_CHARACTERS = 8 << 20
"""Names of 253 characters and answers for each of 5,000 peers are below half of this."""
MAX_SENTENCE_CHARACTERS = 2000
_SENTENCE = Form("text", re.compile(f"[\\s\\S]{{0,{MAX_SENTENCE_CHARACTERS}}}"))
_SEED = Form("a number in hexadecimal digits", re.compile("-?[0-9a-f]{1,64}"))


_BINDING = ("lifted", "watched", "watched_failures", "condemned_id", "decision")
_BINDING_MEMORY = attrgetter(*_BINDING)
_MEMORY = attrgetter("proof", "failed_reads", "last_read", "inquiry", "outage", *_BINDING)
_COMMITMENTS = attrgetter("boot", "watchdog", "stored", "promised_uid", "looked", "pending")


@frozen
class SavedState:
    memory: Memory
    commitments: BootCommitments

    def taken_up(self) -> SavedState:
        """Returns the state as a restarted process of this boot takes it up. An unbound host drops the decision of a
        dry run: nobody counts on the host's death."""
        memory = self.memory.resumed()
        return replace(self, memory=memory if self.commitments.binds else replace(memory, decision=None))

    @property
    def lasting(self) -> tuple[object, ...]:
        """All that `render` renders. It is compared at every judgement, which costs far less."""
        return _MEMORY(self.memory) + _COMMITMENTS(self.commitments)

    @property
    def binding(self) -> tuple[object, ...]:
        """All but what a judgement knows of proofs, reads and peers: what no older copy may lack (rules 5 and 7)."""
        return _BINDING_MEMORY(self.memory) + _COMMITMENTS(self.commitments)

    def render(self) -> str:
        memory = self.memory
        return render(
            {
                "boot": self.commitments.boot,
                "proof": memory.proof and _proof_fields(memory.proof),
                "failed_reads": memory.failed_reads,
                "last_read": memory.last_read and _last_read_fields(memory.last_read),
                "inquiry": memory.inquiry and _inquiry_fields(memory.inquiry),
                "outage": memory.outage and _outage_fields(memory.outage),
                "lifted": [{"uid": each.uid, "id": each.id} for each in memory.lifted],
                "watched": memory.watched and _watched_fields(memory.watched),
                "watched_failures": memory.watched_failures or None,
                "condemned_id": memory.condemned_id,
                "decision": memory.decision and _decision_fields(memory.decision),
                "watchdog": self.commitments.watchdog and _watchdog_fields(self.commitments.watchdog),
                "stored": self.commitments.stored and _rendered(self.commitments.stored),
                "promised_uid": self.commitments.promised_uid or None,
                "looked": self.commitments.looked or None,
                "pending": [[each.record.render(), each.resource_version] for each in self.commitments.pending],
            }
        )


def parse_saved_state(text: object, boot: str, gate: Gate, now: float) -> SavedState | Unreadable | None:
    """Returns the state kept in this boot; None if another boot's, which is simply old. The gate has its own files.

    No time may lie in the future: such a proof would be life without proof.
    """
    return read("the kept state", lambda source: _kept(document(source, MAX_CHARACTERS), boot, gate, now), text)


def _kept(fields: Fields, boot: str, gate: Gate, now: float) -> SavedState | None:
    if fields.text("boot", OPAQUE) != boot:
        return None
    memory = Memory(
        proof=_proof(fields.section("proof"), now) if "proof" in fields else None,
        failed_reads=_whole(fields, "failed_reads"),
        last_read=_last_read(fields.section("last_read"), now) if "last_read" in fields else None,
        inquiry=_inquiry(fields.section("inquiry"), now) if "inquiry" in fields else None,
        outage=_outage(fields.section("outage"), now) if "outage" in fields else None,
        lifted=tuple(_lifted(Fields(each, "a lifted condemnation")) for each in fields.elements("lifted")),
        watched=_watched(fields.section("watched"), now) if "watched" in fields else None,
        watched_failures=_whole(fields, "watched_failures") if "watched_failures" in fields else 0,
        condemned_id=fields.count("condemned_id") if "condemned_id" in fields else None,
        decision=_decision(fields.section("decision"), now) if "decision" in fields else None,
    )
    commitments = BootCommitments(
        boot=boot,
        gate=gate,
        watchdog=_watchdog(fields.section("watchdog")) if "watchdog" in fields else None,
        stored=_record(fields.anything("stored")) if "stored" in fields else None,
        promised_uid=fields.text("promised_uid", OPAQUE) if "promised_uid" in fields else "",
        pending=tuple(_pending(each) for each in fields.elements("pending")),
        looked=fields.anything("looked") is True,
    )
    return SavedState(memory, commitments)


@lru_cache(maxsize=1)
def _rendered(record: AgentRecord) -> str:
    """Kept, since it is saved with each proof and changes with a promise alone."""
    return record.render()


def _proof_fields(proof: Proof) -> dict[str, Any]:
    return {"at": proof.at, "source": proof.source.value, "detail": _clipped(proof.detail)}


def _proof(fields: Fields, now: float) -> Proof:
    return Proof(fields.seconds("at", 0, now), fields.choice("source", Source), fields.text("detail", _SENTENCE))


def _lifted(fields: Fields) -> Lifted:
    return Lifted(fields.text("uid", OPAQUE), fields.count("id"))


def _watched_fields(watched: WatchedCondemned) -> dict[str, Any]:
    return {"uid": watched.uid, "id": watched.id, "at": watched.at}


def _watched(fields: Fields, now: float) -> WatchedCondemned:
    return WatchedCondemned(fields.text("uid", OPAQUE), fields.count("id"), fields.seconds("at", 0, now))


def _last_read_fields(last: LastRead) -> dict[str, Any]:
    return {"began_at": last.began_at, "ended_at": last.ended_at, "failure": _clipped(last.failure)}


def _last_read(fields: Fields, now: float) -> LastRead:
    began_at = fields.seconds("began_at", 0, now)
    return LastRead(began_at, fields.seconds("ended_at", began_at, now), fields.text("failure", _SENTENCE))


def _outage_fields(outage: Outage) -> dict[str, Any]:
    return {"started_at": outage.started_at, "ended_at": outage.ended_at, "summary": _clipped(outage.summary)}


def _outage(fields: Fields, now: float) -> Outage:
    started_at = fields.seconds("started_at", 0, now)
    return Outage(started_at, fields.seconds("ended_at", started_at, now), fields.text("summary", _SENTENCE))


def _decision_fields(decision: Decision) -> dict[str, Any]:
    return {"at": decision.at, "cause": _clipped(decision.cause), **_id_field(decision.id)}


def _decision(fields: Fields, now: float) -> Decision:
    return Decision(fields.seconds("at", 0, now), fields.text("cause", _SENTENCE), _id(fields))


def _inquiry_fields(inquiry: Inquiry) -> dict[str, Any]:
    return {
        "started_at": inquiry.started_at,
        "seed": f"{inquiry.seed:x}",  # perhaps longer than the numbers that every reader of JSON takes
        "round": inquiry.round,
        "round_began_at": inquiry.round_began_at,
        "asked": inquiry.asked,
        "in_round": inquiry.in_round,
        "replies": [{"peer": each.peer, "said": each.said.value, **_id_field(each.id)} for each in inquiry.replies],
    }


def _inquiry(fields: Fields, now: float) -> Inquiry:
    started_at = fields.seconds("started_at", 0, now)
    asked = tuple(matching(each, NAME, "a peer") for each in fields.elements("asked"))
    return Inquiry(
        started_at=started_at,
        seed=int(fields.text("seed", _SEED), 16),
        round=_whole(fields, "round"),
        round_began_at=fields.seconds("round_began_at", started_at, now),
        asked=asked,
        in_round=_whole(fields, "in_round", most=len(asked)),
        replies=tuple(_reply(Fields(each, "a reply")) for each in fields.elements("replies")),
    )


def _reply(fields: Fields) -> Reply:
    return Reply(fields.text("peer", NAME), fields.choice("said", Said), _id(fields))


def _watchdog_fields(watchdog: WatchdogArmed) -> dict[str, Any]:
    troubles = [_clipped(each) for each in watchdog.troubles]
    return {"kind": watchdog.kind.value, "timeout_seconds": watchdog.timeout_seconds, "troubles": troubles}


def _watchdog(fields: Fields) -> WatchdogArmed:
    return WatchdogArmed(
        kind=fields.choice("kind", WatchdogKind),
        timeout_seconds=fields.seconds("timeout_seconds", MIN_TIMEOUT_SECONDS, MAX_TIMEOUT_SECONDS),
        troubles=tuple(matching(each, _SENTENCE, "a trouble") for each in fields.elements("troubles")),
    )


def _pending(value: object) -> Pending:
    if not isinstance(value, list) or len(value) != 2:
        raise Refused("an entry of pending is not a pair of a record and a version")
    return Pending(_record(value[0]), matching(value[1], OPAQUE, "a resource version"))


def _record(text: object) -> AgentRecord:
    record = parse_agent_record(text)
    if isinstance(record, Unreadable):
        raise Refused(str(record))
    return record


def _whole(fields: Fields, key: str, most: int = MAX_COUNT) -> int:
    return 0 if fields.anything(key) == 0 else fields.count(key, most)


def _id_field(condemnation_id: int | None) -> dict[str, int]:
    return {} if condemnation_id is None else {"id": condemnation_id}


def _id(fields: Fields) -> int | None:
    return fields.count("id") if "id" in fields else None


def _clipped(text: str) -> str:
    return text[:MAX_SENTENCE_CHARACTERS]
