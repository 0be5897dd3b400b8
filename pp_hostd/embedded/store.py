"""The API without a network: Kubernetes' semantics over objects in memory, synchronous, with no clock of its own.

The holder of a store calls its methods; each returns what the API would answer or raises a StatusError. Time and uids
come from outside, so the same calls give the same results. Objects are kept as text: an object that goes in or comes
out is the caller's own, never the store's.

Not here, because on a real cluster other programs do it: garbage collection (see `garbage`), the emptying of
namespaces, scheduling, kubelets. Not here at all: dry runs of anything but patches, server-side apply, field ownership,
schemas.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Callable

from pp_hostd.embedded import lifecycle, paging, validation
from pp_hostd.embedded import validation as pre
from pp_hostd.embedded.history import Event, Key, Subscription, Table, Version, to_text
from pp_hostd.embedded.kinds import KINDS, Object
from pp_hostd.embedded.lifecycle import DeleteOptions
from pp_hostd.embedded.paging import Query
from pp_hostd.embedded.status import Cause, already_exists, bad_request, expired, forbidden, server_error, success
from pp_hostd.kube.resources import NAMESPACES, PODS, Resource


def merge_patch(target: Any, patch: Any) -> Any:
    """The target changed by the patch: null removes, objects merge, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


FIRST_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_UNDELETABLE = ("default", "kube-public", "kube-system")
_EVERYTHING = Query()
_PLAINLY = DeleteOptions()
Saved = Mapping[Resource, Mapping[Key, Version]]
"""All objects as they were at one revision."""


