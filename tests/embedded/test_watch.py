"""Subscriptions: nobody waits for a watcher, and none can make the store keep more than it should."""

from __future__ import annotations

import tracemalloc

import pytest

from pp_hostd.embedded.paging import Query
from pp_hostd.embedded.status import StatusError
from pp_hostd.embedded.store import Store
from pp_hostd.kube.resources import CONFIG_MAPS
from tests.embedded.conftest import VirtualTime, config_map, new_store


def write(store: Store, count: int) -> None:
    for number in range(count):
        store.create(CONFIG_MAPS, "default", config_map(f"object-{store.revision}-{number}"))


def test_a_watcher_is_woken_and_takes_each_event_once(store: Store) -> None:
    woken: list[int] = []
    subscription = store.watch(CONFIG_MAPS, lambda: woken.append(store.revision))
    write(store, 2)
    assert len(woken) == 2
    assert [event.type for event in subscription.take()] == ["ADDED", "ADDED"]
    assert subscription.take() == []


def test_a_watcher_that_lags_within_the_limit_misses_nothing(clock: VirtualTime) -> None:
    store = new_store(clock, watch_limit=5)
    subscription = store.watch(CONFIG_MAPS, lambda: None)
    for _ in range(3):
        write(store, 5)
        assert len(subscription.take()) == 5


def test_a_watcher_that_lags_further_is_cut_off_with_410(clock: VirtualTime) -> None:
    store = new_store(clock, watch_limit=5)
    subscription = store.watch(CONFIG_MAPS, lambda: None)
    write(store, 6)
    for _ in range(2):
        with pytest.raises(StatusError) as caught:
            subscription.take()
        assert caught.value.code == 410
        write(store, 1)


def test_nothing_is_kept_for_a_watcher_that_was_cut_off(clock: VirtualTime) -> None:
    store = new_store(clock, watch_limit=50, history_limit=1)
    store.create(CONFIG_MAPS, "default", config_map("a"))
    subscription = store.watch(CONFIG_MAPS, lambda: None)
    tracemalloc.start()
    try:
        for number in range(500):
            store.patch(CONFIG_MAPS, "default", "a", {"data": {"key": f"{number:1000}"}})
        assert tracemalloc.get_traced_memory()[0] < 25_000  # half of what may wait
    finally:
        tracemalloc.stop()
    with pytest.raises(StatusError):
        subscription.take()


def test_a_slow_watcher_does_not_harm_a_quick_one(clock: VirtualTime) -> None:
    store = new_store(clock, watch_limit=5)
    store.watch(CONFIG_MAPS, lambda: None)
    taken: list[str] = []
    quick = store.watch(CONFIG_MAPS, lambda: taken.extend(event.type for event in quick.take()))
    write(store, 20)
    assert taken == ["ADDED"] * 20


def test_what_there_is_at_the_start_does_not_count_as_lag(clock: VirtualTime) -> None:
    store = new_store(clock, watch_limit=5)
    write(store, 20)
    subscription = store.watch(CONFIG_MAPS, lambda: None)
    write(store, 5)
    assert len(subscription.take()) == 25


def test_a_closed_subscription_hears_nothing(store: Store) -> None:
    subscription = store.watch(CONFIG_MAPS, lambda: pytest.fail("woken after its end"))
    subscription.close()
    write(store, 1)
    assert subscription.take() == []


def test_a_version_that_is_still_to_come_is_waited_for(store: Store) -> None:
    subscription = store.watch(CONFIG_MAPS, lambda: None, Query(resource_version=str(store.revision + 2)))
    write(store, 3)
    assert len(subscription.take()) == 1


def test_a_bookmark_tells_the_present_version_and_nothing_else(store: Store) -> None:
    write(store, 1)
    bookmark = store.bookmark(CONFIG_MAPS)
    assert bookmark.type == "BOOKMARK"
    metadata = {"resourceVersion": str(store.revision)}
    assert bookmark.object() == {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata}


def test_a_restored_store_holds_what_was_saved_under_versions_that_were_never_used() -> None:
    store = new_store(VirtualTime())
    kept = store.create(CONFIG_MAPS, "default", config_map("kept"))
    saved = store.saved()
    store.patch(CONFIG_MAPS, "default", "kept", {"data": {"key": "changed"}})
    store.create(CONFIG_MAPS, "default", config_map("later"))
    before = store.revision
    store.restore(saved)
    found = store.get(CONFIG_MAPS, "default", "kept")
    assert int(found["metadata"].pop("resourceVersion")) > before
    kept["metadata"].pop("resourceVersion")
    assert found == kept
    with pytest.raises(StatusError) as missing:
        store.get(CONFIG_MAPS, "default", "later")
    assert missing.value.code == 404


def test_whoever_watches_a_store_that_is_restored_must_list_again(store: Store) -> None:
    woken: list[int] = []
    subscription = store.watch(CONFIG_MAPS, lambda: woken.append(store.revision))
    store.restore(store.saved())
    assert woken
    with pytest.raises(StatusError) as cut_off:
        subscription.take()
    assert cut_off.value.code == 410
