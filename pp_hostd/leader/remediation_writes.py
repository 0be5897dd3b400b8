"""What the leader changes on remediation objects and, for them, on Machines: merge patches of what was read. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pp_hostd.model.condemnation import NotRequested, Requested
from pp_hostd.model.externally_remediated import LISTS, Remediated, said_by
from pp_hostd.model.keys import REQUESTED_BY
from pp_hostd.model.machine_host import OWNER_REMEDIATED, Claim
from pp_hostd.model.moment import render_moment
from pp_hostd.model.remediation import CONDITION, SUCCEEDED, Phase
from pp_hostd.model.remedy import SetFinalizer, SetPhase

Json = dict[str, Any]


def asked_for(condemnation: NotRequested, claim: Claim) -> Json:
    """The machine's remedy is asked for, on behalf of that object."""
    metadata = Requested(condemnation.last_id).render()
    metadata["annotations"][REQUESTED_BY] = claim.render()
    return {"metadata": metadata}


def unclaimed() -> Json:
    return {"metadata": {"annotations": {REQUESTED_BY: None}}}


def handed_to_owner(machine: Json, sentence: str, now: datetime) -> Json:
    """Owners of today read one of two lists of conditions, as old as they are."""
    condition = {
        "type": OWNER_REMEDIATED,
        "status": "False",
        "reason": "WaitingForRemediation",
        "message": sentence,
        "lastTransitionTime": render_moment(now),
    }
    status = machine.get("status") or {}
    change: Json = {"conditions": _with(status.get("conditions"), condition)}
    older = (status.get("deprecated") or {}).get("v1beta1")
    if older is not None:
        change["deprecated"] = {"v1beta1": {"conditions": _with(older.get("conditions"), condition)}}
    return {"status": change}


def kept_true(machine: Json, word: Remediated, sentence: str, now: datetime) -> Json:
    """The condition of Cluster API's health check says so in every list that has it; empty if none has."""
    change: Json = {}
    for path in LISTS:
        conditions: Any = machine.get("status")
        for key in path:
            conditions = (conditions or {}).get(key)
        if not any(said_by(each) for each in conditions or ()):
            continue
        told = [_reworded(each, word, sentence, now) if said_by(each) else each for each in conditions]
        within = change
        for key in path[:-1]:
            within = within.setdefault(key, {})
        within[path[-1]] = [each for each in told if each is not None]
    return {"status": change} if change else {}


def _reworded(condition: Json, word: Remediated, sentence: str, now: datetime) -> Json | None:
    if word is Remediated.WITHDRAWN:
        return None
    status, _, reason = word.value.partition("/")
    since = condition.get("lastTransitionTime") if condition.get("status") == status else None
    moment = since or render_moment(now)
    return {**condition, "status": status, "reason": reason, "message": sentence, "lastTransitionTime": moment}


def in_phase(step: SetPhase, now: datetime) -> Json:
    """A count of none is left out: today's schema begins with one."""
    kind, moment = step.remediation.kind, render_moment(now)
    status: Json = {"retryCount": step.retry_count} if step.retry_count else {}
    if step.phase is not Phase.NEW:
        status["phase"] = kind.words[step.phase]
    if step.phase is Phase.RUNNING and step.remediation.phase is not Phase.RUNNING:
        status["lastRemediated"] = moment
    if kind.conditions:
        done = "True" if step.reason == SUCCEEDED else "False"
        condition = {"type": CONDITION, "status": done, "reason": step.reason, "message": step.sentence}
        status["conditions"] = [{**condition, "lastTransitionTime": moment}]
    return {"status": status}


def finalized(remediation: Json, step: SetFinalizer) -> Json:
    own = step.remediation.kind.finalizer
    others = [each for each in remediation["metadata"].get("finalizers") or () if each != own]
    return {"metadata": {"finalizers": [*others, own] if step.present else others}}


def _with(conditions: list[Json] | None, condition: Json) -> list[Json]:
    return [*(each for each in conditions or () if each.get("type") != condition["type"]), condition]
