"""A cluster's garbage collector after a deletion: it deletes dependents, or orphans them, then releases the owner.

On a real cluster the controller-manager does this, some time later. Here the holder of the store calls
`collect_garbage` at any time; that works through the store's own methods.

An object whose owners are all gone, or wait for it to go (foreground deletion), is deleted. While one of several owners
stays, the object only loses the references to the others. It also loses the reference to an owner that orphans. Owners
of kinds that are not served here, such as a Pod's StatefulSet, count as staying.
"""

from __future__ import annotations

from typing import NamedTuple

from pp_hostd.embedded.kinds import KINDS, Object
from pp_hostd.embedded.lifecycle import DeleteOptions
from pp_hostd.embedded.store import Store
from pp_hostd.kube.resources import Resource

_SERVED = {(resource.api_version, resource.kind) for resource in KINDS}


class _Found(NamedTuple):
    resource: Resource
    metadata: Object

    @property
    def place(self) -> tuple[Resource, str, str]:
        return self.resource, self.metadata.get("namespace", ""), self.metadata["name"]

    @property
    def owners(self) -> list[Object]:
        references: list[Object] = self.metadata.get("ownerReferences", [])
        return references

    @property
    def dying(self) -> bool:
        return "deletionTimestamp" in self.metadata

    def waits(self, finalizer: str) -> bool:
        return self.dying and finalizer in self.metadata.get("finalizers", [])


def collect_garbage(store: Store) -> None:
    """Pass over everything until a pass changes nothing."""
    before = -1
    while before != store.revision:
        before = store.revision
        found = [_Found(resource, item["metadata"]) for resource in KINDS for item in store.list(resource)["items"]]
        by_uid = {one.metadata["uid"]: one for one in found}
        owning = {reference.get("uid") for one in found for reference in one.owners}
        for one in found:
            _collect(store, one, by_uid)
            for finalizer in ("orphan", "foregroundDeletion"):
                if one.waits(finalizer) and one.metadata["uid"] not in owning:
                    left = [name for name in one.metadata["finalizers"] if name != finalizer]
                    store.patch(*one.place, {"metadata": {"finalizers": left}})


def _collect(store: Store, one: _Found, by_uid: dict[str, _Found]) -> None:
    def owner_waits(reference: Object, finalizer: str) -> bool:
        owner = by_uid.get(reference.get("uid", ""))
        return owner is not None and owner.waits(finalizer)

    def gone(reference: Object) -> bool:
        served = (reference.get("apiVersion"), reference.get("kind")) in _SERVED
        return served and (reference.get("uid") not in by_uid or owner_waits(reference, "foregroundDeletion"))

    kept = [reference for reference in one.owners if not owner_waits(reference, "orphan")]
    staying = [reference for reference in one.owners if not gone(reference)]
    if staying and kept == one.owners:
        kept = staying
    if kept != one.owners:
        store.patch(*one.place, {"metadata": {"ownerReferences": kept}})
    elif one.owners and not staying and not one.dying:
        store.delete(*one.place, DeleteOptions(uid=one.metadata["uid"], propagation_policy="Background"))
