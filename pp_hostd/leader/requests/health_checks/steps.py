"""Steps of health checks: the request, its withdrawal, remediation objects made of a template, and the status."""

from __future__ import annotations

from functools import partial

from pp_hostd.frozen import frozen
from pp_hostd.kube.outcome import ApiError, is_missing
from pp_hostd.kube.resources import NODE_HEALTH_CHECKS, NODES
from pp_hostd.leader.requests.health_checks.check import (
    CONDITIONS,
    HEALTH_CHECK,
    HealthCheck,
    Status,
    TemplateReference,
)
from pp_hostd.leader.steps.api import Json
from pp_hostd.leader.steps.machines import AskFor, change_machine
from pp_hostd.leader.steps.port import Noticed, Port, Unwritten, if_there
from pp_hostd.leader.steps.status import rendered_conditions, write_status
from pp_hostd.model.condemnation import NotRequested, Requested, parse_condemnation
from pp_hostd.model.keys import REQUESTED_BY
from pp_hostd.model.machine_details import MachineDetails, parse_machine_details
from pp_hostd.model.step import Written

CLONED_FROM = "cluster.x-k8s.io/cloned-from-"
RESTRICTED = "RemediationRestricted"
"""The Event of a check that stops, since too many are unhealthy."""
NOT_BACK = "HostNotBack"
"""The Event of a host that was remediated, and has not come back in time."""


@frozen
class HasRemediated:
    """The health check of this key has requested a remediation, or left one to a Machine's owner."""

    node: str
    check: str


@frozen
class HasStopped:
    """The health check of this key has nobody remediated from now on, since too many are unhealthy."""

    node: str
    check: str


@frozen
class RequestRemediation:
    """Request the remediation of an unhealthy node's machine, on behalf of a health check."""

    check: HealthCheck
    node: str
    node_uid: str
    request: AskFor
    sentence: str

    async def run(self, port: Port) -> str:
        told = await self.request.run(port)
        port.tell(HasRemediated(port.key, self.check.key))
        said = f"{self.check.key} requests the remediation of Node {self.node}: {self.sentence}"
        noticed(port, self.check, "DetectedUnhealthy", said)
        port.tell(Noticed(port.key, NODES, None, self.node, self.node_uid, "DetectedUnhealthy", said, warning=True))
        return told


@frozen
class Withdraw:
    """Take a health check's request back, if nobody has acted on it, or the claim that is left of it."""

    machine_key: str
    machine_uid: str
    claimed_by: str
    """The uid of the health check."""

    async def run(self, port: Port) -> str:
        found = await port.machines.get(self.machine_key)
        metadata, details = found["metadata"], parse_machine_details(found)
        claim = details.claim if isinstance(details, MachineDetails) else None
        condemnation = parse_condemnation(metadata)
        if getattr(claim, "uid", "") != self.claimed_by or not isinstance(condemnation, (Requested, NotRequested)):
            raise Unwritten(Written.CONFLICT, f"{self.machine_key} is no longer what it was when this was planned")
        patch: Json = {"metadata": NotRequested(condemnation.last_id).render()}
        patch["metadata"].setdefault("annotations", {})[REQUESTED_BY] = None
        return await change_machine(port, self.machine_key, patch, self.machine_uid, metadata["resourceVersion"])


@frozen
class MakeRemediation:
    """Make a remediation object of the template, named after the Node, unless there is one."""

    check: HealthCheck
    template: TemplateReference
    node: str
    node_uid: str
    """Empty while there is no Node."""
    sentence: str

    async def run(self, port: Port) -> str:
        template, objects = self.template, self.template.objects
        if await if_there(port.api.get(objects, self.node, namespace=template.namespace)) is not None:
            return ""
        found = await if_there(port.api.get(template.templates, template.name, namespace=template.namespace))
        if found is None:
            lacking = template.templates.describe(template.namespace, template.name)
            said = f"there is no {lacking}: create it, or correct remediationTemplate of {self.check.key}"
            noticed(port, self.check, "TemplateNotFound", said)
            raise Unwritten(Written.NOT_DONE, said)
        body = made_of(found, self)
        await port.send(lambda: port.api.create(objects, body, namespace=template.namespace))
        port.tell(HasRemediated(port.key, self.check.key))
        made = objects.describe(template.namespace, self.node)
        said = f"{self.check.key} has made {made}: {self.sentence}"
        noticed(port, self.check, "DetectedUnhealthy", said)
        if self.node_uid:
            of_node = port.key, NODES, None, self.node, self.node_uid
            port.tell(Noticed(*of_node, "DetectedUnhealthy", said, warning=True))
        return ""


