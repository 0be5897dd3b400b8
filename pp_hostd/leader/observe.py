"""The leader's watches, followed on the real API: each is listed once and then watched, whatever becomes of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Callable, cast

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.deadline import Deadline, TimedOut
from pp_hostd.kube.outcome import ApiError, Outcome, is_unserved
from pp_hostd.kube.resources import Resource
from pp_hostd.kube.watch import Bookmark, ChangeKind, Event, Interrupted, Snapshot, watch
from pp_hostd.leader.caches import Watch, is_later
from pp_hostd.leader.steps.port import Kind
from pp_hostd.leader.watches import Watches
from pp_hostd.model.settings import Settings

PAUSE_SECONDS = 2.0
"""Before all versions of the machines' API are tried again, where none is served."""
DEFAULTS = Settings()


class Observer(Watches):
    """`changed` is called after every event. `machines` is the setting of that name."""

    def __init__(
        self, client: ApiClient, machines: str, changed: Callable[[], None], settings: Settings = DEFAULTS
    ) -> None:
        super().__init__(machines, settings)
        self._client, self._changed = client, changed
        self._news: asyncio.Event | None = None

    async def run(self) -> None:
        """Goes on until it is cancelled, whatever becomes of a watch."""
        await asyncio.gather(*map(self._follow, self.watches))

    async def shows(self, kind: Kind, name: str, version_before: str | None, deadline_seconds: float) -> bool:
        """Wait until it is seen gone, or in a later version than this (None: absent); False if that takes longer."""
        try:
            with Deadline(deadline_seconds):
                while not is_later(self.version(kind, name), version_before):
                    self._news = self._news or asyncio.Event()
                    await self._news.wait()
        except TimedOut:
            return False
        return True

    async def _follow(self, followed: Watch) -> None:
        while True:
            for resource in followed.versions:
                await self._follow_version(followed, resource)
            await asyncio.sleep(followed.again_seconds if followed.unused else PAUSE_SECONDS)

    async def _follow_version(self, followed: Watch, resource: Resource) -> None:
        """For as long as this version is served."""
        found = watch(
            self._client,
            resource,
            namespace=followed.namespace,
            field_selector=followed.field_selector,
            keep=followed.keep,
        )
        events = cast("AsyncGenerator[Event, None]", found)
        async for event in events:
            _take(followed, event)
            self._announce()
            if isinstance(event, Interrupted) and _is_over(event.error, followed.unused):
                if followed.unused and is_unserved(event.error):  # then none is there
                    followed.listed = True
                await events.aclose()
                return

    def _announce(self) -> None:
        if self._news is not None:
            self._news.set()
            self._news = None
        self._changed()


def _is_over(error: ApiError, unused: bool) -> bool:
    """Whether it is of no use to go on: nothing is served there or, where that is just as well, shown to us."""
    return is_unserved(error) or (unused and error.outcome is Outcome.FORBIDDEN)


def _take(followed: Watch, event: Event) -> None:
    if isinstance(event, Snapshot):
        followed.show_all(event.items)
        event.items.clear()  # the event may be held until the next one comes, and all that has changed by then with it
    elif isinstance(event, Interrupted):
        followed.break_off(event.error.sentence)
    elif isinstance(event, Bookmark):
        followed.late = ""
    elif event.kind is ChangeKind.DELETED:
        followed.show_gone(event.object)
    else:
        followed.show(event.object)
