"""Properties of the store beyond the contract: it depends on nothing but its arguments, and shares nothing."""

from __future__ import annotations

import sys
from subprocess import run
from typing import Any, Callable

from hypothesis import given
from hypothesis import strategies as st

from pp_hostd.embedded.kinds import KINDS
from pp_hostd.embedded.lifecycle import DeleteOptions
from pp_hostd.embedded.status import StatusError
from pp_hostd.embedded.store import Store
from pp_hostd.kube.resources import CONFIG_MAPS, NODES, PODS, Resource
from tests.embedded.conftest import EXAMPLES, VirtualTime, config_map, new_store

POD = {"metadata": {"name": "pod"}, "spec": {"nodeName": "worker-1", "containers": [{"name": "c", "image": "i"}]}}


def live(clock: VirtualTime) -> list[Any]:
    """Some minutes in the life of a cluster, and everything that was answered in them."""
    store = new_store(clock)
    told: list[Any] = []
    subscription = store.watch(CONFIG_MAPS, lambda: told.append("woken"))
    told.append(store.create(NODES, "", {"metadata": {"generateName": "worker-"}}))
    for name in "abc":
        clock.now += 60
        told.append(store.create(CONFIG_MAPS, "default", config_map(name)))
    told.append(store.patch(CONFIG_MAPS, "default", "b", {"data": {"key": "value"}}))
    told.append(store.delete(CONFIG_MAPS, "default", "a"))
    told.append(store.list(CONFIG_MAPS))
    told.append([(event.type, event.object()) for event in subscription.take()])
    return told


def test_the_same_calls_with_the_same_clock_and_uids_give_the_same_results() -> None:
    assert live(VirtualTime()) == live(VirtualTime())


def test_times_come_from_the_clock_that_was_given(store: Store, clock: VirtualTime) -> None:
    clock.now += 3600
    assert (
        store.create(NODES, "", {"metadata": {"name": "n"}})["metadata"]["creationTimestamp"] == "2023-11-14T23:13:20Z"
    )


def test_a_grace_period_that_is_shortened_still_counts_from_the_first_deletion(
    store: Store, clock: VirtualTime
) -> None:
    store.create(PODS, "default", POD)
    store.delete(PODS, "default", "pod", DeleteOptions(grace_period_seconds=60))
    clock.now += 10
    shortened = store.delete(PODS, "default", "pod", DeleteOptions(grace_period_seconds=20))
    assert shortened["metadata"]["deletionTimestamp"] == "2023-11-14T22:13:40Z"


def test_an_object_that_was_handed_in_is_not_the_stores(store: Store) -> None:
    handed_in = config_map("roster", {"a": "1"}, labels={"rack": "7"})
    before = config_map("roster", {"a": "1"}, labels={"rack": "7"})
    store.create(CONFIG_MAPS, "default", handed_in)
    assert handed_in == before
    handed_in["data"]["a"] = handed_in["metadata"]["labels"]["rack"] = "changed"
    assert store.get(CONFIG_MAPS, "default", "roster")["data"] == {"a": "1"}
    assert store.get(CONFIG_MAPS, "default", "roster")["metadata"]["labels"] == {"rack": "7"}


def test_a_patch_that_was_handed_in_is_not_the_stores(store: Store) -> None:
    store.create(NODES, "", {"metadata": {"name": "n"}})
    patch = {"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}}
    store.patch(NODES, "", "n", patch)
    patch["spec"]["taints"][0]["effect"] = "changed"
    assert store.get(NODES, "", "n")["spec"]["taints"] == [{"key": "k", "effect": "NoExecute"}]


def test_whatever_is_handed_out_can_be_changed_without_harm(store: Store) -> None:
    subscription = store.watch(CONFIG_MAPS, lambda: None)
    created = store.create(CONFIG_MAPS, "default", config_map("roster", {"a": "1"}))
    (event,) = subscription.take()
    given_out = [
        created,
        store.get(CONFIG_MAPS, "default", "roster"),
        store.list(CONFIG_MAPS)["items"][0],
        store.patch(CONFIG_MAPS, "default", "roster", {}),
        event.object(),
    ]
    for obj in given_out:
        assert obj["data"] == {"a": "1"}
        obj["data"]["a"] = "changed"
    assert store.get(CONFIG_MAPS, "default", "roster")["data"] == {"a": "1"}


def test_the_store_needs_no_socket_no_thread_and_no_event_loop() -> None:
    banned = "{'asyncio', 'socket', 'ssl', 'threading', 'h11', 'random', 'uuid', '_ssl', 'select'}"
    code = f"import sys, pp_hostd.embedded.store, pp_hostd.embedded.garbage; print({banned} & set(sys.modules))"
    assert run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


TEXTS = st.sampled_from(["", "a", "b/c", "x.io/y", "0", "7", "-1", "\ud800", "\0", "Ä"]) | st.text(max_size=5)
NOUNS = ("name", "namespace", "generateName", "labels", "annotations", "finalizers", "ownerReferences", "uid", "kind")
FIELDS = ("resourceVersion", "deletionTimestamp", "generation", "taints", "containers", "nodeName", "phase", "effect")
KEYS = st.sampled_from([*NOUNS, *FIELDS, "terminationGracePeriodSeconds", "leaseDurationSeconds"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 99) | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | TEXTS, inner, max_size=4),
    max_leaves=12,
)
SECTIONS = ("metadata", "spec", "status", "data", "involvedObject")
OBJECTS = st.fixed_dictionaries({}, optional=dict.fromkeys(SECTIONS, JSON))
GOOD = {"spec": {"containers": [{"name": "c"}]}, "involvedObject": {"namespace": "default"}}


def typed(resource: Resource, obj: Any) -> Any:
    return {"kind": resource.kind, "apiVersion": resource.api_version, **obj} if isinstance(obj, dict) else obj


@EXAMPLES
@given(resource=st.sampled_from(list(KINDS)), obj=JSON | OBJECTS, patch=JSON | OBJECTS, subresource=st.booleans())
def test_any_json_is_stored_or_refused(resource: Resource, obj: Any, patch: Any, subresource: bool) -> None:
    store = new_store(VirtualTime())
    place = (resource, "default" if resource.namespaced else "")
    store.create(*place, typed(resource, {**GOOD, "metadata": {"name": "good"}}))
    part = "status" if subresource and KINDS[resource].has_status else ""
    attempts: list[Callable[[], Any]] = [
        lambda: store.create(*place, typed(resource, obj)),
        lambda: store.update(*place, "good", typed(resource, obj), part),
        lambda: store.patch(*place, "good", patch, part),
        lambda: store.delete(*place, "good"),
        lambda: store.list(resource),
    ]
    for attempt in attempts:
        try:
            attempt()
        except StatusError as refusal:
            assert 400 <= refusal.code <= 500 and refusal.body()["message"]
