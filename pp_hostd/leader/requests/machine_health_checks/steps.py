"""Steps of MachineHealthChecks: their status, conditions of Machines, remediation objects, requests and deletions."""

from __future__ import annotations

from typing import Any

from pp_hostd.frozen import frozen
from pp_hostd.kube.outcome import ApiError, is_missing
from pp_hostd.kube.resources import MACHINES, Resource
from pp_hostd.leader.requests.health_checks.check import TemplateReference
from pp_hostd.leader.requests.health_checks.steps import CLONED_FROM, RESTRICTED, HasRemediated, HasStopped
from pp_hostd.leader.requests.machine_health_checks.check import (
    MACHINE_HEALTH_CHECK,
    MachineHealthCheck,
    Status,
    parse_machine_health_check,
)
from pp_hostd.leader.requests.machine_health_checks.conditions import Spelling, Wanted, read_lists, with_conditions
from pp_hostd.leader.requests.machine_health_checks.facts import ClusterFacts, MachineFacts
from pp_hostd.leader.steps.api import Json
from pp_hostd.leader.steps.machines import DeleteMachine, change_machine, check_wish
from pp_hostd.leader.steps.port import Noticed, OnlyReads, Port, Unwritten, conditional, if_there
from pp_hostd.model.condemnation import NotRequested, Requested, parse_condemnation
from pp_hostd.model.keys import CLUSTER_NAME
from pp_hostd.model.moment import render_moment
from pp_hostd.model.record import Fields, Unreadable
from pp_hostd.model.step import Written

NO_TEMPLATE, NOT_CREATED = "RemediationTemplateNotFound", "RemediationRequestCreationFailed"


@frozen
class Notice:
    """An Event about a health check, or about a Machine: reason and sentence."""

    reason: str
    sentence: str
    warning: bool = True


@frozen
class Tell(OnlyReads):
    """Tell people something for which nothing is written."""

    check: MachineHealthCheck
    notices: tuple[Notice, ...]
    machine: MachineFacts | None = None

    async def run(self, port: Port) -> str:
        for each in self.notices:
            notice(port, each, self.check if self.machine is None else self.machine)
        return ""


@frozen
class SetStatus:
    """The status of a health check, as far as it is ours."""

    check: MachineHealthCheck
    status: Status
    conditions: tuple[Wanted, ...]
    notices: tuple[Notice, ...] = ()

    async def run(self, port: Port) -> str:
        found = await _unclaimed(port, self.check)
        status = rendered(self, found.get("status") or {}, render_moment(port.wallclock()))
        told = await _change(port, self.check, {"status": status}, "status")
        for each in self.notices:
            notice(port, each, self.check)
            if each.reason == RESTRICTED:
                port.tell(HasStopped(port.key, self.check.key))
        return told


@frozen
class JoinCluster:
    """A health check of Cluster API's bears the name of its Cluster, and goes with it."""

    check: MachineHealthCheck
    cluster: ClusterFacts

    async def run(self, port: Port) -> str:
        found, cluster = await _unclaimed(port, self.check), self.cluster
        owners = [each for each in found["metadata"].get("ownerReferences") or () if each.get("uid") != cluster.uid]
        owner = {"apiVersion": cluster.api_version, "kind": "Cluster", "name": cluster.name, "uid": cluster.uid}
        metadata = {"labels": {CLUSTER_NAME: cluster.name}, "ownerReferences": [*owners, owner]}
        return await _change(port, self.check, {"metadata": metadata})


@frozen
class TellMachine:
    """The conditions by which a Machine's owner, and people, know how its health check has ended. `check` leaves its
    remediation to the owner by them; None if none does."""

    machine: MachineFacts
    conditions: tuple[Wanted, ...]
    notices: tuple[Notice, ...] = ()
    check: MachineHealthCheck | None = None

    async def run(self, port: Port) -> str:
        key, uid = self.machine.key, self.machine.uid
        found = await port.machines.get(key)
        status, spelling = found.get("status") or {}, _spelling(found)
        lists = read_lists(spelling, Fields(status))
        change = with_conditions(status, lists, self.conditions, render_moment(port.wallclock()))
        if not change:
            raise Unwritten(Written.CONFLICT, f"Machine {key} is no longer what it was when this was planned")
        version = found["metadata"]["resourceVersion"]
        told = await change_machine(port, key, {"status": change}, uid, version, "status")
        for each in self.notices:
            notice(port, each, self.machine)
        if self.check is not None:
            port.tell(HasRemediated(port.key, self.check.key))
        return told


