"""What a write must satisfy before it is looked at: right kind, right name, right place, right version."""

from __future__ import annotations

from typing import Any

from pp_hostd.embedded.kinds import Kind, Object, at
from pp_hostd.embedded.lifecycle import DeleteOptions
from pp_hostd.embedded.status import Cause, bad_request, conflict, invalid, modified, server_error, wrong
from pp_hostd.embedded.validation import type_fault
from pp_hostd.kube.resources import Resource


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
    """What a patch makes must still be of the same kind, and readable."""
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
