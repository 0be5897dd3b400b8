"""The dependents of a deleted object."""

from __future__ import annotations

from typing import Any

import pytest

from pp_hostd.embedded.garbage import collect_garbage
from pp_hostd.embedded.lifecycle import DeleteOptions
from pp_hostd.embedded.store import Store
from pp_hostd.kube.resources import CONFIG_MAPS, METAL3_REMEDIATIONS, OPENSHIFT_MACHINES
from tests.embedded.conftest import config_map


def reference(owner: dict[str, Any]) -> dict[str, str]:
    return {**{key: owner[key] for key in ("apiVersion", "kind")}, **{k: owner["metadata"][k] for k in ("name", "uid")}}


@pytest.fixture
def machine(store: Store) -> dict[str, Any]:
    """The owner of a remediation, which owns a ConfigMap."""
    head = {"kind": "Machine", "apiVersion": OPENSHIFT_MACHINES.api_version}
    machine = store.create(OPENSHIFT_MACHINES, "default", {**head, "metadata": {"name": "machine"}})
    head = {"kind": "Metal3Remediation", "apiVersion": METAL3_REMEDIATIONS.api_version}
    metadata = {"name": "remediation", "ownerReferences": [reference(machine)]}
    remediation = store.create(METAL3_REMEDIATIONS, "default", {**head, "metadata": metadata})
    store.create(CONFIG_MAPS, "default", config_map("notes", ownerReferences=[reference(remediation)]))
    return machine


def delete(store: Store, policy: str) -> None:
    store.delete(OPENSHIFT_MACHINES, "default", "machine", DeleteOptions(propagation_policy=policy))


def left(store: Store) -> list[str]:
    kinds = (OPENSHIFT_MACHINES, METAL3_REMEDIATIONS, CONFIG_MAPS)
    return [item["metadata"]["name"] for kind in kinds for item in store.list(kind)["items"]]


@pytest.mark.usefixtures("machine")
def test_nothing_is_collected_while_its_owner_lives(store: Store) -> None:
    collect_garbage(store)
    assert left(store) == ["machine", "remediation", "notes"]


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize("policy", ["Background", "Foreground"])
def test_dependents_go_with_their_owner_and_theirs_with_them(store: Store, policy: str) -> None:
    delete(store, policy)
    collect_garbage(store)
    assert left(store) == []


@pytest.mark.usefixtures("machine")
def test_an_owner_deleted_in_the_foreground_goes_last(store: Store) -> None:
    finalizer = {"metadata": {"finalizers": ["example.com/hold"]}}
    store.patch(METAL3_REMEDIATIONS, "default", "remediation", finalizer)
    delete(store, "Foreground")
    collect_garbage(store)
    assert left(store) == ["machine", "remediation", "notes"]
    store.patch(METAL3_REMEDIATIONS, "default", "remediation", {"metadata": {"finalizers": None}})
    collect_garbage(store)
    assert left(store) == []


@pytest.mark.usefixtures("machine")
def test_orphans_stay_and_forget_their_owner(store: Store) -> None:
    delete(store, "Orphan")
    collect_garbage(store)
    assert left(store) == ["remediation", "notes"]
    assert "ownerReferences" not in store.get(METAL3_REMEDIATIONS, "default", "remediation")["metadata"]


def test_an_object_stays_for_the_owner_that_is_left(store: Store, machine: dict[str, Any]) -> None:
    other = {**store.create(CONFIG_MAPS, "default", config_map("other")), "kind": "ConfigMap", "apiVersion": "v1"}
    both = {"metadata": {"ownerReferences": [reference(machine), reference(other)]}}
    store.patch(METAL3_REMEDIATIONS, "default", "remediation", both)
    delete(store, "Background")
    collect_garbage(store)
    assert left(store) == ["remediation", "notes", "other"]
    remediation = store.get(METAL3_REMEDIATIONS, "default", "remediation")
    assert remediation["metadata"]["ownerReferences"] == [reference(other)]


def test_an_owner_of_a_kind_that_is_not_served_counts_as_present(store: Store) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "unknown"}
    store.create(CONFIG_MAPS, "default", config_map("notes", ownerReferences=[owner]))
    collect_garbage(store)
    assert left(store) == ["notes"]


def test_a_new_object_under_the_name_of_the_owner_is_not_the_owner(store: Store, machine: dict[str, Any]) -> None:
    delete(store, "Background")
    store.create(OPENSHIFT_MACHINES, "default", {**machine, "metadata": {"name": "machine"}})
    collect_garbage(store)
    assert left(store) == ["machine"]
