"""Which objects the API accepts: the types of what it looks into, and the spelling and size of metadata."""

from __future__ import annotations

import re
from collections.abc import Iterator
from re import Pattern
from typing import Any, Callable

from pp_hostd.embedded.kinds import Kind, Object, at
from pp_hostd.embedded.lifecycle import DeleteOptions
from pp_hostd.embedded.status import (
    Cause,
    bad_request,
    conflict,
    invalid,
    modified,
    required,
    server_error,
    too_long,
    wrong,
)
from pp_hostd.kube.resources import CONFIG_MAPS, EVENTS, LEASES, NAMESPACES, NODES, PODS, Resource

_DNS_LABEL = re.compile("[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(rf"{_DNS_LABEL.pattern}(\.{_DNS_LABEL.pattern})*")
_QUALIFIED = re.compile("([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_QUALIFIED_OR_EMPTY = re.compile(f"({_QUALIFIED.pattern})?")


def subdomain_fault(text: str) -> str:
    """Most objects are named by a DNS subdomain."""
    return _fault(text, "a lowercase RFC 1123 subdomain", _SUBDOMAIN, 253)


def dns_label_fault(text: str) -> str:
    """Namespaces are named by a DNS label."""
    return _fault(text, "a lowercase RFC 1123 label", _DNS_LABEL, 63)


def key_fault(text: str) -> str:
    """Keys of labels and annotations are `name` or `prefix/name`."""
    prefix, slash, name = text.rpartition("/")
    fault = _fault(prefix, "prefix part: a lowercase RFC 1123 subdomain", _SUBDOMAIN, 253) if slash else ""
    return fault or _fault(name, "name part", _QUALIFIED, 63)


def label_value_fault(text: str) -> str:
    """Values of labels may be empty; those of annotations are free."""
    return _fault(text, "a valid label", _QUALIFIED_OR_EMPTY, 63)


def _fault(text: str, what: str, pattern: Pattern[str], limit: int) -> str:
    if len(text) <= limit and pattern.fullmatch(text):
        return ""
    return (
        f"{what} must be no more than {limit} characters, and match the regex used for validation, '{pattern.pattern}'"
    )


_DATA_LIMIT = 1024 * 1024


def content_causes(kind: Kind, obj: Object) -> Iterator[Cause]:
    """Everything that is wrong with it."""
    if kind.custom:
        yield from _custom(obj) if kind.has_status else ()
    elif kind.resource in _CHECKS:
        yield from _CHECKS[kind.resource](obj)


def _custom(obj: Object) -> Iterator[Cause]:
    for key in ("spec", "status"):
        if not isinstance(obj.get(key, {}), dict):
            yield Cause("FieldValueTypeInvalid", key, f"Invalid value: {key} in body must be of type object")


def _node(obj: Object) -> Iterator[Cause]:
    taints = at(obj, "spec.taints") or []
    names = [(taint.get("key"), taint.get("effect")) for taint in taints]
    for index, (key, effect) in enumerate(names):
        field = f"metadata.taints[{index}]"
        if not effect:
            yield required(f"{field}.effect")
        elif names.index((key, effect)) != index:
            yield Cause("FieldValueDuplicate", field, "Duplicate value: taints must be unique by key and effect pair")


def _pod(obj: Object) -> Iterator[Cause]:
    if not at(obj, "spec.containers"):
        yield required("spec.containers")


def _lease(obj: Object) -> Iterator[Cause]:
    duration = at(obj, "spec.leaseDurationSeconds")
    if duration is not None and duration <= 0:
        yield wrong("spec.leaseDurationSeconds", duration, "must be greater than 0")


def _event(obj: Object) -> Iterator[Cause]:
    # Events about what lives in no namespace go to `default`, and nowhere else.
    involved = at(obj, "involvedObject.namespace") or ""
    if obj["metadata"]["namespace"] != (involved or "default"):
        yield wrong("involvedObject.namespace", involved, "does not match event.namespace")


def _config_map(obj: Object) -> Iterator[Cause]:
    values = [*obj.get("data", {}).values(), *obj.get("binaryData", {}).values()]
    if sum(len(value.encode(errors="replace")) for value in values) > _DATA_LIMIT:
        yield too_long("[]", _DATA_LIMIT)


_CHECKS: dict[Resource, Callable[[Object], Iterator[Cause]]] = {
    NODES: _node,
    PODS: _pod,
    LEASES: _lease,
    EVENTS: _event,
    CONFIG_MAPS: _config_map,
}


_ANNOTATIONS_LIMIT = 256 * 1024
_STANDARD_FINALIZERS = ("orphan", "foregroundDeletion", "kubernetes")


def type_fault(kind: Kind, obj: Object) -> str:
    """Returns the reason why the object can't be read as one of its kind; empty if it can."""
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
    causes += content_causes(kind, obj)
    if causes:
        raise invalid(kind.resource.group, kind.resource.kind, metadata.get("name", ""), causes)


def _name_causes(kind: Kind, metadata: Object) -> Iterator[Cause]:
    name = metadata.get("name", "")
    fault = dns_label_fault(name) if kind.resource == NAMESPACES else subdomain_fault(name)
    if not name:
        yield required("metadata.name", "name or generateName is required")
    elif fault:
        yield wrong("metadata.name", name, fault)


def _map_causes(metadata: Object) -> Iterator[Cause]:
    labels, annotations = metadata.get("labels", {}), metadata.get("annotations", {})
    for field, keys in (("metadata.labels", labels), ("metadata.annotations", annotations)):
        for key in keys:
            if key_fault(key):
                yield wrong(field, key, key_fault(key))
    for value in labels.values():
        if label_value_fault(value):
            yield wrong("metadata.labels", value, label_value_fault(value))
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


def readable(kind: Kind, namespace: str, obj: Any) -> Object:
    """An object from outside as one of its kind, with metadata of its own that say where it lies."""
    noun, version = kind.resource.kind, kind.resource.version
    if not isinstance(obj, dict):
        raise bad_request(f"the object provided is unrecognized (must be of type {noun})")
    _check_kind(kind, obj)
    fault = type_fault(kind, obj)
    if fault:
        raise bad_request(f'{noun} in version "{version}" cannot be handled as a {noun}: {fault}')
    return placed(kind, namespace, obj)


def placed(kind: Kind, namespace: str, obj: Object) -> Object:
    """A copy of the object with metadata of its own, in that namespace, if it names no other."""
    metadata = obj.get("metadata") or {}
    if (metadata.get("namespace") or namespace) != namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    return {**obj, "metadata": {**metadata, "namespace": namespace} if kind.resource.namespaced else dict(metadata)}


def _check_kind(kind: Kind, obj: Object) -> None:
    resource = kind.resource
    noun, version = obj.get("kind"), obj.get("apiVersion")
    if not kind.custom:
        noun, version = noun or resource.kind, version or resource.api_version
    if (noun, version) == (resource.kind, resource.api_version):
        return
    if kind.custom and noun and version == resource.api_version:
        cause = wrong("kind", noun, f"must be {resource.kind}")
        raise invalid(resource.group, str(noun), str(at(obj, "metadata.name") or ""), [cause])
    raise bad_request(f'{noun} in version "{version}" cannot be handled as a {resource.kind}')


def check_merged(kind: Kind, merged: Object) -> None:
    """Refuses a patch whose result is no longer of the same kind, or not readable."""
    resource = kind.resource
    fault = type_fault(kind, merged)
    if (merged.get("kind"), merged.get("apiVersion")) != (resource.kind, resource.api_version):
        fault = f"it is no longer a {resource.kind} of {resource.api_version}"
    if fault:
        raise invalid("", "", "", [Cause("FieldValueInvalid", "patch", f"Invalid value: {fault}")])


def check_name(name: str, obj: Object) -> None:
    """The object must name itself as the request does."""
    found = at(obj, "metadata.name")
    if not found:
        raise bad_request(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
    if found != name:
        raise bad_request(f"the name of the object ({found}) does not match the name on the URL ({name})")


def check_uid(resource: Resource, old: Object, wanted: Object) -> None:
    """An update that names a uid is for that object only."""
    uid, current = wanted["metadata"].get("uid"), old["metadata"]["uid"]
    if uid and uid != current:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {current}"
        raise conflict(resource, old["metadata"]["name"], why)


def check_version(kind: Kind, old: Object, wanted: Object) -> None:
    """Optimistic locking: a write that names a version fails if another one is stored."""
    name, version = old["metadata"]["name"], wanted["metadata"].get("resourceVersion")
    if version in (None, "", "0"):
        if not kind.unconditional_update:
            cause = wrong("metadata.resourceVersion", 0, "must be specified for an update")
            raise invalid(kind.resource.group, kind.resource.plural, name, [cause])
    elif not version.isdecimal():
        raise server_error(f'strconv.ParseUint: parsing "{version}": invalid syntax')
    elif version != old["metadata"]["resourceVersion"]:
        raise modified(kind.resource, name)


def check_immutable(resource: Resource, old: Object, wanted: Object) -> None:
    """No write gives an object another identity, or marks it for deletion. Leaving the mark out does no harm."""
    was, now = old["metadata"], wanted["metadata"]
    changed = [key for key in ("uid", "deletionTimestamp") if now.get(key) and now[key] != was.get(key)]
    if changed:
        causes = [wrong(f"metadata.{key}", now[key], "field is immutable") for key in changed]
        raise invalid(resource.group, resource.kind, was["name"], causes)


def check_deletion(resource: Resource, metadata: Object, options: DeleteOptions) -> None:
    """A deletion that names a uid or a version is for that object, or that state of it, only."""
    for noun, wanted, found, else_was in (
        ("UID", options.uid, metadata["uid"], "deleted and then recreated"),
        ("ResourceVersion", options.resource_version, metadata["resourceVersion"], "modified"),
    ):
        if wanted is not None and wanted != found:
            why = f"the {noun} in the precondition ({wanted}) does not match the {noun} in record ({found})"
            raise conflict(resource, metadata["name"], f"{why}. The object might have been {else_was}", of_kind=True)
