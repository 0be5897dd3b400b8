"""The past is remembered within bounds, and what is forgotten is said to be."""

from __future__ import annotations

import tracemalloc
from typing import Callable

import pytest

from pp_hostd.embedded.paging import Query
from pp_hostd.embedded.status import StatusError
from pp_hostd.embedded.store import Store
from pp_hostd.kube.resources import CONFIG_MAPS, LEASES
from tests.embedded.conftest import VirtualTime, config_map, new_store


def expired(call: Callable[[], object]) -> StatusError:
    with pytest.raises(StatusError) as caught:
        call()
    assert (caught.value.code, caught.value.reason) == (410, "Expired")
    return caught.value


def names(store: Store, **query: str) -> list[str]:
    return [item["metadata"]["name"] for item in store.list(CONFIG_MAPS, Query(**query))["items"]]  # type: ignore[arg-type]


def test_a_list_can_be_seen_as_it_was_at_any_remembered_version(store: Store) -> None:
    seen = {}
    for name in "abc":
        version = store.create(CONFIG_MAPS, "default", config_map(name))["metadata"]["resourceVersion"]
        seen[version] = names(store)
    store.delete(CONFIG_MAPS, "default", "a")
    store.create(CONFIG_MAPS, "default", config_map("a"))
    for version, then in seen.items():
        assert names(store, resource_version=version, resource_version_match="Exact") == then


def test_an_old_version_is_only_a_lower_bound_unless_it_is_meant_exactly(store: Store) -> None:
    version = store.create(CONFIG_MAPS, "default", config_map("a"))["metadata"]["resourceVersion"]
    store.create(CONFIG_MAPS, "default", config_map("b"))
    assert names(store, resource_version=version) == ["a", "b"]
    assert names(store, resource_version=version, resource_version_match="NotOlderThan") == ["a", "b"]
    assert names(store, resource_version="0") == ["a", "b"]


def test_a_page_of_an_old_version_is_meant_exactly(store: Store) -> None:
    version = store.create(CONFIG_MAPS, "default", config_map("b"))["metadata"]["resourceVersion"]
    store.create(CONFIG_MAPS, "default", config_map("a"))
    listing = store.list(CONFIG_MAPS, Query(resource_version=version, limit=5))
    assert [item["metadata"]["name"] for item in listing["items"]] == ["b"]
    assert listing["metadata"]["resourceVersion"] == version


def test_a_version_that_is_still_to_come_is_not_served(store: Store) -> None:
    with pytest.raises(StatusError) as caught:
        names(store, resource_version="1000")
    assert (caught.value.code, caught.value.reason) == (504, "Timeout")


def test_the_history_of_a_kind_has_an_end(clock: VirtualTime) -> None:
    store = new_store(clock, history_limit=3)
    first = store.create(CONFIG_MAPS, "default", config_map("a"))["metadata"]["resourceVersion"]
    for value in "1234":
        store.patch(CONFIG_MAPS, "default", "a", {"data": {"key": value}})
    expired(store.watch(CONFIG_MAPS, lambda: None, Query(resource_version=first)).take)
    expired(lambda: names(store, resource_version=first, resource_version_match="Exact"))
    remembered = str(int(first) + 1)
    assert len(store.watch(CONFIG_MAPS, lambda: None, Query(resource_version=remembered)).take()) == 3


def test_a_busy_kind_does_not_crowd_out_the_history_of_another(clock: VirtualTime) -> None:
    store = new_store(clock, history_limit=3)
    first = store.create(CONFIG_MAPS, "default", config_map("a"))["metadata"]["resourceVersion"]
    store.create(LEASES, "default", {"metadata": {"name": "busy"}, "spec": {}})
    for number in range(10):
        store.patch(LEASES, "default", "busy", {"spec": {"leaseTransitions": number}})
    store.patch(CONFIG_MAPS, "default", "a", {"data": {"key": "value"}})
    (event,) = store.watch(CONFIG_MAPS, lambda: None, Query(resource_version=first)).take()
    assert event.type == "MODIFIED"


def test_compaction_forgets_even_the_present_version_and_its_pages(store: Store) -> None:
    for name in "abc":
        store.create(CONFIG_MAPS, "default", config_map(name))
    page = store.list(CONFIG_MAPS, Query(limit=2))["metadata"]
    store.compact()
    expired(store.watch(CONFIG_MAPS, lambda: None, Query(resource_version=page["resourceVersion"])).take)
    refusal = expired(lambda: store.list(CONFIG_MAPS, Query(limit=2, continue_token=page["continue"])))
    assert names(store, continue_token=refusal.body()["metadata"]["continue"]) == ["c"]


def test_after_a_compaction_a_watch_goes_on_from_a_new_list(store: Store) -> None:
    store.create(CONFIG_MAPS, "default", config_map("a"))
    store.compact()
    version = store.list(CONFIG_MAPS)["metadata"]["resourceVersion"]
    subscription = store.watch(CONFIG_MAPS, lambda: None, Query(resource_version=version))
    store.create(CONFIG_MAPS, "default", config_map("b"))
    assert [event.type for event in subscription.take()] == ["ADDED"]


def test_memory_does_not_grow_with_the_number_of_writes(clock: VirtualTime) -> None:
    store = new_store(clock, history_limit=50)
    store.create(CONFIG_MAPS, "default", config_map("a"))

    def write(times: int) -> int:
        for number in range(times):
            store.patch(CONFIG_MAPS, "default", "a", {"data": {"key": f"{number:1000}"}})
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = write(200)
        assert write(1000) - before < 50_000  # a twentieth of what was written
    finally:
        tracemalloc.stop()
