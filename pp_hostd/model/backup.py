"""The backup of a Node that the leader deletes: the ConfigMap `backup-<node>`, and the Node that is made of it again.

Restored are labels, annotations, taints and the rest of the spec (podCIDRs, providerID): never the status, never an
identity, and nothing of the condemnation (rule 12), so the agent of the new Node has promised nothing, and the Node is
schedulable unless somebody else had cordoned it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pp_hostd.frozen import frozen, replace
from pp_hostd.model.keys import BACKUP_KEY, CORDONED, EARLY_BACKUP_KEY, is_ours
from pp_hostd.model.record import (
    HOST_NAME,
    MAX_CONFIG_MAP_CHARACTERS,
    NAME,
    OPAQUE,
    Fields,
    Refused,
    Unreadable,
    document,
    read,
    render,
)

_KUBERNETES_TAINT = "node.kubernetes.io/"
"""Begins the taints that are not restored: those that Kubernetes derives from status and cordon, and `out-of-service`,
which detaches even a live Node's volumes."""


@frozen
class Backup:
    """The parts of a Node to restore; `uid` is the deleted Node's, `id` that of the condemnation it was deleted for."""

    name: str
    uid: str
    id: int
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    spec: Mapping[str, Any]
    host: str = ""
    """The BareMetalHost that was switched off for it; empty where the host had to reset itself."""
    off: str = ""
    """The version of that BareMetalHost in which it was certainly off."""
    early: bool = False
    """Stored before the Node was touched: if that is missing, somebody else has deleted it, and nothing is freed."""

    def data(self) -> dict[str, str]:
        """Of its ConfigMap."""
        return {EARLY_BACKUP_KEY if self.early else BACKUP_KEY: self.render()}

    def render(self) -> str:
        node = self.node()
        metadata = {**node["metadata"], "uid": self.uid}
        power = {"host": self.host or None, "off": self.off or None}
        return render({"id": self.id, **power, "metadata": metadata, "spec": node["spec"]})

    def node(self) -> dict[str, Any]:
        """The Node to create."""
        metadata = {"name": self.name, "labels": dict(self.labels), "annotations": dict(self.annotations)}
        return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": dict(self.spec)}


def back_up(node: object, condemnation_id: int) -> Backup | Unreadable:
    """The backup of this Node of the API, if it can be read again once it is stored."""
    return read("the Node", lambda source: _restorable(_backup(Fields(source), condemnation_id)), node)


def parse_backup(text: object) -> Backup | Unreadable:
    """The backup that was rendered. It is cleaned once more: somebody may have edited it."""
    return read("the backup", _stored, text)


def parse_stored_backup(data: object) -> Backup | Unreadable:
    """The backup in a ConfigMap's data."""
    return read("the backup", lambda source: _of_data(Fields(source, "data")), data)


def _of_data(data: Fields) -> Backup:
    early = EARLY_BACKUP_KEY in data
    return replace(_stored(data.anything(EARLY_BACKUP_KEY if early else BACKUP_KEY)), early=early)


def _stored(text: object) -> Backup:
    fields = document(text, MAX_CONFIG_MAP_CHARACTERS)
    host = fields.text("host", HOST_NAME) if "host" in fields else ""
    off = fields.text("off", OPAQUE) if "off" in fields else ""
    return replace(_backup(fields, fields.count("id")), host=host, off=off)


def _backup(node: Fields, condemnation_id: int) -> Backup:
    metadata, spec = node.section("metadata"), node.section("spec")
    ours = CORDONED in metadata.section("annotations")
    kept = spec.without("taints", *(["unschedulable"] if ours or spec.anything("unschedulable") is not True else []))
    taints = [taint for taint in spec.elements("taints") if _is_restored(Fields(taint, "a taint"))]
    return Backup(
        name=metadata.text("name", NAME),
        uid=metadata.text("uid", OPAQUE),
        id=condemnation_id,
        labels=_foreign(metadata.texts("labels")),
        annotations=_foreign(metadata.texts("annotations")),
        spec={**kept, "taints": taints} if taints else kept,
    )


def _restorable(backup: Backup) -> Backup:
    """Refuses one that could not be read again, so that no Node is deleted which can't be given back."""
    try:
        _stored(backup.render())
    except ValueError as error:  # a number that is none in JSON
        raise Refused(f"its backup can't be written: {error}") from None
    return backup


def _foreign(texts: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in texts.items() if not is_ours(key)}


def _is_restored(taint: Fields) -> bool:
    key = taint.anything("key")
    if not isinstance(key, str):
        raise Refused("a taint has no key")
    return not is_ours(key) and not key.startswith(_KUBERNETES_TAINT)
