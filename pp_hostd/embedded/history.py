"""The objects of one kind: what is stored now, the bounded memory of how they changed, and who watches."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Callable, NamedTuple

from pp_hostd.embedded.kinds import Kind, Object
from pp_hostd.embedded.selectors import Selector
from pp_hostd.embedded.status import StatusError, expired, not_found
from pp_hostd.frozen import frozen

_ENCODER = json.JSONEncoder(separators=(",", ":"))


class Key(NamedTuple):
    """Where an object lies; the namespace is empty for kinds that have none. Keys sort as lists do."""

    namespace: str
    name: str


def to_text(obj: Object, revision: int) -> str:
    """The object, stamped with a revision, as it is kept and sent."""
    metadata = {**obj["metadata"], "resourceVersion": str(revision)}
    return _ENCODER.encode({**obj, "metadata": metadata})


@frozen
class Version:
    """One object as it was once, kept as text: whatever is read from it is the reader's own."""

    text: str
    labels: Mapping[str, str]
    fields: Mapping[str, str]

    @classmethod
    def of(cls, kind: Kind, obj: Object, revision: int) -> Version:
        """That object, stamped with the revision."""
        return cls(to_text(obj, revision), dict(obj["metadata"].get("labels", {})), kind.fields(obj))

    def object(self) -> Object:
        """A fresh copy."""
        loaded: Object = json.loads(self.text)
        return loaded


class Event(NamedTuple):
    """An event as a watcher sees it: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR, and the object as text."""

    type: str
    text: str

    def object(self) -> Object:
        """A fresh copy."""
        loaded: Object = json.loads(self.text)
        return loaded


@frozen
class Change:
    """One write: what was there before and what is there after it, if anything."""

    key: Key
    revision: int
    old: Version | None
    new: Version | None

    def event(self, selector: Selector) -> Event | None:
        """The change as seen through a selector: an object that no longer matches is gone, as it last looked."""
        old = self.old if self.old and selector.matches(self.old.labels, self.old.fields) else None
        if self.new and selector.matches(self.new.labels, self.new.fields):
            return Event("MODIFIED" if old else "ADDED", self.new.text)
        return Event("DELETED", to_text(old.object(), self.revision)) if old else None


class History:
    """The last changes to the objects of one kind; what came before `oldest` can't be told any more."""

    def __init__(self, limit: int) -> None:
        self._changes: deque[Change] = deque()
        self._limit = limit
        self.oldest = 0

    def add(self, change: Change) -> None:
        """Remember it, and forget the oldest one when there are too many."""
        self._changes.append(change)
        if len(self._changes) > self._limit:
            self.oldest = self._changes.popleft().revision

    def forget(self, revision: int) -> None:
        """Forget everything before that revision."""
        self._changes.clear()
        self.oldest = revision

    def since(self, revision: int) -> list[Change]:
        """The changes after that revision, the last one first; 410 if some of them are forgotten."""
        if revision < self.oldest:
            raise expired(f"too old resource version: {revision} ({self.oldest})")
        newer: list[Change] = []
        for change in reversed(self._changes):
            if change.revision <= revision:
                break
            newer.append(change)
        return newer


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
        """Returns the event that this watcher sees of a change; None if it sees none."""
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


class Table:
    """Rows by key. It knows nothing of the API's rules: those are the store's."""

    def __init__(self, kind: Kind, history_limit: int, watch_limit: int) -> None:
        self.kind = kind
        self.rows: dict[Key, Version] = {}
        self.history = History(history_limit)
        self._watch_limit = watch_limit
        self._subscriptions: list[Subscription] = []

    def read(self, key: Key) -> Object:
        """The object, or 404."""
        if key not in self.rows:
            raise not_found(self.kind.resource, key.name)
        return self.rows[key].object()

    def put(self, key: Key, obj: Object, revision: int) -> Object:
        """Store a new version, and return it."""
        new = Version.of(self.kind, obj, revision)
        self._record(Change(key, revision, self.rows.get(key), new))
        self.rows[key] = new
        return new.object()

    def remove(self, key: Key, revision: int) -> None:
        """Forget the object; its last version stays in the history."""
        self._record(Change(key, revision, self.rows.pop(key), None))

    def selected(self, selector: Selector, namespace: str, revision: int) -> list[tuple[Key, Version]]:
        """The rows of a namespace (empty: of all), in order, as they were at that revision; 410 if it is forgotten."""
        rows: dict[Key, Version | None] = dict(self.rows)
        for change in self.history.since(revision):
            rows[change.key] = change.old
        return sorted(
            (key, row)
            for key, row in rows.items()
            if row and (not namespace or key.namespace == namespace) and selector.matches(row.labels, row.fields)
        )

    def watch(
        self, selector: Selector, namespace: str, after: int, revision: int, wake: Callable[[], None]
    ) -> Subscription:
        """Everything that changes after a revision; with 0, first what is there now."""
        subscription = Subscription(selector, namespace, after, self._watch_limit, wake)
        try:
            if after:
                seen = [subscription.select(change) for change in reversed(self.history.since(after))]
                subscription.start(event for event in seen if event)
            else:
                rows = self.selected(selector, namespace, revision)
                subscription.start(Event("ADDED", row.text) for _, row in rows)
        except StatusError as too_old:
            subscription.cut_off(too_old)
        self._subscriptions = [one for one in self._subscriptions if not one.closed]
        self._subscriptions.append(subscription)
        return subscription

    def cut_off(self, reason: StatusError) -> None:
        """Every watch ends so."""
        for subscription in self._subscriptions:
            if not subscription.closed:
                subscription.end(reason)

    def _record(self, change: Change) -> None:
        self.history.add(change)
        for subscription in self._subscriptions:
            subscription.offer(change)
