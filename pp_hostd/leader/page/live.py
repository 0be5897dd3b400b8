"""The content of the page, read from the API only while somebody looks: Nodes and our ConfigMaps are watched, the Lease
is read again and again. Leaders that stand by show the same, by the same reads.

A reader gets the newest version of each part, however many it has missed, so that a slow one holds nothing up.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from datetime import datetime, timezone
from typing import Any

from pp_hostd.kube.client import ApiClient, Json, Keep
from pp_hostd.kube.deadline import Deadline, TimedOut
from pp_hostd.kube.outcome import ApiError, is_missing
from pp_hostd.kube.resources import CONFIG_MAPS, LEASES, NODES, Resource
from pp_hostd.kube.watch import Change, ChangeKind, Interrupted, Snapshot, watch
from pp_hostd.leader.fleet import Fleet, FleetHost, fleet_of, host_of
from pp_hostd.model.keys import BUDGET, CONTROL, ENROLLED, LEADER, NAMESPACE
from pp_hostd.model.leader_status import LeaderStatus
from pp_hostd.model.lease import LEASE
from pp_hostd.model.moment import render_moment
from pp_hostd.model.record import Unreadable

SHOWN = frozenset((BUDGET, CONTROL, ENROLLED, LEADER))
"""The ConfigMaps that the page needs."""
LEASE_SECONDS = 2.0
"""Between two reads of the Lease, and so the longest time between two looks at what is late."""
BEAT_SECONDS = 5.0
"""A reader hears this often at least that its stream still lives."""
STREAM_SECONDS = 900.0
"""No stream is longer; its reader connects again."""
LEAST_PAUSE_SECONDS, PAUSE_FOLD = 0.3, 20
"""After the parts were made: so that this takes a twentieth of the leader's time at most, however large the cluster."""
AGAIN_MILLISECONDS = 1000
"""A reader whose stream has ended waits so long."""


class Live:
    """All readers of one page, and what they share. `promise` is the part that never changes."""

    def __init__(self, client: ApiClient, promise: Json) -> None:
        self.readers = 0
        self._client, self._promise = client, promise
        self._reading: Reading | None = None

    async def stream(self) -> AsyncGenerator[bytes, None]:
        """For one reader, until it leaves or STREAM_SECONDS are over."""
        self._reading = reading = self._reading or Reading(self._client)
        self.readers += 1
        sent: dict[str, bytes] = {}
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + STREAM_SECONDS
        try:
            yield b"retry: %d\n\n%b" % (AGAIN_MILLISECONDS, _event("promise", self._promise))
            while loop.time() < ends_at:
                fresh = {name: part for name, part in reading.parts().items() if sent.get(name) is not part}
                sent.update(fresh)
                yield b"".join((_event("beat", {"now": _now().timestamp()}), *fresh.values()))
                await reading.news(BEAT_SECONDS)
        finally:
            self.readers -= 1
            if not self.readers:
                self._reading = None
                reading.stop()


