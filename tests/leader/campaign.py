"""Candidates in this process, and the Lease that they find, as the tests of the election want them."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any, Callable

from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.outcome import ApiError, Outcome
from pp_hostd.kube.resources import LEASES, NAMESPACES
from pp_hostd.leader.election import Election
from pp_hostd.model.keys import NAMESPACE
from pp_hostd.model.lease import GIVEN_UP_SECONDS, LEASE

DURATION_SECONDS = 2.0
GIVEN_UP: Json = {"holderIdentity": "", "leaseDurationSeconds": GIVEN_UP_SECONDS, "leaseTransitions": 6}


class Clock:
    """CLOCK_BOOTTIME, which a test can put forward."""

    jumped_seconds = 0.0

    def __call__(self) -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME) + self.jumped_seconds


class Candidate:
    """An election that runs, and the news of it."""

    def __init__(self, client: ApiClient, host: str, duration_seconds: float) -> None:
        self.clock = Clock()
        self.looked = False
        self._news = asyncio.Event()
        self.election = Election(client, host, duration_seconds, self.clock, self._changed)

    @property
    def acting(self) -> bool:
        return self.election.acting(self.clock())

    def _changed(self) -> None:
        self.looked = True
        self._news.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait for news after which this holds; pytest-timeout bounds it."""
        while not holds():
            await self._news.wait()
            self._news.clear()


@contextlib.asynccontextmanager
async def candidate(
    client: ApiClient, host: str = "ada", duration_seconds: float = DURATION_SECONDS
) -> AsyncIterator[Candidate]:
    """A candidate that campaigns until the end of the block."""
    made = Candidate(client, host, duration_seconds)
    task = asyncio.create_task(made.election.run())
    try:
        yield made
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def no_lease(client: ApiClient) -> None:
    """The namespace, without a Lease of a test before."""
    await _unless(Outcome.CONFLICT, client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}}))
    await _unless(Outcome.NOT_FOUND, client.delete(LEASES, LEASE, namespace=NAMESPACE))


async def put_lease(client: ApiClient, spec: Json, **metadata: Any) -> Json:
    """This Lease instead of the one that is there."""
    await no_lease(client)
    return await client.create(LEASES, {"metadata": {"name": LEASE, **metadata}, "spec": spec}, namespace=NAMESPACE)


async def lease_of(client: ApiClient) -> Json:
    return await client.get(LEASES, LEASE, namespace=NAMESPACE)


async def annotate(client: ApiClient) -> None:
    """Annotates the Lease, as a person might."""
    patch = {"metadata": {"annotations": {"note": "seen"}}}
    await client.patch(LEASES, LEASE, patch, namespace=NAMESPACE)


async def _unless(outcome: Outcome, request: Any) -> None:
    try:
        await request
    except ApiError as error:
        if error.outcome is not outcome:
            raise
