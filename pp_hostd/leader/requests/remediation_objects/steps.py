"""Steps for remediation objects: requests on their behalf, their status, and what they say on Machines."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pp_hostd.frozen import frozen
from pp_hostd.kube.resources import REMEDIATIONS
from pp_hostd.leader.requests.remediation_objects.remediation import (
    CONDITION,
    REMEDIATION,
    SUCCEEDED,
    Phase,
    Remediation,
)
from pp_hostd.leader.steps.api import Json
from pp_hostd.leader.steps.machines import change_machine
from pp_hostd.leader.steps.port import Port, Unwritten, conditional
from pp_hostd.leader.steps.status import turned_at
from pp_hostd.model.machine_details import LISTS, OWNER_REMEDIATED, Remediated, said_by
from pp_hostd.model.moment import render_moment
from pp_hostd.model.step import Written


@frozen
class HandToOwner:
    """Tell the machine's owner that it can't be helped, in both lists of conditions that there may be."""

    machine_key: str
    uid: str
    sentence: str

    async def run(self, port: Port) -> str:
        found = await port.machines.get(self.machine_key)
        patch = _handed_to_owner(found, self.sentence, port.wallclock())
        return await change_machine(
            port, self.machine_key, patch, self.uid, found["metadata"]["resourceVersion"], "status"
        )


@frozen
class SetRemediated:
    """Has the condition ExternallyRemediated of a Machine say so, in every list that has it."""

    machine_key: str
    uid: str
    word: Remediated
    sentence: str

    async def run(self, port: Port) -> str:
        found = await port.machines.get(self.machine_key)
        patch = _kept_true(found, self.word, self.sentence, port.wallclock())
        if not patch:  # else it would be planned again and again until the watch shows it
            raise _changed(self.machine_key)
        return await change_machine(
            port, self.machine_key, patch, self.uid, found["metadata"]["resourceVersion"], "status"
        )


@frozen
class SetPhase:
    """How far a remediation object has come, in its status. `node_uid` is as in Remediation."""

    remediation: Remediation
    phase: Phase
    retry_count: int
    reason: str
    sentence: str
    node_uid: str

    async def run(self, port: Port) -> str:
        return await _change(port, self.remediation, _in_phase(self, port.wallclock()), "status")


@frozen
class SetFinalizer:
    """Keep a remediation object from going before it is cleaned up after; or let it go."""

    remediation: Remediation
    present: bool

    async def run(self, port: Port) -> str:
        found = await port.served(REMEDIATIONS[self.remediation.kind.name]).get(self.remediation.machine_key)
        return await _change(port, self.remediation, _finalized(found, self))


async def _change(port: Port, remediation: Remediation, patch: Json, part: str | None = None) -> str:
    patch = conditional(patch, remediation.uid, remediation.resource_version)
    served, version = port.served(REMEDIATIONS[remediation.kind.name]), remediation.resource_version
    return await port.write(
        lambda: served.patch(remediation.machine_key, patch, part), REMEDIATION, remediation.key, version
    )


def _changed(machine_key: str) -> Unwritten:
    return Unwritten(Written.CONFLICT, f"Machine {machine_key} is no longer what it was when this was planned")


# The merge patches, made of what was read.


def _handed_to_owner(machine: Json, sentence: str, now: datetime) -> Json:
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


def _kept_true(machine: Json, word: Remediated, sentence: str, now: datetime) -> Json:
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
    since = turned_at(condition, status, render_moment(now))
    return {**condition, "status": status, "reason": reason, "message": sentence, "lastTransitionTime": since}


def _in_phase(step: SetPhase, now: datetime) -> Json:
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
    if step.node_uid != step.remediation.node_uid:
        status["nodeUID"] = step.node_uid or None
    return {"status": status}


def _finalized(remediation: Json, step: SetFinalizer) -> Json:
    own = step.remediation.kind.finalizer
    others = [each for each in remediation["metadata"].get("finalizers") or () if each != own]
    return {"metadata": {"finalizers": [*others, own] if step.present else others}}


def _with(conditions: list[Json] | None, condition: Json) -> list[Json]:
    return [*(each for each in conditions or () if each.get("type") != condition["type"]), condition]
