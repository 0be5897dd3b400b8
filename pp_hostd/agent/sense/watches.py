"""The agent's watches: on condemned machines, and on the roster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Callable, Protocol, cast

from pp_hostd.agent.sense.api import Clock, Json
from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.outcome import is_unserved
from pp_hostd.kube.resources import CONFIG_MAPS, MACHINES, Resource
from pp_hostd.kube.watch import Change, ChangeKind, Event, Interrupted, Snapshot, watch
from pp_hostd.model.condemnation import Condemned
from pp_hostd.model.keys import CONDEMNED, NAMESPACE, ROSTER
from pp_hostd.model.machine import parse_machine
from pp_hostd.model.record import Unreadable
from pp_hostd.model.roster import Roster, parse_roster

PAUSE_SECONDS = 2.0
"""Before all versions of the machines' API are tried again, where none is served."""


class Hearer(Protocol):
    """The receiver of the news of a CondemnedWatch."""

    def learned(self, machine_key: str, uid: str, condemnation_id: int, at: float) -> None:
        """This machine, perhaps the host's own, is condemned under that id."""

    def listed(self) -> None:
        """All that are condemned have been told. Said again after an interruption that may have hidden some."""


class CondemnedWatch:
    """Reports every condemned machine. `trouble` says why news may be late or missing; empty if they are not."""

    def __init__(self, machines: str, clock: Clock, hearer: Hearer) -> None:
        self.trouble = "the condemned machines have not been listed yet"
        self._versions = MACHINES[machines]
        self._clock = clock
        self._hearer = hearer
        self._fault = ""

    async def run(self, client: ApiClient) -> None:
        """Goes on until it is cancelled."""
        while True:
            for resource in self._versions:
                await self._follow(client, resource)
            await asyncio.sleep(PAUSE_SECONDS)

    async def _follow(self, client: ApiClient, resource: Resource) -> None:
        """The news in this version of the API, for as long as it is served."""
        events = cast("AsyncGenerator[Event, None]", watch(client, resource, label_selector=CONDEMNED))
        async for event in events:
            if isinstance(event, Interrupted) and is_unserved(event.error):
                self.trouble = event.error.sentence
                await events.aclose()
                return
            self.take(event)

    def take(self, event: Event) -> None:
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
        """Tells the hearer if the machine is condemned. Returns the fault of the machine; empty if none."""
        machine = parse_machine(api_object)
        if isinstance(machine, Unreadable):
            return f"a machine with the label {CONDEMNED}: {machine}"
        if isinstance(machine.condemnation, Unreadable):
            return f"machine {machine.machine_key}: {machine.condemnation}"
        if isinstance(machine.condemnation, Condemned):
            self._hearer.learned(machine.machine_key, machine.uid, machine.condemnation.id, self._clock())
        return ""


WHAT = f"ConfigMap {NAMESPACE}/{ROSTER}"


class RosterWatch:
    """`roster` is the newest that could be read; `trouble` is what is wrong with the one in the cluster, if any.

    `store` takes each new one, and keeps it for the next run of the agent, which begins with it as `known`.
    """

    def __init__(self, known: Roster | None, store: Callable[[Roster], None]) -> None:
        self.roster = known
        self.trouble = self._fault = "" if known else f"{WHAT} has not been read yet"
        self._store = store

    async def run(self, client: ApiClient) -> None:
        """Goes on until it is cancelled."""
        selector = f"metadata.name={ROSTER}"
        async for event in watch(client, CONFIG_MAPS, namespace=NAMESPACE, field_selector=selector):
            self.take(event)

    def take(self, event: Event) -> None:
        if isinstance(event, Interrupted):
            self.trouble = event.error.sentence
            return
        if isinstance(event, Snapshot):
            self._fault = self._read(event.items[0] if event.items else None)
        elif isinstance(event, Change):
            self._fault = self._read(None if event.kind is ChangeKind.DELETED else event.object)
        self.trouble = self._fault  # a bookmark says that the watch goes on, and nothing of the roster

    def _read(self, config_map: Json | None) -> str:
        """Takes the roster if it is newer. Returns the fault of the roster; empty if none."""
        if config_map is None:
            return f"there is no {WHAT}: pp-leader writes it"
        data = config_map.get("data")
        roster = parse_roster(data.get(ROSTER) if isinstance(data, dict) else None)
        if isinstance(roster, Unreadable):
            return f"{WHAT}: {roster}"
        if self.roster is not None and roster != self.roster and roster.version <= self.roster.version:
            known = f"this host knows another one of version {self.roster.version}"
            return f"{WHAT} is of version {roster.version}, and {known}"
        if roster != self.roster:
            self.roster = roster
            self._store(roster)
        return ""