@frozen
class RemediationGone:
    """The remediation object of a node that is healthy again is gone, or was none of this check's."""

    node: str


@frozen
class RemoveRemediation:
    """Delete the remediation object of a node that is healthy again, if this very health check made it."""

    check: HealthCheck
    template: TemplateReference
    node: str

    async def run(self, port: Port) -> str:
        objects, namespace = self.template.objects, self.template.namespace
        found = await if_there(port.api.get(objects, self.node, namespace=namespace))
        if found is None or not _is_made_by(found, self.check.uid):
            port.tell(RemediationGone(port.key))
            return ""
        metadata = found["metadata"]
        if metadata.get("deletionTimestamp") is not None:
            port.tell(RemediationGone(port.key))
            return ""
        try:
            await port.send(lambda: port.api.delete(objects, self.node, namespace=namespace, uid=metadata["uid"]))
        except ApiError as error:
            if not is_missing(error):
                raise
        port.tell(RemediationGone(port.key))
        return ""


@frozen
class SetStatus:
    """The status of a health check. `notices` are the Events that tell people of it: reason, sentence, whether it is a
    warning. `not_back` are the Nodes whose hosts are not back in time: name, uid and a sentence."""

    check: HealthCheck
    status: Status
    notices: tuple[tuple[str, str, bool], ...] = ()
    not_back: tuple[tuple[str, str, str], ...] = ()

    async def run(self, port: Port) -> str:
        check, patch = self.check, partial(rendered, self.status)
        told = await write_status(port, NODE_HEALTH_CHECKS, HEALTH_CHECK, check, patch)
        for reason, sentence, warning in self.notices:
            noticed(port, check, reason, sentence, warning=warning)
            if reason == RESTRICTED:
                port.tell(HasStopped(port.key, check.key))
        for name, uid, sentence in self.not_back:
            said = f"Node {name}: {sentence}"
            noticed(port, check, NOT_BACK, said)
            port.tell(Noticed(port.key, NODES, None, name, uid, NOT_BACK, said, warning=True))
        return told


def noticed(port: Port, check: HealthCheck, reason: str, sentence: str, *, warning: bool = True) -> None:
    """Have an Event about the health check say this."""
    port.tell(Noticed(port.key, NODE_HEALTH_CHECKS, None, check.name, check.uid, reason, sentence, warning))


def made_of(template: Json, step: MakeRemediation) -> Json:
    """The object: labels, annotations and spec of the template. Its name and its owner tell that it is for a Node."""
    inner = (template.get("spec") or {}).get("template") or {}
    given = inner.get("metadata") or {}
    cloned = {
        f"{CLONED_FROM}name": step.template.name,
        f"{CLONED_FROM}groupkind": f"{step.template.kind}.{step.template.group}",
    }
    owner = {"apiVersion": NODE_HEALTH_CHECKS.api_version, "kind": NODE_HEALTH_CHECKS.kind}
    return {
        "apiVersion": step.template.objects.api_version,
        "kind": step.template.objects.kind,
        "metadata": {
            "name": step.node,
            "labels": dict(given.get("labels") or {}),
            "annotations": {**(given.get("annotations") or {}), **cloned},
            "ownerReferences": [{**owner, "name": step.check.name, "uid": step.check.uid}],
        },
        "spec": dict(inner.get("spec") or {}),
    }


def rendered(status: Status, stored: Json, moment: str) -> Json:
    """The merge patch."""
    before = (stored.get("status") or {}).get("conditions")
    nodes = [{"name": name, "reason": reason, "message": message} for name, reason, message in status.unhealthy]
    return {
        "status": {
            "observedGeneration": status.generation,
            "expectedNodes": status.expected,
            "currentHealthy": status.healthy,
            "remediationsAllowed": status.allowed,
            "unhealthyNodes": nodes,
            "remediated": list(status.made),
            "conditions": rendered_conditions(status.conditions, CONDITIONS, before, moment),
        }
    }


def _is_made_by(found: Json, uid: str) -> bool:
    return any(each.get("uid") == uid for each in found["metadata"].get("ownerReferences") or ())
