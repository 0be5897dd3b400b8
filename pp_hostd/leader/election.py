"""Campaigns for the leaders' Lease, renews it and gives it up; model/lease.py decides, this talks to the API."""

from __future__ import annotations

import asyncio
import contextlib
import os
from datetime import datetime, timezone
from typing import Callable

from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.deadline import Deadline, TimedOut
from pp_hostd.kube.outcome import ApiError, Outcome
from pp_hostd.kube.resources import LEASES
from pp_hostd.model.keys import NAMESPACE
from pp_hostd.model.lease import (
    LEASE,
    Candidacy,
    LeaseExchange,
    parse_lease,
)
from pp_hostd.model.record import Unreadable


class Election:
    """One candidate. `changed` is called whenever what it says of itself is different from before."""

    def __init__(
        self,
        client: ApiClient,
        host: str,
        duration_seconds: float,
        clock: Callable[[], float],
        changed: Callable[[], None],
    ) -> None:
        self.trouble = ""
        """Why the last exchange failed; empty if it did not."""
        self._client, self._clock, self._changed = client, clock, changed
        # Never the name of an earlier process: what is in ours was written by us.
        self._candidacy = Candidacy(f"{host}_{os.urandom(8).hex()}", duration_seconds)
        self._told: object = None
        self._wake, self._handed_over = asyncio.Event(), asyncio.Event()

    @property
    def identity(self) -> str:
        """The holder that the Lease shows while this candidate holds it."""
        return self._candidacy.identity

    @property
    def holder(self) -> str:
        """The holder of the Lease when the Lease was last seen; empty if none."""
        lease = self._candidacy.lease
        return lease.holder if lease is not None else ""

    @property
    def term(self) -> int:
        """How many terms have begun in this process."""
        return self._candidacy.term

    @property
    def acting_until_at(self) -> float:
        """When the present term ends unless it is renewed; long ago when there is none."""
        return self._candidacy.acting_until_at

    @property
    def resigned_at(self) -> float:
        return self._candidacy.resigned_at

    def acting(self, now: float) -> bool:
        """Whether this one may act (rule 14). To be asked at the moment of each write."""
        return self._candidacy.acting(now)

    async def run(self) -> None:
        """Campaign and renew until cancelled."""
        while True:
            now = self._clock()
            exchange, due_at = self._candidacy.next_exchange(now)
            if due_at <= now:
                await self._exchange(exchange, now)
            else:
                ends_at = self.acting_until_at if self.acting(now) else due_at
                await self._sleep(min(due_at, ends_at) - now)
            self._tell()

    async def resign(self) -> None:
        """Stop acting at once, then give the Lease up if the API lets us in time. `run` must be running.

        For one duration from here on this one does not campaign.
        """
        self._candidacy = self._candidacy.resigned(self._clock())
        self._tell()
        self._wake.set()
        # A renewal under way may take one period, and giving up another.
        with contextlib.suppress(TimedOut), Deadline(2 * self._candidacy.period_seconds):
            await self._handed_over.wait()

    async def _sleep(self, seconds: float) -> None:
        timer = asyncio.get_running_loop().call_later(seconds, self._wake.set)
        await self._wake.wait()
        timer.cancel()
        self._wake.clear()

    async def _exchange(self, exchange: LeaseExchange, sent_at: float) -> None:
        try:
            with Deadline(self._candidacy.exchange_seconds(sent_at)):
                lease = parse_lease(await self._request(exchange))
        except ApiError as error:
            self._failed(exchange, error.outcome, error.sentence)
            return
        except TimedOut:
            self._failed(exchange, Outcome.TIMED_OUT, f"{exchange.value} {_NAME}: no answer in time")
            return
        if isinstance(lease, Unreadable):
            self._failed(exchange, Outcome.GARBAGE, f"{exchange.value} {_NAME}: {lease}")
            return
        self.trouble = ""
        self._candidacy = self._candidacy.after_reply(exchange, lease, sent_at, self._clock())

    def _failed(self, exchange: LeaseExchange, outcome: Outcome, sentence: str) -> None:
        missing, conflict = outcome is Outcome.NOT_FOUND, outcome is Outcome.CONFLICT
        self._candidacy = self._candidacy.after_failure(exchange, self._clock(), missing=missing, conflict=conflict)
        if not (exchange is LeaseExchange.LOOK and missing):
            self.trouble = sentence

    async def _request(self, exchange: LeaseExchange) -> Json:
        if exchange is LeaseExchange.LOOK:
            return await self._client.get(LEASES, LEASE, namespace=NAMESPACE)
        body = self._candidacy.body(exchange, datetime.now(timezone.utc))
        if exchange is LeaseExchange.CREATE:
            return await self._client.create(LEASES, body, namespace=NAMESPACE)
        return await self._client.patch(LEASES, LEASE, body, namespace=NAMESPACE)

    def _tell(self) -> None:
        if self._candidacy.in_our_name:
            self._handed_over.clear()
        else:
            self._handed_over.set()
        now_told = (self.acting(self._clock()), self.term, self.holder, self.trouble)
        if now_told != self._told:
            self._told = now_told
            self._changed()


_NAME = LEASES.describe(NAMESPACE, LEASE)
