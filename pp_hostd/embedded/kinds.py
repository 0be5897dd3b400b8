"""The kinds that the API serves, and where they differ: content, subresources, generation, updates, selectable fields.

Custom resources are served as if their definitions were installed, with the status subresource and without schemas. A
NodeFence has fields of its own instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import Any

from pp_hostd.frozen import frozen, replace
from pp_hostd.kube import resources
from pp_hostd.kube.resources import Resource
from pp_hostd.leader.remedies.node_fence.definitions import fence_definition

Object = dict[str, Any]
"""An object as JSON has it."""

Shapes = Mapping[str, Any]
"""By path, what must be there if anything is: a type, `[type]` for a list, `{}` for a map of texts."""

METADATA: Shapes = {
    "metadata": dict,
    **{f"metadata.{key}": str for key in ("name", "generateName", "namespace", "uid", "resourceVersion")},
    **{f"metadata.{key}": {} for key in ("labels", "annotations")},
    "metadata.finalizers": [str],
    "metadata.ownerReferences": [dict],
}


@frozen
class Kind:
    """The rules for one resource."""

    resource: Resource
    content: tuple[str, ...] = ("spec", "status")
    """The fields beside `metadata`; others are dropped."""
    shapes: Shapes = field(default_factory=lambda: {"spec": dict, "status": dict})
    """Of the content, what this API itself looks into."""
    has_status: bool = True
    """Whether the status is a subresource: it has a path of its own, and is written there only."""
    status_takes_metadata: bool = True
    """Whether a write to the status also changes labels, annotations and the like."""
    counts_generation: bool = False
    unconditional_update: bool = True
    """Whether an update may come without a resourceVersion."""
    create_on_update: bool = False
    shows_deleted: bool = False
    """Whether a deletion is answered with the object even when it is gone."""
    selectable: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """The field selectors beside name and namespace: the path of the field, and what stands for a missing one."""
    custom: bool = False

    @cached_property
    def sections(self) -> dict[str, dict[str, Any]]:
        """All shapes, by the section and the key that they are for; the object itself is the section without a name."""
        sections: dict[str, dict[str, Any]] = {}
        for path, shape in {**METADATA, **self.shapes}.items():
            section, _, key = path.rpartition(".")
            sections.setdefault(section, {})[key] = shape
        return sections

    @cached_property
    def field_labels(self) -> list[str]:
        """The labels that a field selector may name."""
        own = ["metadata.name", "metadata.namespace"] if self.resource.namespaced else ["metadata.name"]
        return [*own, *self.selectable]

    def fields(self, obj: Object) -> dict[str, str]:
        """The values that field selectors see."""
        paths = ((label, *self.selectable.get(label, (label, ""))) for label in self.field_labels)
        return {label: _text(at(obj, path)) or default for label, path, default in paths}


def at(obj: Any, path: str) -> Any:
    """Returns the value under a path of keys; None where there is none."""
    for key in path.split("."):
        obj = obj.get(key) if isinstance(obj, dict) else None
    return obj


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _plain(prefix: str, *keys: str) -> dict[str, tuple[str, str]]:
    return {f"{prefix}{key}": (f"{prefix}{key}", "") for key in keys}


_NODE = Kind(
    resources.NODES,
    shapes={"spec": dict, "spec.unschedulable": bool, "spec.taints": [dict], "status": dict},
    selectable={"spec.unschedulable": ("spec.unschedulable", "false")},
)
_POD = Kind(
    resources.PODS,
    shapes={"spec": dict, "spec.containers": [dict], "spec.terminationGracePeriodSeconds": int, "status": dict},
    counts_generation=True,
    shows_deleted=True,
    selectable={
        **_plain("spec.", "nodeName", "restartPolicy", "schedulerName", "serviceAccountName"),
        **_plain("status.", "phase", "podIP", "nominatedNodeName"),
    },
)
_EVENT = Kind(
    resources.EVENTS,
    content=(
        *("involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "type"),
        *("eventTime", "series", "action", "related", "reportingComponent", "reportingInstance"),
    ),
    shapes={"involvedObject": dict},
    has_status=False,
    create_on_update=True,
    selectable={
        **_plain("involvedObject.", "kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"),
        **_plain("", "reason", "reportingComponent", "type"),
        "source": ("source.component", ""),
    },
)
_BUILT_IN = (
    *(_NODE, _POD, _EVENT),
    Kind(resources.NAMESPACES, selectable=_plain("", "status.phase")),
    Kind(
        resources.CONFIG_MAPS,
        content=("immutable", "data", "binaryData"),
        shapes={"data": {}, "binaryData": {}},
        has_status=False,
    ),
    Kind(
        resources.LEASES,
        content=("spec",),
        shapes={"spec": dict, "spec.leaseDurationSeconds": int},
        has_status=False,
        unconditional_update=False,
        create_on_update=True,
    ),
    Kind(
        resources.SECRETS,
        content=("immutable", "data", "type"),
        shapes={"data": {}, "type": str},
        has_status=False,
    ),
    Kind(resources.JOBS, counts_generation=True, selectable={"status.successful": ("status.succeeded", "0")}),
    Kind(resources.VOLUME_ATTACHMENTS, status_takes_metadata=False, unconditional_update=False, shows_deleted=True),
)


def _custom(resource: Resource) -> Kind:
    return Kind(
        resource,
        shapes={},
        status_takes_metadata=False,
        counts_generation=True,
        unconditional_update=False,
        custom=True,
    )


def _fence() -> Kind:
    schema = fence_definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return replace(_custom(resources.NODE_FENCES), content=tuple(schema["properties"]), has_status=False)


KINDS: dict[Resource, Kind] = {kind.resource: kind for kind in (*_BUILT_IN, _fence())}
KINDS.update(
    (known, _custom(known)) for known in vars(resources).values() if isinstance(known, Resource) and known not in KINDS
)
