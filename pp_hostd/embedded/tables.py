"""Tables as kubectl asks for them: the columns of the kinds that a person looks at most, and the age of all others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Callable

from pp_hostd.embedded.kinds import Object, at
from pp_hostd.kube.resources import EVENTS, LEASES, NODE_HEALTH_CHECKS, NODES, PODS, VOLUME_ATTACHMENTS, Resource
from pp_hostd.model.moment import parse_moment

WANTED = "as=Table;v=v1;g=meta.k8s.io"
Column = tuple[str, Callable[[Object], str]]


def wants_table(accept: str) -> bool:
    """Whether the client prefers a table, as `kubectl get` does unless it prints all of an object."""
    return WANTED in accept


def table(resource: Resource, answer: Object, wallclock: float) -> Object:
    """The Table of one object or of a list."""
    objects = answer.get("items", [answer])
    wide = WIDE.get(resource, ())
    columns = [("Name", _path("metadata.name")), *COLUMNS.get(resource, ()), ("Age", _age(wallclock)), *wide]
    narrow = len(columns) - len(wide)
    definitions = [
        {
            "name": name,
            "type": "string",
            "format": "name" if name == "Name" else "",
            "description": name,
            "priority": int(number >= narrow),
        }
        for number, (name, _) in enumerate(columns)
    ]
    rows = [{"cells": [of(each) for _, of in columns], "object": _known(each)} for each in objects]
    head = {"kind": "Table", "apiVersion": "meta.k8s.io/v1"}
    metadata = {} if "items" not in answer else answer["metadata"]
    return {**head, "metadata": metadata, "columnDefinitions": definitions, "rows": rows}


def _known(obj: Object) -> Object:
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}


def _path(path: str) -> Callable[[Object], str]:
    return lambda obj: _text(at(obj, path))


def _text(value: Any) -> str:
    return "<none>" if value in (None, "") else str(value)


def _age(wallclock: float) -> Callable[[Object], str]:
    def age(obj: Object) -> str:
        created = parse_moment(obj["metadata"].get("creationTimestamp", ""))
        seconds = 0 if created is None else int(wallclock - created.timestamp())
        minutes = seconds // 60
        return f"{max(0, seconds)}s" if minutes < 2 else f"{minutes}m" if minutes < 120 else f"{minutes // 60}h"

    return age


def _node_status(node: Object) -> str:
    ready = {"True": "Ready", "False": "NotReady", "Unknown": "NotReady"}
    states = [
        ready.get(each["status"], "Unknown") for each in at(node, "status.conditions") or () if each["type"] == "Ready"
    ]
    return ",".join([*(states or ["Unknown"]), *(["SchedulingDisabled"] if at(node, "spec.unschedulable") else [])])


def _roles(node: Object) -> str:
    prefix = "node-role.kubernetes.io/"
    return (
        ",".join(key[len(prefix) :] for key in node["metadata"].get("labels", {}) if key.startswith(prefix)) or "<none>"
    )


def _address(node: Object) -> str:
    found = (each["address"] for each in at(node, "status.addresses") or () if each["type"] == "InternalIP")
    return next(found, "<none>")


def _containers(pod: Object) -> Sequence[Mapping[str, Any]]:
    return at(pod, "status.containerStatuses") or ()


def _pod_ready(pod: Object) -> str:
    ready = sum(each.get("ready") is True for each in _containers(pod))
    return f"{ready}/{len(at(pod, 'spec.containers') or ())}"


def _pod_status(pod: Object) -> str:
    return "Terminating" if "deletionTimestamp" in pod["metadata"] else at(pod, "status.phase") or "Pending"


def _restarts(pod: Object) -> str:
    return str(sum(each.get("restartCount", 0) for each in _containers(pod)))


def _about(event: Object) -> str:
    return f"{_text(at(event, 'involvedObject.kind')).lower()}/{at(event, 'involvedObject.name')}"


COLUMNS: Mapping[Resource, Sequence[Column]] = {
    NODES: (
        ("Status", _node_status),
        ("Roles", _roles),
        ("Version", _path("status.nodeInfo.kubeletVersion")),
    ),
    PODS: (("Ready", _pod_ready), ("Status", _pod_status), ("Restarts", _restarts)),
    LEASES: (("Holder", _path("spec.holderIdentity")),),
    EVENTS: (("Type", _path("type")), ("Reason", _path("reason")), ("Object", _about), ("Message", _path("message"))),
    VOLUME_ATTACHMENTS: (
        ("PV", _path("spec.source.persistentVolumeName")),
        ("Node", _path("spec.nodeName")),
    ),
    NODE_HEALTH_CHECKS: (
        ("Nodes", _path("status.expectedNodes")),
        ("Healthy", _path("status.currentHealthy")),
    ),
}
WIDE: Mapping[Resource, Sequence[Column]] = {
    NODES: (("Internal-IP", _address),),
    PODS: (("IP", _path("status.podIP")), ("Node", _path("spec.nodeName"))),
}
