"""The API's own writes into objects that are created, changed and deleted, per kind as the real API makes them."""

from __future__ import annotations

from datetime import datetime, timezone

from pp_hostd.embedded.kinds import Kind, Object, at
from pp_hostd.frozen import frozen
from pp_hostd.kube.resources import JOBS, NAMESPACES, NODES, PODS, VOLUME_ATTACHMENTS

_NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
_POD_DEFAULTS = {"restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "schedulerName": "default-scheduler"}
_FIRST_STATUS = {NAMESPACES: {"phase": "Active"}, PODS: {"phase": "Pending"}, VOLUME_ATTACHMENTS: {"attached": False}}
_OWN_METADATA = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")
_DROPPED_METADATA = ("selfLink", "managedFields", "resourceVersion")
_TIME = "%Y-%m-%dT%H:%M:%SZ"


def timestamp(seconds: float) -> str:
    """A point in time as objects carry it."""
    return datetime.fromtimestamp(int(seconds), timezone.utc).strftime(_TIME)


def tidy(kind: Kind, obj: Object) -> Object:
    """The object in the API's order, without the fields that it does not know and without empty ones in metadata."""
    metadata = {k: v for k, v in obj["metadata"].items() if k not in _DROPPED_METADATA and v not in ({}, [], "", None)}
    known = {key: obj[key] for key in kind.content if obj.get(key) is not None}
    return {"kind": kind.resource.kind, "apiVersion": kind.resource.api_version, "metadata": metadata, **known}


def created(kind: Kind, obj: Object, uid: str, now: float) -> Object:
    """A new object as it is stored."""
    new = tidy(kind, obj)
    metadata = {key: value for key, value in new["metadata"].items() if key not in _OWN_METADATA}
    metadata.update(uid=uid, creationTimestamp=timestamp(now))
    if kind.counts_generation:
        metadata["generation"] = 1
    new["metadata"] = metadata
    if kind.has_status and kind.resource != NODES:  # a kubelet registers its Node with the status
        new.pop("status", None)
    if kind.resource in _FIRST_STATUS:
        new["status"] = _FIRST_STATUS[kind.resource]
    if kind.resource == NODES:
        new["spec"] = _not_ready(new.get("spec", {}))
    elif kind.resource == PODS:
        new["spec"] = {**_POD_DEFAULTS, **new.get("spec", {})}
    elif kind.resource == NAMESPACES:
        metadata["labels"] = {**metadata.get("labels", {}), "kubernetes.io/metadata.name": metadata.get("name", "")}
        new["spec"] = {"finalizers": ["kubernetes"]}
    return new


def _not_ready(spec: Object) -> Object:
    taints = spec.get("taints") or []
    known = any((taint.get("key"), taint.get("effect")) == tuple(_NOT_READY.values()) for taint in taints)
    return spec if known else {**spec, "taints": [*taints, _NOT_READY]}


def updated(kind: Kind, old: Object, wanted: Object, subresource: str) -> Object:
    """The new state of `old` after a write of `wanted` to the object itself or to its status."""
    new = tidy(kind, wanted)
    metadata = new["metadata"]
    if subresource:
        metadata = metadata if kind.status_takes_metadata else dict(old["metadata"])
        new = {**old, "status": new.get("status")}
    elif kind.has_status:
        new["status"] = old.get("status")
    if kind.resource == NAMESPACES:
        new["spec"] = old["spec"]
    for key in _OWN_METADATA:
        metadata[key] = old["metadata"].get(key)
    if kind.counts_generation and _desired(new) != _desired(old):
        metadata["generation"] += 1
    return tidy(kind, {**new, "metadata": metadata})


def _desired(obj: Object) -> Object:
    return {key: value for key, value in obj.items() if key not in ("metadata", "status")}


@frozen
class DeleteOptions:
    """The preconditions of a deletion, and how the API carries it out."""

    uid: str | None = None
    resource_version: str | None = None
    grace_period_seconds: int | None = None
    propagation_policy: str | None = None


def marked(kind: Kind, old: Object, options: DeleteOptions, now: float) -> Object:
    """The object on its way out: what is stored while finalizers or a grace period keep it."""
    metadata = dict(old["metadata"])
    metadata["finalizers"] = _finalizers(kind, metadata.get("finalizers", []), options.propagation_policy)
    new = {**old, "metadata": metadata}
    if kind.resource == NAMESPACES:
        metadata.setdefault("deletionTimestamp", timestamp(now))
        return tidy(kind, {**new, "status": {"phase": "Terminating"}})
    grace = _grace_period(old, options.grace_period_seconds) if kind.resource == PODS else 0
    if "deletionTimestamp" not in metadata:
        metadata.update(deletionTimestamp=timestamp(now + grace), deletionGracePeriodSeconds=grace)
        if kind.counts_generation:
            metadata["generation"] += 1
    elif grace < metadata["deletionGracePeriodSeconds"]:
        ends = datetime.strptime(metadata["deletionTimestamp"], _TIME).replace(tzinfo=timezone.utc).timestamp()
        begun = ends - metadata["deletionGracePeriodSeconds"]
        metadata.update(deletionTimestamp=timestamp(begun + grace), deletionGracePeriodSeconds=grace)
    return tidy(kind, new)


def _finalizers(kind: Kind, present: list[str], policy: str | None) -> list[str]:
    if policy is None and kind.resource == JOBS:
        policy = "Orphan"  # a deletion in version v1 of that group has always meant this
    if policy is None:
        return present
    kept = [name for name in present if name not in ("orphan", "foregroundDeletion")]
    return kept + {"Orphan": ["orphan"], "Foreground": ["foregroundDeletion"]}.get(policy, [])


def _grace_period(pod: Object, asked: int | None) -> int:
    if not pod["spec"].get("nodeName") or at(pod, "status.phase") in ("Succeeded", "Failed"):
        return 0
    left = pod["metadata"].get("deletionGracePeriodSeconds")
    usual = pod["spec"].get("terminationGracePeriodSeconds")
    period: int = next((wish for wish in (asked, left, usual) if wish is not None), 30)
    return period if period >= 0 else 1


def is_over(kind: Kind, obj: Object) -> bool:
    """Whether nothing keeps an object that is being deleted. Namespaces stay: nobody here empties them."""
    metadata = obj["metadata"]
    held = metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds") or kind.resource == NAMESPACES
    return "deletionTimestamp" in metadata and not held
