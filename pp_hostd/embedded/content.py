"""What the content of each kind must satisfy, as far as our programs could get it wrong.

Schemas are not checked: a field of the wrong type deep inside `spec` passes here and not on a real server.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Callable

from pp_hostd.embedded.kinds import Kind, Object, at
from pp_hostd.embedded.status import Cause, required, too_long, wrong
from pp_hostd.kube.resources import CONFIG_MAPS, EVENTS, LEASES, NODES, PODS, Resource

_DATA_LIMIT = 1024 * 1024


def causes(kind: Kind, obj: Object) -> Iterator[Cause]:
    """Everything that is wrong with it."""
    if kind.custom:
        yield from _custom(obj)
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
