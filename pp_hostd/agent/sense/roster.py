"""The roster as the agent last saw it: the ConfigMap is watched, and only a newer version replaces the one in hand."""

from __future__ import annotations

from typing import Callable

from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.resources import CONFIG_MAPS
from pp_hostd.kube.watch import Change, ChangeKind, Event, Interrupted, Snapshot, watch
from pp_hostd.model.keys import NAMESPACE, ROSTER
from pp_hostd.model.record import Unreadable
from pp_hostd.model.roster import Roster, parse_roster

WHAT = f"ConfigMap {NAMESPACE}/{ROSTER}"


class RosterWatch:
    """`roster` is the newest that could be read; `trouble` is what is wrong with the one in the cluster, if any.

    `store` takes each new one, and keeps it for the next run of the agent, which begins with it as `known`.
    """

    def __init__(self, client: ApiClient, known: Roster | None, store: Callable[[Roster], None]) -> None:
        self.roster = known
        self.trouble = self._fault = "" if known else f"{WHAT} has not been read yet"
        self._client = client
        self._store = store

    async def run(self) -> None:
        """Goes on until it is cancelled."""
        selector = f"metadata.name={ROSTER}"
        async for event in watch(self._client, CONFIG_MAPS, namespace=NAMESPACE, field_selector=selector):
            self._take(event)

    def _take(self, event: Event) -> None:
        if isinstance(event, Interrupted):
            self.trouble = event.error.sentence
            return
        if isinstance(event, Snapshot):
            self._fault = self._read(event.items[0] if event.items else None)
        elif isinstance(event, Change):
            self._fault = self._read(None if event.kind is ChangeKind.DELETED else event.object)
        self.trouble = self._fault  # a bookmark says that the watch goes on, and nothing of the roster

    def _read(self, config_map: Json | None) -> str:
        """What is wrong with it; empty if none."""
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
