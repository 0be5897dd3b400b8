"""Reading a watch in a test: each event must come within a deadline, and what should not come is never waited for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.resources import Resource
from pp_hostd.kube.watch import Bookmark, Change, ChangeKind, Event, Interrupted, Snapshot, watch
from tests.contract.objects import name_of

EVENT_DEADLINE_SECONDS = 30


class Following:
    """A running watch."""

    def __init__(self, events: AsyncIterator[Event]) -> None:
        self._events = events

    async def snapshot(self) -> Snapshot:
        event = await self._next()
        assert isinstance(event, Snapshot), event
        return event

    async def interrupted(self) -> Interrupted:
        event = await self._next()
        assert isinstance(event, Interrupted), event
        return event

    async def change(self) -> Change:
        event = await self._next()
        assert isinstance(event, Change), event
        return event

    async def until_deleted(self) -> list[Change]:
        """All changes up to the first DELETED."""
        changes = [await self.change()]
        while changes[-1].kind is not ChangeKind.DELETED:
            changes.append(await self.change())
        return changes

    async def until(self, name: str) -> list[Change]:
        """All changes before the first of the object with that name, which a case writes last."""
        changes = [await self.change()]
        while name_of(changes[-1].object) != name:
            changes.append(await self.change())
        return changes[:-1]

    async def _next(self) -> Event:
        while True:
            event = await asyncio.wait_for(self._events.__anext__(), EVENT_DEADLINE_SECONDS)
            if not isinstance(event, Bookmark):  # one may come at any time
                return event


@asynccontextmanager
async def follow(client: ApiClient, kind: Resource, **options: Any) -> AsyncIterator[Following]:
    """Watch until the end of the block."""
    events = watch(client, kind, **options)
    try:
        yield Following(events)
    finally:
        await events.aclose()  # type: ignore[attr-defined]


def story(changes: list[Change]) -> list[tuple[str, str]]:
    """Returns the kind of each change and the name of its object."""
    return [(change.kind.value, name_of(change.object)) for change in changes]