@frozen
class RequestByAnnotation:
    """Request a Machine's remediation as OpenShift's health check does, by its annotation."""

    check: MachineHealthCheck
    machine: MachineFacts
    sentence: str

    async def run(self, port: Port) -> str:
        key, metadata = self.machine.key, (await port.machines.get(self.machine.key))["metadata"]
        condemnation = parse_condemnation(metadata)
        if not isinstance(condemnation, NotRequested):
            raise Unwritten(Written.CONFLICT, f"Machine {key} is no longer what it was when this was planned")
        patch: Json = {"metadata": Requested(condemnation.last_id).render()}
        try:
            told = await change_machine(port, key, patch, self.machine.uid, metadata["resourceVersion"])
        except ApiError as error:
            _failed(port, "ExternalAnnotationFailed", error.sentence, self.machine)
            raise
        port.tell(HasRemediated(port.key, self.check.key))
        _detected(port, self.check, self.machine, self.sentence)
        said = f"{self.check.key} requests its remediation: {self.sentence}"
        notice(port, Notice("ExternalAnnotationAdded", said, warning=False), self.machine)
        return told


@frozen
class RemoveMachine:
    """Delete an unhealthy Machine whose owner makes another one."""

    check: MachineHealthCheck
    machine: MachineFacts
    sentence: str

    async def run(self, port: Port) -> str:
        machine = self.machine
        found = await port.machines.get(machine.key)
        metadata = found["metadata"]
        gone = metadata["uid"] != machine.uid or metadata.get("deletionTimestamp") is not None
        if gone or not isinstance(parse_condemnation(metadata), NotRequested):
            raise Unwritten(Written.CONFLICT, f"Machine {machine.key} is no longer what it was when this was planned")
        await check_wish(port, found)
        try:
            told = await DeleteMachine(machine.key, machine.uid, metadata["resourceVersion"]).run(port)
        except ApiError as error:
            _failed(port, "MachineDeletionFailed", error.sentence, machine)
            raise
        port.tell(HasRemediated(port.key, self.check.key))
        _detected(port, self.check, machine, self.sentence)
        said = f"{self.check.key} has deleted it: {self.sentence}"
        notice(port, Notice("MachineDeleted", said, warning=False), machine)
        return told


# Remediation objects.


@frozen
class ObjectNews:
    """How it went to make the object of a Machine. `reason` is empty if there is one."""

    node: str
    reason: str = ""
    sentence: str = ""


@frozen
class MakeObject:
    """Make a remediation object of the template, named after the Machine, unless there is one."""

    check: MachineHealthCheck
    template: TemplateReference
    machine: MachineFacts
    sentence: str

    async def run(self, port: Port) -> str:
        template, objects, machine = self.template, self.template.objects, self.machine
        if await if_there(port.api.get(objects, machine.name, namespace=template.namespace)) is not None:
            port.tell(ObjectNews(port.key))
            return ""
        body = made_of(await self._found(port), self, await self._owner(port))
        try:
            await port.send(lambda: port.api.create(objects, body, namespace=template.namespace))
        except ApiError as error:
            port.tell(ObjectNews(port.key, NOT_CREATED, error.sentence))
            raise
        port.tell(ObjectNews(port.key))
        port.tell(HasRemediated(port.key, self.check.key))
        made = objects.describe(template.namespace, machine.name)
        if not self.check.spelling.is_cluster_api:
            _detected(port, self.check, machine, self.sentence)
        notice(port, Notice("RemediationRequested", f"made {made}: {self.sentence}", warning=False), self.check)
        return ""

    async def _found(self, port: Port) -> Json:
        template = self.template
        try:
            return await port.api.get(template.templates, template.name, namespace=template.namespace)
        except ApiError as error:
            port.tell(ObjectNews(port.key, NO_TEMPLATE, error.sentence))
            raise

    async def _owner(self, port: Port) -> Json:
        """By its own version, so that the garbage collector finds it."""
        found = await port.machines.get(self.machine.key)
        if found["metadata"]["uid"] != self.machine.uid or found["metadata"].get("deletionTimestamp") is not None:
            raise Unwritten(Written.CONFLICT, f"Machine {self.machine.key} is not the one that was judged")
        version = found.get("apiVersion") or MACHINES[port.settings.api.machines][0].api_version
        return {"apiVersion": version, "kind": "Machine", "name": self.machine.name, "uid": self.machine.uid}


@frozen
class LookedAt:
    """The Machines, by uid, of which no object is left."""

    node: str
    uids: frozenset[str]


