"""The cluster as the leader sees it: Nodes, machines and our ConfigMaps, listed once and then watched.

What is seen here is news, and no proof: before the leader frees anything it reads again (rule 12).
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any, Callable, cast

from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.deadline import Deadline, TimedOut
from pp_hostd.kube.outcome import ApiError, Outcome, is_unserved
from pp_hostd.kube.resources import BARE_METAL_HOSTS, CLUSTERS, CONFIG_MAPS, MACHINES, NODES, REMEDIATIONS, Resource
from pp_hostd.kube.watch import Change, ChangeKind, Event, Interrupted, Snapshot, watch
from pp_hostd.leader.own_config_maps import OwnConfigMaps, observed
from pp_hostd.leader.sights import Clusters, Fault, Hosts, Kept, Machines, Nodes, Remediations, Sight
from pp_hostd.model.keys import LEADER, NAMESPACE
from pp_hostd.model.observed import ClustersSeen, HostsSeen, Observed
from pp_hostd.model.remediation import KINDS, Remediation, RemediationKind, is_carried_out
from pp_hostd.model.settings import Remediations as RemediationSettings
from pp_hostd.model.settings import Settings

PAUSE_SECONDS = 2.0
"""Before all versions of the machines' API are tried again, where none is served."""
DEFAULTS = Settings()
UNUSED_PAUSE_SECONDS = 300.0
"""Before it is tried again to see what is not needed, and not served or not shown to us."""
MAX_TOLD = 10
"""So many troubles are told at once."""


class Kind(enum.Enum):
    """What is watched; the value is how sentences call it."""

    NODES = "Node"
    MACHINES = "machine"
    CONFIG_MAPS = "ConfigMap"
    HOSTS = "BareMetalHost"
    REMEDIATIONS = "remediation"
    CLUSTERS = "Cluster"


@dataclass
class _Watch:
    """One watch, in the newest of these versions that is served. Where Nodes are the machines, it feeds both sights.

    `late` says why nothing new is seen, or nothing. What is `unused` need not be there, nor be shown to us.
    """

    versions: tuple[Resource, ...]
    sights: tuple[Sight[Any], ...]
    namespace: str | None = None
    field_selector: str = ""
    unused: bool = False
    listed: bool = False
    late: str = ""

    def __post_init__(self) -> None:
        self.late = "" if self.unused else f"{self.versions[0].describe(self.namespace)} have not been listed yet"

    def keep(self, api_object: Json) -> tuple[Kept[Any], ...]:
        return tuple(sight.keep(api_object) for sight in self.sights)

    def take(self, event: Event) -> None:
        self.late = event.error.sentence if isinstance(event, Interrupted) and not self.unused else ""
        if isinstance(event, Snapshot):
            self._begin_anew(event.items)
        elif isinstance(event, Change):
            for sight, kept in zip(self.sights, event.object):
                if event.kind is ChangeKind.DELETED:
                    sight.show_gone(kept.name)
                else:
                    sight.show(kept)

    def _begin_anew(self, items: list[tuple[Kept[Any], ...]]) -> None:
        """What happened before this list is not known: no stretch outlasts it (rule 9)."""
        self.listed = True
        for sight in self.sights:
            sight.begin_anew()
        for item in items:
            for sight, kept in zip(self.sights, item):
                sight.show(kept)
        items.clear()  # the event may be held until the next one comes, and all that has changed by then with it


