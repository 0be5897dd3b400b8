"""The leader's hands on remediation objects, and on what they say of themselves on Machines."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from datetime import datetime
from typing import Any, Callable

from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.resources import REMEDIATIONS
from pp_hostd.leader.machines import ServedMachines
from pp_hostd.leader.observe import Kind
from pp_hostd.leader.remediation_writes import asked_for, finalized, handed_to_owner, in_phase, kept_true, unclaimed
from pp_hostd.leader.served import Served
from pp_hostd.leader.write import Unwritten, Writer, conditional
from pp_hostd.model.condemnation import NotRequested, parse_condemnation
from pp_hostd.model.remediation import Remediation
from pp_hostd.model.remedy import AskFor, DropClaim, HandToOwner, SetFinalizer, SetPhase, SetRemediated
from pp_hostd.model.written import Written

Work = Callable[[Any], Awaitable[str]]


class Remediating:
    """`works` are the steps that it takes, by their type."""

    def __init__(
        self, client: ApiClient, machines: ServedMachines, writer: Writer, wallclock: Callable[[], datetime]
    ) -> None:
        self._machines, self._writer, self._wallclock = machines, writer, wallclock
        self._objects = {name: Served(client, versions) for name, versions in REMEDIATIONS.items()}
        self.works: Mapping[type, Work] = {
            AskFor: self._ask_for,
            DropClaim: self._drop_claim,
            HandToOwner: self._hand_to_owner,
            SetRemediated: self._set_remediated,
            SetPhase: self._set_phase,
            SetFinalizer: self._set_finalizer,
        }

    async def _ask_for(self, step: AskFor) -> str:
        found = await self._machines.get(step.subject)
        condemnation = parse_condemnation(found["metadata"])
        if not isinstance(condemnation, NotRequested):
            raise Unwritten(Written.CONFLICT, f"Machine {step.subject} is no longer what it was when this was planned")
        patch = asked_for(condemnation, step.claim)
        return await self._change_machine(step.subject, patch, step.uid, step.resource_version)

    async def _drop_claim(self, step: DropClaim) -> str:
        return await self._change_machine(step.subject, unclaimed(), step.uid, step.resource_version)

    async def _hand_to_owner(self, step: HandToOwner) -> str:
        found = await self._machines.get(step.subject)
        patch, version = handed_to_owner(found, step.sentence, self._wallclock()), found["metadata"]["resourceVersion"]
        return await self._change_machine(step.subject, patch, step.uid, version, "status")

    async def _set_remediated(self, step: SetRemediated) -> str:
        found = await self._machines.get(step.subject)
        version = found["metadata"]["resourceVersion"]
        patch = kept_true(found, step.word, step.sentence, self._wallclock())
        if not patch:  # else it would be planned again and again until the watch shows it
            raise Unwritten(Written.CONFLICT, f"Machine {step.subject} is no longer what it was when this was planned")
        return await self._change_machine(step.subject, patch, step.uid, version, "status")

    async def _change_machine(self, subject: str, patch: Json, uid: str, version: str, part: str | None = None) -> str:
        patch = conditional(patch, uid, version)
        return await self._writer.write(
            lambda: self._machines.patch(subject, patch, part), Kind.MACHINES, subject, version
        )

    async def _set_phase(self, step: SetPhase) -> str:
        return await self._change(step.remediation, in_phase(step, self._wallclock()), "status")

    async def _set_finalizer(self, step: SetFinalizer) -> str:
        remediation = step.remediation
        found = await self._objects[remediation.kind.name].get(remediation.subject)
        return await self._change(remediation, finalized(found, step))

    async def _change(self, remediation: Remediation, patch: Json, part: str | None = None) -> str:
        patch = conditional(patch, remediation.uid, remediation.resource_version)
        served, version = self._objects[remediation.kind.name], remediation.resource_version
        return await self._writer.write(
            lambda: served.patch(remediation.subject, patch, part), Kind.REMEDIATIONS, remediation.key, version
        )
