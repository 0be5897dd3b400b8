"""Steps that change a Node and its backup, and the merge patches that they make of the Node as it was read."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any, Callable

from pp_hostd.frozen import frozen
from pp_hostd.kube.resources import CONFIG_MAPS, NODES
from pp_hostd.leader.steps.api import Json
from pp_hostd.leader.steps.port import CONFIG_MAP, NODE, Port, Unwritten, conditional, if_there
from pp_hostd.leader.steps.status import turned_at
from pp_hostd.model.backup import Backup
from pp_hostd.model.keys import (
    CONDEMNATION_ID,
    CONDEMNED,
    CONFIRMED_DEAD,
    CORDONED,
    FREED,
    FREEING,
    NAMESPACE,
    OUT_OF_SERVICE,
    RECREATED,
    REMEDIATION_PODNAME,
    REMEDIATION_TIMESTAMP,
    REPLACES,
    REQUESTED_AGAIN,
    STORED_AFTER,
    backup_name,
)
from pp_hostd.model.moment import render_moment
from pp_hostd.model.node import condemned_taint, freeing_marker
from pp_hostd.model.step import Written

_OURS = (FREEING, CONFIRMED_DEAD, CORDONED, REQUESTED_AGAIN, REMEDIATION_TIMESTAMP, REMEDIATION_PODNAME)
"""The marks that a Node loses when it becomes usable again."""
_OUT_OF_SERVICE_TAINT = {"key": OUT_OF_SERVICE, "value": "nodeshutdown", "effect": "NoExecute"}
"""The cluster's own controllers force-delete the pods and detach the volumes of a Node with this one."""


@frozen
class Condition:
    """A condition of a Node, without its times."""

    type: str
    status: str
    reason: str
    message: str

    @classmethod
    def of(cls, condition: Json) -> Condition:
        """The condition as the API shows it; a part that is missing, or is no text, counts as empty."""
        found = (condition.get(key) for key in ("type", "status", "reason", "message"))
        return cls(*(text if isinstance(text, str) else "" for text in found))


def cordon(node: Json, condemnation_id: int) -> Json:
    """Returns the patch: unschedulable, and our taint (rule 9). A Node that was schedulable before is marked, to become
    so again."""
    schedulable = _part(node, "spec").get("unschedulable") is not True
    annotations = {CORDONED: str(condemnation_id)} if schedulable else {}
    spec: Json = {"unschedulable": True} if schedulable else {}
    return _patch(node, annotations=annotations, spec=spec, taints=_with(node, condemned_taint(condemnation_id)))


def mark_freeing(node: Json, condemnation_id: int, *, out_of_service: bool) -> Json:
    """The marker that the gate honours (rule 12) and, in one write with it, the taint that frees."""
    taints = _with(node, _OUT_OF_SERVICE_TAINT) if out_of_service else _taints(node)
    return _patch(node, annotations=freeing_marker(condemnation_id)["annotations"], taints=taints)


def note_request(node: Json) -> Json:
    """The note that remediation was requested again after what this Node was freed for."""
    freed = _part(node, "metadata", "annotations").get(FREED, "")
    return _patch(node, annotations={REQUESTED_AGAIN: freed}, taints=_taints(node))


def uncordon(node: Json) -> Json:
    """Without our marks. Only with the marker on it is the out-of-service taint ours."""
    present = _part(node, "metadata", "annotations")
    annotations = {key: None for key in _OURS if key in present}
    ours = {CONDEMNED, OUT_OF_SERVICE} if FREEING in present else {CONDEMNED}
    taints = [taint for taint in _taints(node) if taint.get("key") not in ours]
    spec = {"unschedulable": None} if CORDONED in present else {}
    return _patch(node, annotations=annotations, spec=spec, taints=taints)


def recreated(backup: Backup, now: datetime, *, is_machine: bool) -> Json:
    """The Node to create. Where Nodes are the machines, the last condemnation's id must stay readable (rule 4).
    Health checks call a Node without conditions healthy, so it says from the start that nobody has heard of it."""
    node = backup.node()
    node["status"] = {"conditions": [_unheard(now)]}
    node["metadata"]["annotations"].update(_marks(backup, is_machine))
    return node


def unheard(node: Json, now: datetime) -> Json:
    """The patch of the status that gives a Node without a Ready condition a fresh Ready=Unknown."""
    conditions = _part(node, "status").get("conditions") or []
    if any(each.get("type") == "Ready" for each in conditions):
        return {}
    return {"status": {"conditions": [*conditions, _unheard(now)]}}


