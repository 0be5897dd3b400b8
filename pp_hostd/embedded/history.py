"""Versions of objects, and the bounded memory of how the objects of one kind changed."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from pp_hostd.embedded.kinds import Kind, Object
from pp_hostd.embedded.selectors import Selector
from pp_hostd.embedded.status import expired
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
    """What a watcher sees: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR, and the object as text."""

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
