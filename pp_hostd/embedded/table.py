"""The objects of one kind: what is stored now, what was, and who watches."""

from __future__ import annotations

from typing import Callable

from pp_hostd.embedded.history import Change, Event, History, Key, Version
from pp_hostd.embedded.kinds import Kind, Object
from pp_hostd.embedded.selectors import Selector
from pp_hostd.embedded.status import StatusError, not_found
from pp_hostd.embedded.subscription import Subscription


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