def with_condition(node: Json, condition: Condition, now: datetime) -> Json:
    """The patch of the status that gives the Node this condition; all others stay as they are, in their places."""
    present = _part(node, "status").get("conditions") or []
    before = next((each for each in present if each.get("type") == condition.type), None)
    if before is not None and condition == Condition.of(before):
        return {}
    moment = render_moment(now)
    body = {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastHeartbeatTime": moment,
        "lastTransitionTime": turned_at(before or {}, condition.status, moment),
    }
    if before is None:
        return {"status": {"conditions": [*present, body]}}
    return {"status": {"conditions": [body if each is before else each for each in present]}}


def complete(node: Json, backup: Backup, *, is_machine: bool) -> Json:
    """Returns the patch that adds all that the Node lacks of the backup; it changes only marks of our own."""
    labels = _lacking(_part(node, "metadata", "labels"), backup.labels)
    present = _part(node, "metadata", "annotations")
    marks = _marks(backup, is_machine)
    annotations = _lacking(present, {**backup.annotations, **marks})
    annotations.update(
        {key: marks[key] for key in (FREED, REPLACES) if key in marks and present.get(key) != marks[key]}
    )
    kept = {key: value for key, value in backup.spec.items() if key != "taints"}
    tainted = {_slot(taint) for taint in _taints(node)}
    lost = [taint for taint in backup.spec.get("taints", ()) if _slot(taint) not in tainted]
    spec = _lacking(_part(node, "spec"), kept)
    return _patch(node, labels=labels, annotations=annotations, spec=spec, taints=[*_taints(node), *lost])


def _unheard(now: datetime) -> Json:
    moment = render_moment(now)
    return {
        "type": "Ready",
        "status": "Unknown",
        "reason": RECREATED,
        "message": "pp-hostd has recreated this Node, or completed it, and its kubelet has not reported since",
        "lastHeartbeatTime": moment,
        "lastTransitionTime": moment,
    }


def _marks(backup: Backup, is_machine: bool) -> dict[str, str]:
    if backup.early:  # nothing was freed
        return {REPLACES: backup.uid}
    freed = {FREED: str(backup.id)}
    return {**freed, CONDEMNATION_ID: str(backup.id)} if is_machine else freed


def _patch(
    node: Json,
    *,
    taints: list[Json],
    labels: Json | None = None,
    annotations: Json | None = None,
    spec: Json | None = None,
) -> Json:
    """Only what differs from the Node."""
    metadata = {key: value for key, value in (("labels", labels), ("annotations", annotations)) if value}
    spec = {**(spec or {}), **({} if taints == _taints(node) else {"taints": taints})}
    return {key: value for key, value in (("metadata", metadata), ("spec", spec)) if value}


def _with(node: Json, taint: Json) -> list[Json]:
    """The Node's taints with this one, in place of another with its key and effect; the others keep their places."""
    if taint in _taints(node):
        return _taints(node)
    return [*(each for each in _taints(node) if _slot(each) != _slot(taint)), taint]


def _taints(node: Json) -> list[Json]:
    return list(_part(node, "spec").get("taints") or ())


def _slot(taint: Json) -> tuple[object, object]:
    """The API keeps one taint for each."""
    return taint.get("key"), taint.get("effect")


def _lacking(present: Json, wanted: Any) -> Json:
    return {key: value for key, value in wanted.items() if key not in present}


def _part(node: Json, *keys: str) -> Json:
    """Returns the map under these keys; empty if none, since the API leaves empty maps out."""
    for key in keys:
        node = node.get(key) or {}
    return node


@frozen
class Cordon:
    """Keep workloads off the Node: unschedulable, and the taint that a rebooted kubelet honours (rule 9)."""

    node: str
    uid: str
    resource_version: str
    id: int

    async def run(self, port: Port) -> str:
        change = partial(cordon, condemnation_id=self.id)
        return await change_node(port, self.node, self.uid, self.resource_version, change)


@frozen
class MarkFreeing:
    """Where the Node is kept: the marker that the gate honours, before anything is freed (rule 12)."""

    node: str
    uid: str
    resource_version: str
    id: int
    out_of_service: bool

    async def run(self, port: Port) -> str:
        change = partial(mark_freeing, condemnation_id=self.id, out_of_service=self.out_of_service)
        return await change_node(port, self.node, self.uid, self.resource_version, change)


