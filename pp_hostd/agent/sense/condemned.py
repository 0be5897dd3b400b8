"""The watch on condemned machines: news that condemns at once, and never acquits (rules 1 and 4)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Protocol, cast

from pp_hostd.agent.sense.api import Clock
from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.outcome import is_unserved
from pp_hostd.kube.resources import MACHINES, Resource
from pp_hostd.kube.watch import Change, ChangeKind, Event, Interrupted, Snapshot, watch
from pp_hostd.model.condemnation import Condemned
from pp_hostd.model.keys import CONDEMNED
from pp_hostd.model.machine import parse_machine
from pp_hostd.model.record import Unreadable

PAUSE_SECONDS = 2.0
"""Before all versions of the machines' API are tried again, where none is served."""


class Hearer(Protocol):
    """Who is told."""

    def learned(self, subject: str, uid: str, condemnation_id: int, at: float) -> None:
        """This machine, perhaps the host's own, is condemned under that id."""

    def listed(self) -> None:
        """All that are condemned have been told. Said again after an interruption that may have hidden some."""


class CondemnedWatch:
    """Reports every condemned machine. `trouble` says why news may be late or missing; empty if they are not."""

    def __init__(self, client: ApiClient, machines: str, clock: Clock, hearer: Hearer) -> None:
        self.trouble = "the condemned machines have not been listed yet"
        self._client = client
        self._versions = MACHINES[machines]
        self._clock = clock
        self._hearer = hearer
        self._fault = ""

    async def run(self) -> None:
        """Goes on until it is cancelled."""
        while True:
            for resource in self._versions:
                await self._follow(resource)
            await asyncio.sleep(PAUSE_SECONDS)

    async def _follow(self, resource: Resource) -> None:
        """The news in this version of the API, for as long as it is served."""
        events = cast("AsyncGenerator[Event, None]", watch(self._client, resource, label_selector=CONDEMNED))
        async for event in events:
            if isinstance(event, Interrupted) and is_unserved(event.error):
                self.trouble = event.error.sentence
                await events.aclose()
                return
            self._take(event)

    def _take(self, event: Event) -> None:
        if isinstance(event, Interrupted):
            self.trouble = event.error.sentence
            return
        if isinstance(event, Snapshot):
            faults = [self._tell(item) for item in event.items]
            self._fault = next(filter(None, faults), "")
            self._hearer.listed()
        elif isinstance(event, Change):  # lifted or gone: no news acquits
            self._fault = "" if event.kind is ChangeKind.DELETED else self._tell(event.object)
        self.trouble = self._fault  # a bookmark says that the watch goes on, and nothing of the machines

    def _tell(self, api_object: Json) -> str:
        """What is wrong with it; empty if none."""
        machine = parse_machine(api_object)
        if isinstance(machine, Unreadable):
            return f"a machine with the label {CONDEMNED}: {machine}"
        if isinstance(machine.condemnation, Unreadable):
            return f"machine {machine.subject}: {machine.condemnation}"
        if isinstance(machine.condemnation, Condemned):
            self._hearer.learned(machine.subject, machine.uid, machine.condemnation.id, self._clock())
        return ""