@frozen
class RemoveObjects:
    """Delete the remediation objects of these Machines, which are healthy again. Objects that something else has made
    are left alone."""

    check: MachineHealthCheck
    template: TemplateReference
    machines: tuple[MachineFacts, ...]

    async def run(self, port: Port) -> str:
        objects, namespace = self.template.objects, self.template.namespace
        for machine in self.machines:
            found = await if_there(port.api.get(objects, machine.name, namespace=namespace))
            if found is not None and _is_made_for(found, machine, self.template):
                await _delete(port, objects, found)
            port.tell(LookedAt(port.key, frozenset({machine.uid})))
        return ""


async def _delete(port: Port, objects: Resource, found: Json) -> None:
    metadata = found["metadata"]
    name, namespace, uid = metadata["name"], metadata["namespace"], metadata["uid"]
    try:
        await port.send(lambda: port.api.delete(objects, name, namespace=namespace, uid=uid))
    except ApiError as error:
        if not is_missing(error):
            raise


def _is_made_for(found: Json, machine: MachineFacts, template: TemplateReference) -> bool:
    metadata = found["metadata"]
    owned = any(each.get("uid") == machine.uid for each in metadata.get("ownerReferences") or ())
    cloned = (metadata.get("annotations") or {}).get(f"{CLONED_FROM}name") == template.name
    return owned and cloned and metadata.get("deletionTimestamp") is None


def made_of(template: Json, step: MakeObject, owner: Json) -> Json:
    """The object: labels, annotations and spec of the template, and the Machine as its owner but not its controller."""
    inner = (template.get("spec") or {}).get("template") or {}
    given, reference = inner.get("metadata") or {}, step.template
    cloned = {
        f"{CLONED_FROM}name": reference.name,
        f"{CLONED_FROM}groupkind": f"{reference.kind}.{reference.group}",
    }
    cluster = step.check.cluster.rpartition("/")[2]
    return {
        "apiVersion": reference.objects.api_version,
        "kind": reference.objects.kind,
        "metadata": {
            "name": step.machine.name,
            "namespace": step.machine.namespace,
            "labels": {**(given.get("labels") or {}), **({CLUSTER_NAME: cluster} if cluster else {})},
            "annotations": {**(given.get("annotations") or {}), **cloned},
            "ownerReferences": [owner],
        },
        "spec": dict(inner.get("spec") or {}),
    }


# Parts that several of them use.


def rendered(step: SetStatus, stored: Json, moment: str) -> Json:
    """The status as a merge patch, with the fields that this API has."""
    check, status = step.check, step.status
    counts: dict[str, Any] = {
        "expectedMachines": status.expected,
        "currentHealthy": status.healthy,
        "remediationsAllowed": status.allowed,
    }
    fields: Json = {key: count for key, count in counts.items() if count >= 0}
    if check.spelling.is_cluster_api:
        fields["targets"] = list(status.targets)
        if status.generation:
            fields["observedGeneration"] = status.generation
    return {**fields, **with_conditions(stored, check.lists, step.conditions, moment)}


async def _unclaimed(port: Port, check: MachineHealthCheck) -> Json:
    """The health check as it is now, unless another controller has written its status since."""
    found = await port.api.get(check.kind, check.name, namespace=check.namespace)
    now = parse_machine_health_check(found)
    if isinstance(now, Unreadable) or now.writer:
        raise Unwritten(Written.CONFLICT, f"{check.key} is no longer what it was when this was planned")
    return found


async def _change(port: Port, check: MachineHealthCheck, patch: Json, part: str | None = None) -> str:
    patch = conditional(patch, check.uid, check.resource_version)
    return await port.write(
        lambda: port.api.patch(check.kind, check.name, patch, namespace=check.namespace, subresource=part),
        MACHINE_HEALTH_CHECK,
        check.path,
        check.resource_version,
    )


def _spelling(machine: Json) -> Spelling:
    return next((each for each in Spelling if machine.get("apiVersion") == each.value), Spelling.OPENSHIFT)


def notice(port: Port, told: Notice, about: MachineHealthCheck | MachineFacts) -> None:
    """Have an Event say this."""
    kind = about.kind if isinstance(about, MachineHealthCheck) else MACHINES[port.settings.api.machines][0]
    namespace, name, uid = about.namespace, about.name, about.uid
    port.tell(Noticed(port.key, kind, namespace, name, uid, told.reason, told.sentence, told.warning))


def _detected(port: Port, check: MachineHealthCheck, machine: MachineFacts, sentence: str) -> None:
    notice(port, Notice("DetectedUnhealthy", f"{check.key} finds it unhealthy: {sentence}"), machine)


def _failed(port: Port, reason: str, sentence: str, machine: MachineFacts) -> None:
    notice(port, Notice(reason, sentence), machine)