class Store:
    """Everything that is stored, one revision counter over it, and who watches."""

    def __init__(
        self,
        wallclock: Callable[[], float],
        new_uid: Callable[[], str],
        *,
        history_limit: int = 10_000,
        watch_limit: int = 10_000,
    ) -> None:
        """`history_limit`: how many changes of each kind can be replayed. `watch_limit`: events a watcher may lag."""
        self._wallclock = wallclock
        self._new_uid = new_uid
        self._tables = {resource: Table(kind, history_limit, watch_limit) for resource, kind in KINDS.items()}
        self.revision = 0
        for name in FIRST_NAMESPACES:
            self.create(NAMESPACES, "", {"metadata": {"name": name}})

    def create(self, resource: Resource, namespace: str, obj: Object) -> Object:
        """Store a new object under its name, or under one made from its generateName."""
        table = self._tables[resource]
        obj = pre.readable(table.kind, namespace, obj)
        metadata = obj["metadata"]
        if resource.namespaced:
            self._check_namespace(resource, namespace, metadata.get("name") or "")
        if metadata.get("resourceVersion"):
            raise server_error("resourceVersion should not be set on objects to be created")
        uid = self._new_uid()
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = metadata["generateName"] + hashlib.sha256(uid.encode()).hexdigest()[:5]
        new = lifecycle.created(table.kind, obj, uid, self._wallclock())
        validation.check(table.kind, new)
        key = Key(namespace, metadata["name"])
        if key in table.rows:
            raise already_exists(resource, key.name)
        return table.put(key, new, self._next_revision())

    def get(self, resource: Resource, namespace: str, name: str) -> Object:
        """The object as it is now."""
        return self._tables[resource].read(Key(namespace, name))

    def has(self, resource: Resource, namespace: str, name: str) -> bool:
        """Whether there is such an object now."""
        return Key(namespace, name) in self._tables[resource].rows

    def list(self, resource: Resource, query: Query = _EVERYTHING) -> Object:
        """Objects in the order of their names, as a List. Items of built-in kinds do not tell their kind."""
        table = self._tables[resource]
        items, metadata = paging.page(table, query, self.revision)
        if not table.kind.custom:
            items = [{key: value for key, value in item.items() if key not in ("kind", "apiVersion")} for item in items]
        head = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version}
        return {**head, "metadata": metadata, "items": items}

    def wallclock(self) -> float:
        """The time by which objects are dated."""
        return self._wallclock()

    def update(self, resource: Resource, namespace: str, name: str, obj: Object, subresource: str = "") -> Object:
        """Replace the object, or (subresource `status`) its status."""
        table = self._tables[resource]
        obj = pre.readable(table.kind, namespace, obj)
        pre.check_name(name, obj)
        key = Key(namespace, name)
        if table.kind.create_on_update and key not in table.rows:
            obj["metadata"].pop("resourceVersion", None)
            return self.create(resource, namespace, obj)
        old = table.read(key)
        pre.check_uid(resource, old, obj)
        return self._replace(table, key, old, obj, subresource)

    def patch(
        self, resource: Resource, namespace: str, name: str, patch: Any, subresource: str = "", *, dry: bool = False
    ) -> Object:
        """Change the object, or (subresource `status`) its status, by a merge-patch; `dry`: all but the storing."""
        table = self._tables[resource]
        if not isinstance(patch, dict):
            raise bad_request("error decoding patch: it must be an object")
        key = Key(namespace, name)
        old = table.read(key)
        merged = merge_patch(old, patch)
        pre.check_merged(table.kind, merged)
        pre.check_name(name, merged)
        return self._replace(table, key, old, pre.placed(table.kind, namespace, merged), subresource, dry=dry)

    def delete(self, resource: Resource, namespace: str, name: str, options: DeleteOptions = _PLAINLY) -> Object:
        """Delete it, or mark it while finalizers or a grace period keep it.

        Returns what the API answers: the object if it stays for now (some kinds show it in any case), else a success.
        """
        table = self._tables[resource]
        key = Key(namespace, name)
        old = table.read(key)
        if resource == NAMESPACES and name in _UNDELETABLE:
            raise forbidden("", "namespaces", name, "this namespace may not be deleted")
        pre.check_deletion(resource, old["metadata"], options)
        stored = lifecycle.tidy(table.kind, old)
        new = lifecycle.marked(table.kind, stored, options, self._wallclock())
        if not lifecycle.is_over(table.kind, new):
            return old if new == stored else table.put(key, new, self._next_revision())
        if resource == PODS:
            old = table.put(key, new, self._next_revision())  # watchers see the mark before the end
        table.remove(key, self._next_revision())
        if table.kind.shows_deleted:
            return {**old, "metadata": {**old["metadata"], "resourceVersion": str(self.revision)}}
        return success(resource, name, old["metadata"]["uid"])

    def watch(self, resource: Resource, wake: Callable[[], None], query: Query = _EVERYTHING) -> Subscription:
        """Hear of changes after a resourceVersion; without one (or with "0"), first of everything that is there.

        `wake` is called when there is something to take from the subscription. A version that is too old to go on from
        is told by the first take.
        """
        table = self._tables[resource]
        selector, version = query.selector(table.kind), query.resource_version
        if version and not version.isdecimal():
            raise server_error(f'resourceVersion: Invalid value: "{version}"')
        return table.watch(selector, query.namespace, int(version or 0), self.revision, wake)

    def bookmark(self, resource: Resource) -> Event:
        """Returns the event that tells a watcher which has taken everything how far it has come."""
        empty = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": {}}
        return Event("BOOKMARK", to_text(empty, self.revision))

    def compact(self) -> None:
        """Forget all history: every resourceVersion and continue token handed out so far is too old from here on."""
        revision = self._next_revision()
        for table in self._tables.values():
            table.history.forget(revision)

    def saved(self) -> Saved:
        """Returns the content of an etcd snapshot."""
        return {resource: dict(table.rows) for resource, table in self._tables.items()}

    def restore(self, saved: Saved) -> None:
        """As it was when it was saved; versions go on from here, and whoever watches must list again."""
        for resource, rows in saved.items():
            table = self._tables[resource]
            for key in [key for key in table.rows if key not in rows]:
                table.remove(key, self._next_revision())
            for key, row in rows.items():
                if table.rows.get(key) is not row:
                    table.put(key, row.object(), self._next_revision())
            table.cut_off(expired("the store was restored"))
        self.compact()

    def put_back(self, resource: Resource, key: Key, obj: Object) -> Object:
        """An object that was deleted, with its old uid, as a restore from a backup of single objects does."""
        return self._tables[resource].put(key, obj, self._next_revision())

    def _replace(
        self, table: Table, key: Key, old: Object, wanted: Object, subresource: str, *, dry: bool = False
    ) -> Object:
        pre.check_version(table.kind, old, wanted)
        pre.check_immutable(table.kind.resource, old, wanted)
        stored = lifecycle.tidy(table.kind, old)
        new = lifecycle.updated(table.kind, stored, wanted, subresource)
        validation.check(table.kind, new, stored)
        if new == stored:
            return old
        if not dry:
            if not lifecycle.is_over(table.kind, new):
                return table.put(key, new, self._next_revision())
            table.remove(key, self._next_revision())
        return {**new, "metadata": {**new["metadata"], "resourceVersion": old["metadata"]["resourceVersion"]}}

    def _next_revision(self) -> int:
        self.revision += 1
        return self.revision

    def _check_namespace(self, resource: Resource, namespace: str, name: str) -> None:
        home = self.get(NAMESPACES, "", namespace)
        if "deletionTimestamp" in home["metadata"]:
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            cause = Cause("NamespaceTerminating", "metadata.namespace", f"namespace {namespace} is being terminated")
            raise forbidden(resource.group, resource.plural, name, why, [cause])