class Reading:
    """The cluster as the API shows it, from when the first reader has come until the last one has left."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._hosts: dict[str, FleetHost] = {}
        self._config_maps: dict[str, Json | None] = {}
        self._lease: Json | None = None
        self._awaited = {NODES, CONFIG_MAPS, LEASES}
        self._troubles: dict[Resource, str] = {}
        self._troubled_since: datetime | None = None
        self._parts: dict[str, bytes] = {}
        self._changed, self._news = asyncio.Event(), asyncio.Event()
        nodes = self._follow(NODES, None, self._hosts, _host)
        config_maps = self._follow(CONFIG_MAPS, NAMESPACE, self._config_maps, _config_map)
        working = nodes, config_maps, self._follow_lease(), self._make_parts()
        self._tasks = [asyncio.create_task(each) for each in working]

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()

    def parts(self) -> dict[str, bytes]:
        """The newest version of each; none before everything was read once."""
        for task in self._tasks:
            if task.done():  # none ends by itself
                task.result()
        return self._parts

    async def news(self, within_seconds: float) -> None:
        """Wait for it, at most so long."""
        with contextlib.suppress(TimedOut), Deadline(within_seconds):
            await self._news.wait()

    async def _follow(self, resource: Resource, namespace: str | None, found: dict[str, Any], keep: Keep) -> None:
        async for event in watch(self._client, resource, namespace=namespace, keep=keep):
            if isinstance(event, Interrupted):
                self._heard(resource, event.error.sentence)
                continue
            if isinstance(event, Snapshot):
                found.clear()
                found.update(event.items)
            elif isinstance(event, Change):
                name, kept = event.object
                found[name] = kept
                if event.kind is ChangeKind.DELETED:
                    del found[name]
            self._heard(resource)

    async def _follow_lease(self) -> None:
        while True:
            try:
                self._lease = await self._client.get(LEASES, LEASE, namespace=NAMESPACE)
                self._heard(LEASES)
            except ApiError as error:
                self._lease = None if is_missing(error) else self._lease
                self._heard(LEASES, "" if is_missing(error) else error.sentence)
            await asyncio.sleep(LEASE_SECONDS)

    def _heard(self, resource: Resource, trouble: str = "") -> None:
        """The API has shown objects of this kind, or why it does not."""
        self._troubles.pop(resource, None)
        if trouble:
            self._troubles[resource] = trouble
        else:
            self._awaited.discard(resource)
        self._troubled_since = (self._troubled_since or _now()) if self._troubles else None
        self._changed.set()

    async def _make_parts(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._changed.wait()
            self._changed.clear()
            began_at = loop.time()
            self._make("trouble", _trouble(self._troubles, self._troubled_since))
            if not self._awaited:
                fleet = fleet_of(self._hosts.values(), self._config_maps, self._lease, _now())
                for name, content in contents(fleet).items():
                    self._make(name, content)
            await asyncio.sleep(max(LEAST_PAUSE_SECONDS, PAUSE_FOLD * (loop.time() - began_at)))

    def _make(self, name: str, content: object) -> None:
        """Another version, and news, only if it is different."""
        part = _event(name, content)
        if part != self._parts.get(name):
            self._parts[name] = part
            self._news.set()
            self._news = asyncio.Event()


def contents(fleet: Fleet) -> dict[str, object]:
    """The parts that the page shows of a fleet: what changes often is apart from what is long."""
    told, leadership = fleet.as_json(), fleet.leadership
    status, history = leadership.status, leadership.history
    del told["at"]  # a beat tells the time, by which the page moves its bars itself
    for each in told["ongoing"]:
        del each["part"]
    hosts = told.pop("hosts")
    told["leader"] = leadership.sentence() if leadership.leads else ""
    told["resets_per_hour"] = status.resets_per_hour if isinstance(status, LeaderStatus) else None
    lines = () if history is None or isinstance(history, Unreadable) else history
    return {
        "fleet": told,
        "hosts": hosts,
        "history": [[render_moment(each.when_wallclock), each.node, each.stage, each.sentence] for each in lines],
    }


def _trouble(troubles: dict[Resource, str], since: datetime | None) -> object:
    return {"since": since and since.timestamp(), "sentence": "; ".join(troubles.values())}


def _host(node: Json) -> tuple[str, FleetHost]:
    host = host_of(node)
    return host.name, host


def _config_map(found: Json) -> tuple[str, Json | None]:
    """Backups of nodes are long, and not shown."""
    name = str(found["metadata"].get("name"))
    return name, found if name in SHOWN else None


def _event(name: str, content: object) -> bytes:
    """One of a stream of server-sent events: JSON has no line ends."""
    return f"event: {name}\ndata: {json.dumps(content, separators=(',', ':'))}\n\n".encode()


def _now() -> datetime:
    return datetime.now(timezone.utc)
