"""Leaders that end at any of their writes, or whose write arrives when another has long finished: all ends well."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Awaitable
from contextlib import closing
from typing import Any, Callable

import pytest

from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.kubeconfig import load
from pp_hostd.kube.outcome import ApiError
from pp_hostd.kube.resources import CONFIG_MAPS, EVENTS, LEASES, PODS, Resource
from pp_hostd.model.keys import backup_name
from tests.agent.objects import running, until, until_found
from tests.leader.external.objects import PROPOSED, TODAY, Objects
from tests.leader.in_term import client_for, term
from tests.leader.power.clusters import Clusters, Place
from tests.leader.power.site import Site, settings_for

ANNOTATION = "annotation"
Write = Callable[[], Awaitable[Json]]


class Moment(enum.Enum):
    """The fate of the write at which a leader ends."""

    NEVER = "it is never sent"
    UNTOLD = "it is done, and nobody hears of that"
    LATE = "it arrives when another leader has finished"
    AFTER_REQUEST = "it arrives when another leader has finished, and somebody has requested it again"


class Mortal(ApiClient):
    """Ends at its n-th write that is about a remedy: `late` is that write, if it is still to be sent."""

    def __init__(self, kubeconfig: str, ends_at: int, moment: Moment) -> None:
        super().__init__(load(kubeconfig), deadline_seconds=10)
        self.writes, self.ended = 0, asyncio.Event()
        self.late: Write | None = None
        self._ends_at, self._moment = ends_at, moment

    async def create(self, resource: Resource, body: Json, **options: Any) -> Json:
        write = super().create
        return await self._write(resource, body["metadata"], lambda: write(resource, body, **options))

    async def update(self, resource: Resource, body: Json, **options: Any) -> Json:
        write = super().update
        return await self._write(resource, body["metadata"], lambda: write(resource, body, **options))

    async def patch(self, resource: Resource, name: str, patch: Json, **options: Any) -> Json:
        write = super().patch
        return await self._write(resource, {"name": name}, lambda: write(resource, name, patch, **options))

    async def delete(self, resource: Resource, name: str, **options: Any) -> Json:
        write = super().delete
        return await self._write(resource, {"name": name}, lambda: write(resource, name, **options))

    async def _write(self, resource: Resource, named: Json, write: Write) -> Json:
        if not self._is_counted(resource, named["name"]):
            return await write()
        self.writes += 1
        if self.writes < self._ends_at:
            return await write()
        if self.writes == self._ends_at:
            if self._moment is Moment.UNTOLD:
                await write()
            self.late = write if self._moment in (Moment.LATE, Moment.AFTER_REQUEST) else None
            self.ended.set()
        return await asyncio.Event().wait()  # type: ignore[return-value]  # there is nobody any more

    def _is_counted(self, resource: Resource, name: str) -> bool:
        if resource is CONFIG_MAPS:
            return name.startswith(backup_name(""))
        return resource not in (EVENTS, LEASES) and resource.version != "v1beta2"  # which nobody serves here


async def asked(site: Site, place: Place, flow: str, name: str) -> None:
    if flow == ANNOTATION:
        await site.ask(name)
    else:
        await Objects(site, place, flow).make(name)


async def until_done(site: Site, place: Place, flow: str, name: str, times: int = 1) -> None:
    async def is_done() -> bool:
        if flow != ANNOTATION and not await Objects(site, place, flow).is_let_go(name):
            return False
        whole = await site.is_restored(name) and await site.find(PODS, name) is None
        return whole and site.of(name).count("-node") >= times

    await until_found(is_done, f"{name} is well again")


async def survived(site: Site, place: Place, flow: str, ends_at: int, moment: Moment) -> bool:
    """Whether a leader ended at that write of its remedy; another has finished it then."""
    name, times = f"{flow}-{ends_at}-{moment.name.lower().replace('_', '-')}", 1
    await site.add(name)
    await site.add_pod(name)
    with closing(Mortal(place.leader, ends_at, moment)) as mortal, closing(client_for(place.leader)) as next_one:
        async with term(mortal, settings_for(place.machines)):
            await asked(site, place, flow, name)
            doing = asyncio.ensure_future(until_done(site, place, flow, name))
            ending = asyncio.ensure_future(mortal.ended.wait())
            await asyncio.wait({doing, ending}, return_when=asyncio.FIRST_COMPLETED)
            doing.cancel(), ending.cancel()
        if not mortal.ended.is_set():
            doing.result()
            return False
        async with term(next_one, settings_for(place.machines)):
            await until_done(site, place, flow, name)
        if mortal.late is not None:
            if moment is Moment.AFTER_REQUEST:  # a request that must not be lost
                await site.ask(name)
                times = 2
            await late_write(mortal.late)
            async with term(next_one, settings_for(place.machines)):
                await all_seen(site, f"after-{name}")
                await until_done(site, place, flow, name, times)
    told = f"{name}: {site.of(name)}"
    assert site.of(name).count("-node") == times, told
    # A leader that has not seen the host turn off, nor finds it in the backup, switches it off once more.
    assert site.of(name).count("+kept off") in (times, times + 1), told
    return True


async def all_seen(site: Site, name: str) -> None:
    """When the leader heeds who asks last, it has looked at all others before."""
    await site.add(name)
    await site.ask(name)
    await until(lambda: site.is_true(name, "kept off"), "the last is heeded")
    await site.until_restored(name)


async def late_write(write: Write) -> None:
    try:
        await write()
    except ApiError as error:
        print(error)


@pytest.mark.parametrize(("flow", "writes"), [(ANNOTATION, 8), (TODAY, 14), (PROPOSED, 14)])
@pytest.mark.parametrize("moment", Moment)
async def test_a_leader_may_end_at_any_write(clusters: Clusters, flow: str, writes: int, moment: Moment) -> None:
    with clusters.place("embedded", "cluster-api") as place, closing(client_for(place.admin)) as admin:
        site = Site(admin, place.machines)
        await site.build()
        ends_at = 1
        async with site.watched(), running(site.operate()):
            while await survived(site, place, flow, ends_at, moment):
                ends_at += 1
        assert ends_at > writes  # by more than one, where a write met a conflict and was made again
