"""Which objects the API accepts: the types of what it looks into, and the spelling and size of metadata."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pp_hostd.embedded import content, syntax
from pp_hostd.embedded.kinds import Kind, Object
from pp_hostd.embedded.status import Cause, invalid, required, too_long, wrong
from pp_hostd.kube.resources import NAMESPACES

_ANNOTATIONS_LIMIT = 256 * 1024
_STANDARD_FINALIZERS = ("orphan", "foregroundDeletion", "kubernetes")


def type_fault(kind: Kind, obj: Object) -> str:
    """What keeps the object from being read as one of its kind; empty if none."""
    for section, shapes in kind.sections.items():
        values = obj.get(section) or {} if section else obj
        for key, shape in shapes.items():
            value = values.get(key)
            if value is not None and not _fits(value, shape):
                path = f"{section}.{key}" if section else key
                return f"json: cannot unmarshal {type(value).__name__} or its content into field {path}"
    return ""


def _fits(value: Any, shape: Any) -> bool:
    if isinstance(shape, list):
        return isinstance(value, list) and all(isinstance(item, shape[0]) for item in value)
    if isinstance(shape, dict):
        return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())
    return isinstance(value, shape)


def check(kind: Kind, obj: Object, old: Object | None = None) -> None:
    """Refuse an object that is not valid, naming everything that is wrong with it."""
    metadata = obj["metadata"]
    causes = [*_name_causes(kind, metadata), *_map_causes(metadata), *_finalizer_causes(kind, metadata, old)]
    causes += content.causes(kind, obj)
    if causes:
        raise invalid(kind.resource.group, kind.resource.kind, metadata.get("name", ""), causes)


def _name_causes(kind: Kind, metadata: Object) -> Iterator[Cause]:
    name = metadata.get("name", "")
    fault = syntax.dns_label_fault(name) if kind.resource == NAMESPACES else syntax.subdomain_fault(name)
    if not name:
        yield required("metadata.name", "name or generateName is required")
    elif fault:
        yield wrong("metadata.name", name, fault)


def _map_causes(metadata: Object) -> Iterator[Cause]:
    labels, annotations = metadata.get("labels", {}), metadata.get("annotations", {})
    for field, keys in (("metadata.labels", labels), ("metadata.annotations", annotations)):
        for key in keys:
            if syntax.key_fault(key):
                yield wrong(field, key, syntax.key_fault(key))
    for value in labels.values():
        if syntax.label_value_fault(value):
            yield wrong("metadata.labels", value, syntax.label_value_fault(value))
    if sum(len(text.encode(errors="replace")) for item in annotations.items() for text in item) > _ANNOTATIONS_LIMIT:
        yield too_long("metadata.annotations", _ANNOTATIONS_LIMIT)


def _finalizer_causes(kind: Kind, metadata: Object, old: Object | None) -> Iterator[Cause]:
    finalizers = metadata.get("finalizers", [])
    for index, name in enumerate(finalizers):
        if "/" not in name and name not in _STANDARD_FINALIZERS and not kind.custom:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            yield wrong(f"metadata.finalizers[{index}]", name, why)
    if old is not None and "deletionTimestamp" in old["metadata"]:
        added = [name for name in finalizers if name not in old["metadata"].get("finalizers", [])]
        if added:
            why = f"Forbidden: no new finalizers can be added if the object is being deleted, found {', '.join(added)}"
            yield Cause("FieldValueForbidden", "metadata.finalizers", why)