class Observer:
    """`changed` is called after every event. `machines` is the setting of that name."""

    def __init__(
        self, client: ApiClient, machines: str, changed: Callable[[], None], settings: Settings = DEFAULTS
    ) -> None:
        self._client = client
        self._changed = changed
        self._nodes, self._machines, self._config_maps = Nodes(machines), Machines(), OwnConfigMaps()
        self._hosts = Hosts(settings.power.suffix)
        self._remediations: dict[str, Remediation] = {}
        # Also where none is switched off any more: one may still be off.
        self._hosts_watch = _Watch((BARE_METAL_HOSTS,), (self._hosts,), unused=not settings.power.cycle)
        self._objects = [self._watch_of(kind, settings.remediations) for kind in KINDS]
        self._clusters = Clusters()
        self._clusters_watch = _Watch(CLUSTERS, (self._clusters,))
        # What the leader says of itself changes often, and is no news to it.
        self._watches = [_Watch((CONFIG_MAPS,), (self._config_maps,), NAMESPACE, f"metadata.name!={LEADER}")]
        if machines == "node":
            self._watches.append(_Watch((NODES,), (self._nodes, self._machines)))
        else:
            self._watches += [_Watch((NODES,), (self._nodes,)), _Watch(MACHINES[machines], (self._machines,))]
            self._watches += [self._hosts_watch, *self._objects]
            self._watches += [self._clusters_watch] if machines == "cluster-api" else []
        self._sights: dict[Kind, tuple[Sight[Any], ...]] = {
            Kind.NODES: (self._nodes,),
            Kind.MACHINES: (self._machines,),
            Kind.CONFIG_MAPS: (self._config_maps,),
            Kind.HOSTS: (self._hosts,),
            Kind.CLUSTERS: (self._clusters,),
            Kind.REMEDIATIONS: tuple(sight for each in self._objects for sight in each.sights),
        }
        self._news: asyncio.Event | None = None

    def _watch_of(self, kind: RemediationKind, settings: RemediationSettings) -> _Watch:
        unused = not is_carried_out(kind, settings)
        return _Watch(REMEDIATIONS[kind.name], (Remediations(kind, self._remediations),), unused=unused)

    async def run(self) -> None:
        """Goes on until it is cancelled, whatever becomes of a watch."""
        await asyncio.gather(*map(self._follow, self._watches))

    @property
    def observed(self) -> Observed:
        """What is seen now; its mappings are alive, so it is for use at once."""
        hosts, late = self._hosts, self._hosts_watch.late
        seen = HostsSeen(hosts.seen, hosts.names, tuple(hosts.held), self._machines.claims, late)
        followed = self._clusters_watch  # one that breaks off goes on without loss: what was seen still counts
        clusters = ClustersSeen(self._clusters.pauses, "" if followed.listed else followed.late)
        return observed(self._nodes, self._machines, self._config_maps, seen, self._remediations, clusters)

    @property
    def ready(self) -> bool:
        """Whether everything was listed once but what not every cluster has, nor shows to every leader."""
        others = (self._hosts_watch, self._clusters_watch, *self._objects)
        return all(each.listed for each in self._watches if each not in others)

    @property
    def revision_of_nodes(self) -> int:
        """Grows whenever the roster may have to be another one."""
        return self._nodes.revision + self._machines.revision + self._config_maps.revision

    @property
    def faults(self) -> tuple[Mapping[str, Fault], Mapping[str, Fault]]:
        """Of Nodes (by name) and of machines (by subject), those that were first."""
        return self._nodes.faults, self._machines.faults

    @property
    def trouble(self) -> str:
        """Why something is seen late, or can't be read; nothing if all is well."""
        troubles = [each.late for each in self._watches if each.late]
        troubles += [trouble for sights in self._sights.values() for sight in sights for trouble in sight.troubles()]
        more = [f"and {len(troubles) - MAX_TOLD} more"] if len(troubles) > MAX_TOLD else []
        return "; ".join(troubles[:MAX_TOLD] + more)

    async def shows(self, kind: Kind, name: str, version_before: str | None, deadline_seconds: float) -> bool:
        """Wait until it is seen gone, or in a later version than this (None: absent); False if that takes longer."""
        try:
            with Deadline(deadline_seconds):
                while not _is_news(self._version(kind, name), version_before):
                    self._news = self._news or asyncio.Event()
                    await self._news.wait()
        except TimedOut:
            return False
        return True

    def _version(self, kind: Kind, name: str) -> str | None:
        """In which it was last seen; None: it is not there."""
        versions = (sight.versions.get(name) for sight in self._sights[kind])
        return next((version for version in versions if version is not None), None)

    async def _follow(self, followed: _Watch) -> None:
        while True:
            for resource in followed.versions:
                await self._follow_version(followed, resource)
            await asyncio.sleep(UNUSED_PAUSE_SECONDS if followed.unused else PAUSE_SECONDS)

    async def _follow_version(self, followed: _Watch, resource: Resource) -> None:
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
            followed.take(event)
            self._announce()
            if isinstance(event, Interrupted) and _is_over(event.error, followed.unused):
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


def _is_news(seen: str | None, before: str | None) -> bool:
    """A watch may lag behind the read that gave `before`; versions are numbers, and grow with each write."""
    if seen is not None and before is not None and seen.isdecimal() and before.isdecimal():
        return int(seen) > int(before)
    return seen != before