@frozen
class NoteRequest:
    """Note on the Node that remediation is requested again, before its host is back."""

    node: str
    uid: str
    resource_version: str

    async def run(self, port: Port) -> str:
        return await change_node(port, self.node, self.uid, self.resource_version, note_request)


@frozen
class Uncordon:
    """Take all our marks off the Node."""

    node: str
    uid: str

    async def run(self, port: Port) -> str:
        return await change_node(port, self.node, self.uid, None, uncordon)


@frozen
class DeleteNode:
    """The write that frees: it carries what was checked last (rule 12)."""

    node: str
    uid: str
    resource_version: str

    async def run(self, port: Port) -> str:
        name, version = self.node, self.resource_version
        return await port.write(
            lambda: port.api.delete(NODES, name, uid=self.uid, resource_version=version), NODE, name, version
        )


@frozen
class Recreate:
    """Create the Node of the backup."""

    backup: Backup

    async def run(self, port: Port) -> str:
        body = recreated(self.backup, port.wallclock(), is_machine=port.machines.are_nodes)
        return await port.write(lambda: port.api.create(NODES, body), NODE, self.backup.name, None)


@frozen
class Complete:
    """Give a Node that came back by itself what it lacks of the backup; nothing that it has is overwritten."""

    backup: Backup
    uid: str

    async def run(self, port: Port) -> str:
        change = partial(complete, backup=self.backup, is_machine=port.machines.are_nodes)
        return await change_node(port, self.backup.name, self.uid, None, change)


@frozen
class SetUnknown:
    """Give a Node that has no Ready condition a fresh Ready=Unknown, so that health checks don't call it healthy."""

    node: str
    uid: str
    resource_version: str

    async def run(self, port: Port) -> str:
        change = partial(unheard, now=port.wallclock())
        return await change_node(port, self.node, self.uid, self.resource_version, change, "status")


@frozen
class SetCondition:
    """Give the Node this condition, and touch no other one. It is not written if the Node has it already."""

    node: str
    uid: str
    resource_version: str
    condition: Condition

    async def run(self, port: Port) -> str:
        change = partial(with_condition, condition=self.condition, now=port.wallclock())
        return await change_node(port, self.node, self.uid, self.resource_version, change, "status")


@frozen
class StoreBackup:
    """In place of the stored one of that version; None creates it. The ConfigMap gets another version in any case,
    which voids each request to drop it that is still under way."""

    backup: Backup
    resource_version: str | None

    async def run(self, port: Port) -> str:
        data = {**self.backup.data(), STORED_AFTER: self.resource_version or ""}
        return await port.store(backup_name(self.backup.name), data, self.resource_version)


@frozen
class DropBackup:
    """The Node is back, or was never deleted: that very one must be there when it is dropped. None: it will not come
    back, and must not be there."""

    node: str
    uid: str | None
    resource_version: str

    async def run(self, port: Port) -> str:
        name, version = backup_name(self.node), self.resource_version
        node = await if_there(
            port.api.get(NODES, self.node)
        )  # the watch may be late, and the backup is all that is left
        if (None if node is None else node["metadata"]["uid"]) != self.uid:
            raise _changed(self.node)
        return await port.write(
            lambda: port.api.delete(CONFIG_MAPS, name, namespace=NAMESPACE, resource_version=version),
            CONFIG_MAP,
            name,
            version,
        )


async def change_node(
    port: Port, name: str, uid: str, version: str | None, change: Callable[[Json], Json], part: str | None = None
) -> str:
    """Change the Node as it is now, if it is still the one of this uid and, if one is given, this version."""
    node = await port.api.get(NODES, name)
    found = node["metadata"]["resourceVersion"]
    if node["metadata"]["uid"] != uid or version not in (None, found):
        raise _changed(name)
    patch = change(node)
    if not patch and version is None:  # else it would be planned again and again until the watch shows it
        raise Unwritten(Written.CONFLICT, f"Node {name} is so already, and the watch has not shown it yet")
    if not patch:
        return ""
    patch = conditional(patch, uid, found)
    return await port.write(lambda: port.api.patch(NODES, name, patch, subresource=part), NODE, name, found)


def _changed(name: str) -> Unwritten:
    return Unwritten(Written.CONFLICT, f"Node {name} is no longer what it was when this was planned")
