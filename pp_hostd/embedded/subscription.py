"""Subscriptions to the changes of one kind: bounded, so that a watcher who does not keep up costs nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Callable

from pp_hostd.embedded.history import Change, Event
from pp_hostd.embedded.selectors import Selector
from pp_hostd.embedded.status import StatusError, expired


class Subscription:
    """Events after a revision, until it is closed or too many wait in it.

    `wake` is called when there is something to `take`; whoever takes decides when, so the store never waits for anyone.
    """

    def __init__(self, selector: Selector, namespace: str, after: int, limit: int, wake: Callable[[], None]) -> None:
        self._selector = selector
        self._namespace = namespace
        self._after = after
        self._limit = limit
        self._wake = wake
        self._events: list[Event] = []
        self._cut_off: StatusError | None = None
        self.closed = False

    def start(self, backlog: Iterable[Event]) -> None:
        """Begin with these, which do not count against the limit: they come from what is bounded already."""
        self._events.extend(backlog)
        self._limit += len(self._events)

    def select(self, change: Change) -> Event | None:
        """What this watcher sees of a change, if anything."""
        if change.revision <= self._after or (self._namespace and change.key.namespace != self._namespace):
            return None
        return change.event(self._selector)

    def offer(self, change: Change) -> None:
        """Called by the store with every change."""
        event = None if self.closed or self._cut_off else self.select(change)
        if event is None:
            return
        self._events.append(event)
        if len(self._events) > self._limit:
            self.cut_off(expired(f"the watcher was too slow: more than {self._limit} events were waiting for it"))
        self._wake()

    def cut_off(self, why: StatusError) -> None:
        """Keep nothing; the watcher will know, when it comes to take, that it has missed something."""
        self._events = []
        self._cut_off = why

    def end(self, why: StatusError) -> None:
        """Cut it off, and have the watcher come to take that."""
        self.cut_off(why)
        self._wake()

    def take(self) -> list[Event]:
        """Everything that has happened since the last call; raises 410 once something was missed."""
        if self._cut_off:
            raise self._cut_off
        events, self._events = self._events, []
        return events

    def close(self) -> None:
        """Hear of nothing any more."""
        self.closed = True
